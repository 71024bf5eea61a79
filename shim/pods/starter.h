// Starting a pod: sealed programs, state directory, cgroup, keeper.
#pragma once
#include <optional>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "runtime/pod/pod.h"
#include "shim/pods.h"
#include "shim/protocol/pod_status.h"

namespace wherry::shim {

struct Launched {
  UniqueFd ready;  // one line of JSON comes here: {"status", "shims"} or {"error"}
  UniqueFd lock;   // an own description of shim.lock: free once keeper and worker are gone
};
// Everything up to the running keeper. `attach`: the worker's end of a relay, or -1. On failure
// nothing is left.
Result<Launched> launch(const Places& places, const pod::Pod& pod, int attach);

struct Answer {
  PodStatus status;
  Shims shims;
};
// Waits for the answer. A pod that failed is taken away before its error is returned.
Result<Answer> await_start(const Places& places, const pod::Pod& pod, const Launched& launched,
                           Deadline deadline);

}  // namespace wherry::shim
