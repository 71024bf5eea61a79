// Capabilities by number, as the kernel's bit masks have them (capabilities(7)).
#pragma once
#include <string>

namespace wherry {

inline constexpr unsigned kCapabilityCount = 41;  // with a name: up to CAP_CHECKPOINT_RESTORE (5.9)

// "CAP_CHOWN" for 0; "capability 41" for one that a newer kernel has.
std::string capability_name(unsigned number);

}  // namespace wherry
