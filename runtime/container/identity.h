// Who the payload is: capability names to masks (libcap), users from the root's own files.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "oci/spec.h"
#include "runtime/init/plan.h"

namespace wherry::container {

// kInvalid for a name that libcap does not know; kUnsupported for one that this kernel does not.
Result<init::CapabilitySets> capability_sets(const oci::Capabilities& capabilities);
std::vector<std::string> known_capabilities();  // "CAP_CHOWN", ...: of libcap and of this kernel
Result<std::uint64_t> capability_mask(const std::vector<std::string>& names);

}  // namespace wherry::container
