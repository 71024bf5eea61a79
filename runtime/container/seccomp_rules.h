// System calls whose rules libseccomp 2.5 does not combine right: several rules, and comparisons
// other than SCMP_CMP_EQ and SCMP_CMP_MASKED_EQ. Its tree of comparisons then answers with the
// wrong action for some arguments, in both directions (docs/decisions/0017-rules-of-our-own.md).
// For these the filter starts with code of our own.
#pragma once
#include <linux/filter.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "oci/spec.h"

namespace wherry::container {

struct RuleTarget {
  std::uint32_t audit_arch;  // AUDIT_ARCH_* as the kernel tells it
  // The number of a system call there, x32's bit included; -1: there is none; below: libseccomp's
  // word for a call that is a part of another there, such as socketcall(2).
  std::function<int(const std::string& name)> number_of;
};
using ActionOf = std::function<Result<std::uint32_t>(const oci::SeccompRule&)>;  // SECCOMP_RET_*

struct OwnRules {
  std::vector<sock_filter> code;  // empty when no system call needs it
  // System calls that libseccomp need not hear of: they have code on each target that has them.
  std::set<std::string> covered;
};
// Of the rules of a system call the first that holds
// decides, and the default when none does; other system calls and architectures go on to what
// follows the code.
Result<OwnRules> compile_own_rules(const oci::Seccomp& profile,
                                   const std::vector<RuleTarget>& targets,
                                   std::uint32_t default_action, const ActionOf& action_of);

}  // namespace wherry::container
