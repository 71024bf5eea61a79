// The creator's half of the conversation: clone, talk, take the terminal; or undo.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "base/result.h"
#include "oci/spec.h"
#include "runtime/init/plan.h"
#include "runtime/init/sync.h"

namespace wherry::container {

// What the creator writes for the child's new namespaces.
struct IdMaps {
  std::vector<oci::IdMapping> uids, gids;
  std::map<std::string, oci::TimeOffset> time_offsets;
};

struct Launch {
  init::Plan plan;
  std::uint64_t clone_flags = 0;
  int cgroup_fd = -1;
  // Entered by the creator for the clone, so that the child is born in there: a PID namespace,
  // which setns(2) gives to children only, and with a user namespace all that are joined, since
  // from inside of it those of the host's could not be.
  std::vector<init::Join> visits;
  UniqueFd user_namespace;  // joined; by a process in between, since there is no way back from it
  IdMaps maps;
  bool clone_parent = false;
  // Called when the child asks for the hooks that run before its root is entered.
  std::function<Result<>(pid_t child)> run_hooks;
  Millis child_hooks{0};  // what hooks of its own may take the child then
};
struct Launched {
  pid_t pid = 0;
  UniqueFd pidfd, console;
  init::Channel channel;
};
// Until the child has said kReady. A failure leaves no process.
Result<Launched> launch_child(Launch& launch, Deadline deadline);
// Kills the child and, when it is ours, reaps it.
void abandon(const Launched& child, Deadline deadline);

void remove_files(int record_dir);  // record.json, gate, result, hooks.json

// runtime-spec, "Allowed Device list": the default devices work whatever the list says; so do the
// container's pseudo terminals.
std::vector<oci::DeviceRule> with_default_devices(const std::vector<oci::DeviceRule>& rules);

}  // namespace wherry::container
