// The exit of a process from its pidfd: for the case that the keeper, which reaps, is gone.
#pragma once
#include <optional>

namespace wherry::shim {

// The status word of wait(2) of a process that has ended: as its parent, or on Linux 6.15 and later
// as anyone who held the pidfd before it was reaped (PIDFD_GET_INFO). nullopt: nobody can tell.
std::optional<int> wait_status_of(int pidfd);

}  // namespace wherry::shim
