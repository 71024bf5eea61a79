// OCI seccomp profile -> a classic BPF filter, compiled by libseccomp in a throw-away child (it
// takes 15 ms and leaves 0.9 MB behind) and kept in a cache by what it was made from.
#pragma once
#include <linux/filter.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "oci/spec.h"

namespace wherry::container {

struct SeccompFilter {
  std::vector<sock_filter> instructions;
  unsigned flags = 0;  // SECCOMP_FILTER_FLAG_*
};

// `cache_dir` is a 0700 directory of ours, or "" for no cache. System calls newer than libseccomp
// knows get ENOSYS, not the default errno: a C library then falls back to an older call (REL-50).
Result<SeccompFilter> compile_seccomp(const oci::Seccomp& profile, const std::string& cache_dir,
                                      Deadline deadline);

}  // namespace wherry::container
