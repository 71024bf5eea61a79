// Taking a pod's traces away. Each part is idempotent: whoever finds half of it done goes on.
#pragma once
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace wherry::shim {

inline constexpr char kLedgerDir[] = "ledger";  // below the store's root
inline constexpr char kLedgerLock[] = "lock";   // in it; held while names are given and taken
inline constexpr char kNamesDir[] = "names";    // in it: <namespace>/<name>, content: pod id
inline constexpr char kPodsDir[] = "pods";      // below root and state

// Record, layers, volumes and logs; then the name, if it is still this pod's; then `pod.removed` is
// told, once; then the state directory.
Result<> remove_pod_files(const std::string& root, const std::string& state, const std::string& id,
                          const std::string& ns, const std::string& name);
// The cgroups of the pod, in every hierarchy. kTimeout names the processes in them.
Result<> remove_pod_cgroups(const std::string& cgroup, Deadline deadline);
// Moves a process out of the pod's cgroup to the root of the v2 hierarchy, so that the last one can
// remove it.
Result<> leave_pod_cgroup(int pid);

}  // namespace wherry::shim
