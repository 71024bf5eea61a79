// The status of a pod: what the worker keeps in the file `status` and everybody else reads from it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/process.h"
#include "base/result.h"

namespace wherry {

struct ContainerStatus {
  std::string name, image, image_digest;
  std::string state;  // "waiting", "created", "running", "exited", "unknown"
  std::string reason, message;
  bool init = false, ready = false, oom_killed = false;
  std::optional<int> exit_code, signal;
  int pid = 0;
  unsigned restarts = 0;
  std::string started, finished, log_path;
};
struct PodStatus {
  std::string id, name, ns, uid, created;
  std::string phase;    // "Pending", "Running", "Stopping", "Succeeded", "Failed", "Unknown"
  std::string sandbox;  // "READY", "NOTREADY", "NOTFOUND"
  std::string reason;   // why, when it is not as it should be
  std::vector<std::string> warnings;
  int keeper_pid = 0, shim_pid = 0;
  bool ready = false, oom_killed = false;
  std::optional<int> exit_code;  // of the primary (first) container, once the pod has ended
  std::vector<ContainerStatus> containers;
  std::map<std::string, std::string> labels, annotations;
};
Json to_json(const PodStatus& status);
Result<PodStatus> pod_status_from_json(const Json& value);

namespace shim {
// Who keeps the pod, so that it can be told from a later process of the same number; kept beside
// the status.
struct Shims {
  ProcessIdentity keeper, worker;
  unsigned worker_starts = 0;  // how often the keeper has started a worker
};
Json to_json(const Shims& shims);
Shims shims_from_json(const Json& value);
}  // namespace shim

}  // namespace wherry
