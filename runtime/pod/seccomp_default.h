// The seccomp profile "RuntimeDefault", as data.
#pragma once
#include <string>
#include <vector>

#include "oci/spec.h"

namespace wherry::pod {

// An allow-list: what ordinary programs use, plus what each of `capabilities` (the bounding set,
// "CAP_SYS_ADMIN") is for. The rest fails with EPERM; clone3, whose flags no filter can see, with
// ENOSYS unless CAP_SYS_ADMIN is there, so that C libraries fall back to clone. Names that a kernel
// or libseccomp does not know are to be passed over.
oci::Seccomp default_seccomp(const std::vector<std::string>& capabilities);

}  // namespace wherry::pod
