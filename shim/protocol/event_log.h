// Events on disk: one JSON line each, a sequence per pod in the pod's directory and one for the
// host in the store, so that `events --since` needs no daemon.
#pragma once
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/json_fwd.h"
#include "base/result.h"

namespace wherry::shim {

inline constexpr char kEventFile[] = "events.jsonl";
inline constexpr char kOlderEventFile[] = "events.1.jsonl";
inline constexpr std::size_t kEventFileLimit =
    4 * 1024 * 1024;  // bytes; then it becomes the older one

// Adds {"seq": N, "time": ...} in front of `event` and appends it to the log in `dir`, under the
// log's own lock, by one write(2). Returns N. Two logs never wait for each other.
Result<std::uint64_t> append_event(int dir, const Json& event);

}  // namespace wherry::shim
