// The keeper's and the worker's program as sealed memory.
#pragma once
#include "base/fd.h"
#include "base/result.h"
#include "shim/pods.h"

namespace wherry::shim {

struct SealedPrograms {
  UniqueFd keeper, worker;
};
// Those that a living pod runs when they are of the same build, so that all pods share one copy in
// memory; else new copies of the files beside our own program, in WHERRY_LIBEXEC, or where they are
// installed.
Result<SealedPrograms> sealed_programs(const Places& places);

}  // namespace wherry::shim
