// What a tmpfs covers, copied into it: the option "tmpcopyup". Internal to mount/.
#pragma once
#include "base/result.h"

namespace wherry::mount {

// What the mount's own options say of the root of `to`, which is then not taken from `from`.
struct Given {
  bool uid = false, gid = false, mode = false;
};
// Directories, files, links and FIFOs below `from` with owner, mode, times and extended attributes,
// into `to`, which is empty and nobody else's. No link is followed. Devices and sockets are
// left out: a tmpfs of a container's has no use for them.
Result<> copy_up(int from, int to, Given given);

}  // namespace wherry::mount
