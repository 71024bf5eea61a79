// record.json: what is written before the first resource of a container is made, and where to look
// for it afterwards.
#pragma once
#include <optional>

#include "base/result.h"
#include "runtime/container/container.h"

namespace wherry::container {

inline constexpr const char* kRecordFile = "record.json";
inline constexpr const char* kGateFile = "gate";
inline constexpr const char* kResultFile = "result";
inline constexpr const char* kHooksFile = "hooks.json";  // there only when the spec has hooks

Result<> save_record(int record_dir, const Record& record);
// The place of the record's own directories; nullopt when it is gone.
Result<std::optional<cgroups::Place>> own_place(const Record& record,
                                                const cgroups::Hierarchies& hierarchies);
Result<std::optional<cgroups::Place>> own_place(const Record& record);  // of what discover() finds
// ids: [A-Za-z0-9_][A-Za-z0-9_.+-]*, at most 255 bytes (SEC-54).
Result<> check_id(const std::string& id);

}  // namespace wherry::container
