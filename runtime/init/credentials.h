// Identity of the payload: ids, groups and the five capability sets, in the one order that is
// right.
#pragma once
#include "base/result.h"
#include "runtime/init/plan.h"

namespace wherry::init {

// Bounding set first (it needs CAP_SETPCAP), then ids with the capabilities kept, then exact sets,
// ambient last; all five are read back and must equal the plan (SEC-30).
Result<> set_credentials(const Plan& plan);
// capabilities(7): the highest number that this kernel knows, asked from it.
unsigned last_capability();

}  // namespace wherry::init
