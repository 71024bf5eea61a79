// The programs beside `wherry`.
#pragma once
#include "base/fd.h"
#include "base/result.h"
#include "shim/pods.h"

namespace wherry::shim {

// For execution: from WHERRY_LIBEXEC, from the directory of our own program, or from where they are
// installed. O_CLOEXEC.
Result<UniqueFd> open_program(const char* name);

// The keeper's and the worker's, as sealed memory.
struct SealedPrograms {
  UniqueFd keeper, worker;
};
// Those that a living pod runs when they are of the same build, so that all pods share one copy in
// memory; else new copies of the files beside our own program, in WHERRY_LIBEXEC, or where they are
// installed.
Result<SealedPrograms> sealed_programs(const Places& places);

}  // namespace wherry::shim
