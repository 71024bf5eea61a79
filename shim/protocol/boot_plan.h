// plan.json in the pod's state directory: what the starter has looked up for the worker, so that
// the worker needs no image store. It is written before the keeper starts and not changed
// afterwards.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "oci/image.h"

namespace wherry::shim {

struct ImagePlan {
  std::string name, digest;  // as the pod named it; of the manifest, with its algorithm
  oci::ImageConfig config;
  std::vector<std::string> layer_dirs;  // absolute, lowest first
};
struct BootPlan {
  std::string id, name,
      ns;  // of the pod: enough to take its traces away when its own record is gone
  std::string root, state, cgroup_parent;   // absolute
  std::map<std::string, ImagePlan> images;  // by container; one with a root directory has none
};
Json to_json(const BootPlan& plan);
Result<BootPlan> boot_plan_from_json(const Json& value);

// Names of files in the pod's state directory ...
inline constexpr char kPlanFile[] = "plan.json";
inline constexpr char kLockFile[] = "shim.lock";
inline constexpr char kSocketFile[] = "shim.sock";
inline constexpr char kStatusFile[] = "status";
inline constexpr char kMachineFile[] = "machine.rec";
inline constexpr char kContainersDir[] = "containers";
// ... and in its directory of the store.
inline constexpr char kPodFile[] = "pod.json";
inline constexpr char kLogsDir[] = "logs";

// Names of the descriptors that the starter gives to the keeper.
inline constexpr char kStateFd[] = "state", kRootFd[] = "root", kListenFd[] = "listen",
                      kLockFd[] = "lock", kReadyFd[] = "ready", kAttachFd[] = "attach";

// The leaf of keeper and worker below the pod's cgroup; no container can have that name.
inline constexpr char kShimCgroup[] = ".shim";

}  // namespace wherry::shim
