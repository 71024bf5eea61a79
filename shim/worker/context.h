// What every part of the worker needs to know of its pod.
#pragma once
#include <string>

#include "base/event_loop.h"
#include "base/fd.h"
#include "runtime/pod/pod.h"
#include "shim/protocol/boot_plan.h"
#include "shim/protocol/exit_record.h"
#include "shim/worker/keeper_link.h"

namespace wherry::shim {

struct Context {
  EventLoop loop;
  KeeperLink keeper;
  UniqueFd state_dir, root_dir;  // the pod's own: <state>/pods/<id> and <root>/pods/<id>
  BootPlan plan;
  pod::Pod pod;

  // Whether what is written down about the pod must outlive a power cut.
  Sync sync() const { return pod.remove_when_done ? Sync::kNo : Sync::kData; }
  std::string state_path() const { return plan.state + "/pods/" + pod.id; }
  std::string root_path() const { return plan.root + "/pods/" + pod.id; }
  std::string pod_cgroup() const { return plan.cgroup_parent + "/" + pod.id; }
  std::string container_cgroup(const std::string& name) const { return pod_cgroup() + "/" + name; }
  const pod::Container* container(
      const std::string& name) const;  // init containers too; nullptr: none
};

}  // namespace wherry::shim
