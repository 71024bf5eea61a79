// Trees on their way from the host's user namespace into another one.
//
// A detached tree that is attached in a mount namespace of a less privileged user namespace keeps
// its flags, but nothing keeps a process in there with CAP_SYS_ADMIN from taking them off: the
// host's "ro" or "nodev" of a bound directory would be the container's to change. The kernel locks
// flags only when it copies a mount namespace for another user namespace (mount_namespaces(7),
// "Restrictions on mount namespaces"). So the trees are attached before that copy is made, and
// copied again out of it.
#pragma once
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace wherry::mount {

// In a new mount namespace of the caller's: the trees, which are then closed, below `at`, a
// directory of the host that nobody in there needs. Empty places of the list are passed over.
Result<> stage(const std::string& at, const std::vector<UniqueFd*>& trees);
// In the copy, by the same list: detached trees again, with locked flags. Before the namespace is
// isolated, so that slaves stay slaves.
Result<> take_staged(const std::string& at, const std::vector<UniqueFd*>& trees);

}  // namespace wherry::mount
