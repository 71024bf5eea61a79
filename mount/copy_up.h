// What a tmpfs covers, copied into it: the option "tmpcopyup". Internal to mount/.
#pragma once
#include "base/result.h"

namespace wherry::mount {

// Directories, files, links and FIFOs below `from` with owner, mode, times and extended attributes,
// into `to`, which is empty and nobody else's. No link is followed. Devices and sockets are
// left out: a tmpfs of a container's has no use for them.
Result<> copy_up(int from, int to);

}  // namespace wherry::mount
