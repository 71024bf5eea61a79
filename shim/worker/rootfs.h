// The root of a container: an overlay of its image's layers and a writable directory of its own, as
// a detached mount.
#pragma once
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "shim/worker/context.h"

namespace wherry::shim {

// Makes it anew: what an earlier run of the container wrote is gone.
Result<UniqueFd> make_rootfs(const Context& context, const pod::Container& container);

}  // namespace wherry::shim
