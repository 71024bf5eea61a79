#include "runtime/init/credentials.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "base/sys.h"
#include "base/text.h"

namespace wherry::init {
namespace {

using RawSets = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

std::uint32_t half(std::uint64_t mask, std::size_t which) {
  return static_cast<std::uint32_t>(mask >> (32 * which));
}

Result<> drop_bounding(std::uint64_t keep) {
  for (unsigned cap = 0; cap <= last_capability(); ++cap)
    if ((keep >> cap & 1U) == 0)
      TRY_CTX(sys::prctl(PR_CAPBSET_DROP, cap), cat("bounding set without capability ", cap));
  return {};
}

// Raw calls: glibc's wrappers serve threads, of which there are none, and call out to NSS-free code
// only by luck.
Result<> set_ids(const Plan& plan) {
  if (::syscall(SYS_setgroups, plan.groups.size(), plan.groups.data()) < 0)
    return Error::sys("setgroups");
  if (::syscall(SYS_setresgid, plan.gid, plan.gid, plan.gid) < 0)
    return Error::sys("setresgid", cat(plan.gid));
  if (::syscall(SYS_setresuid, plan.uid, plan.uid, plan.uid) < 0)
    return Error::sys("setresuid", cat(plan.uid));
  return {};
}

Result<> set_sets(const CapabilitySets& sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  RawSets raw{};
  for (std::size_t i = 0; i < raw.size(); ++i) {
    raw[i].effective = half(sets.effective, i);
    raw[i].permitted = half(sets.permitted, i);
    raw[i].inheritable = half(sets.inheritable, i);
  }
  if (::syscall(SYS_capset, &header, raw.data()) < 0)
    return Error::sys("capset").hint("the caller itself lacks a capability that the spec asks for");
  return {};
}

Result<> raise_ambient(std::uint64_t ambient) {
  TRY(sys::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL));
  for (unsigned cap = 0; cap <= last_capability(); ++cap)
    if ((ambient >> cap & 1U) != 0)
      TRY_CTX(sys::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap),
              cat("ambient capability ", cap));
  return {};
}

Result<> read_back(const CapabilitySets& sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  RawSets raw{};
  if (::syscall(SYS_capget, &header, raw.data()) < 0) return Error::sys("capget");
  bool same = true;
  for (std::size_t i = 0; i < raw.size(); ++i)
    same = same && raw[i].effective == half(sets.effective, i) &&
           raw[i].permitted == half(sets.permitted, i) &&
           raw[i].inheritable == half(sets.inheritable, i);
  for (unsigned cap = 0; cap <= last_capability(); ++cap) {
    same = same && (::prctl(PR_CAPBSET_READ, cap) == 1) == ((sets.bounding >> cap & 1U) != 0);
    same = same && (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1) ==
                       ((sets.ambient >> cap & 1U) != 0);
  }
  if (!same)
    return Error::make(Code::kDenied,
                       "the kernel did not take the capability sets as they were asked for");
  return {};
}

}  // namespace

unsigned last_capability() {
  static const unsigned kLast = [] {
    unsigned cap = 0;
    // Only EINVAL says that there are no more: at any other error the rest would stay in the sets.
    while (cap < 63 && (::prctl(PR_CAPBSET_READ, cap + 1) >= 0 || errno != EINVAL)) ++cap;
    return cap;
  }();
  return kLast;
}

Result<> set_credentials(const Plan& plan) {
  TRY(drop_bounding(plan.capabilities.bounding));
  TRY(sys::prctl(PR_SET_KEEPCAPS, 1));
  TRY(set_ids(plan));
  // Leaving uid 0 empties the effective set; capset below needs none of it: it only takes away.
  TRY(sys::prctl(PR_SET_KEEPCAPS, 0));
  TRY(set_sets(plan.capabilities));
  TRY(raise_ambient(plan.capabilities.ambient));
  // A change of ids makes the process dumpable according to fs.suid_dumpable: closed again until
  // execve (CVE-2016-9962).
  TRY(sys::prctl(PR_SET_DUMPABLE, 0));
  return read_back(plan.capabilities);
}

}  // namespace wherry::init
