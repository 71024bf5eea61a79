// What a request may bring, checked before any method looks: a parameter of the wrong type must not
// fall back to a default that means more than was asked for.
#pragma once
#include "base/json_fwd.h"
#include "base/result.h"

namespace wherry::shim {

// kInvalid names the parameter and what it must be. Parameters that no method has are left alone: a
// newer client may send them.
Result<> check_params(const Json& params);

}  // namespace wherry::shim
