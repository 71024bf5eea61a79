// Events on disk: one JSON line each, a sequence per pod in the pod's directory and one for the
// host in the store, so that `events --since` needs no daemon.
#pragma once
#include <cstdint>
#include <functional>
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

// Calls `on_event` with each event of the log in `dir`, the oldest first. A line that a full disk
// has cut short, and a log that is not there, are passed over.
void read_events(int dir, const std::function<void(const Json&)>& on_event);

// Appends `pod.removed` to the log in `dir`, the host's.
Result<> tell_removed(int dir, const std::string& id, const std::string& ns,
                      const std::string& name);
// The same for whoever finishes a removal that another has begun: not twice, and not of a pod of
// which nothing was ever told.
Result<> tell_removed_once(int dir, const std::string& id, const std::string& ns,
                           const std::string& name);

}  // namespace wherry::shim
