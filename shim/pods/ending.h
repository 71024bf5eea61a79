// Ending a pod from outside, whether or not its keeper and worker live.
#pragma once
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "shim/pods.h"
#include "shim/pods/store_paths.h"

namespace wherry::shim {

// Waits until keeper and worker have let go of the pod. kTimeout names their processes.
Result<> await_release(const Places& places, const std::string& id, Deadline deadline);
// Kills keeper, worker and everything in the pod's cgroups.
Result<> kill_everything(const Places& places, const std::string& id, Deadline deadline);
// Of a pod that nobody keeps: its containers, record by record, and its cgroups. kBusy when
// somebody does keep it.
Result<> destroy_remains(const Places& places, const std::string& id, Deadline deadline);
// The containers of a pod that nobody keeps whose init lives all the same: "'web' (pid 12)".
Result<std::vector<std::string>> still_running(const Places& places, const std::string& id);
// After destroy_remains() of a pod that had not ended: it has now, and nobody can tell how. Its
// events say so as well.
Result<> mark_ended(const Places& places, const PodView& view);
// All of it, in whatever state: after it nothing of the pod is left but its events, in which all
// that was begun has its end. Idempotent.
Result<> take_away(const Places& places, const pod::Pod& pod, Deadline deadline);

}  // namespace wherry::shim
