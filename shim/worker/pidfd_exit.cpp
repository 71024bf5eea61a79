#include "shim/worker/pidfd_exit.h"

#include <sys/ioctl.h>
#include <sys/wait.h>

#include <cstdint>

#include "base/sys.h"

namespace wherry::shim {
namespace {

// linux/pidfd.h, Linux 6.13 (the exit: 6.15). Spelled out because the headers of the build host are
// older.
struct PidfdInfo {
  std::uint64_t mask = 0, cgroup_id = 0;
  std::uint32_t pid = 0, tgid = 0, ppid = 0;
  std::uint32_t ruid = 0, rgid = 0, euid = 0, egid = 0, suid = 0, sgid = 0, fsuid = 0, fsgid = 0;
  std::int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kInfoExit = 1U << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);

constexpr auto kReapedWithin = Millis{500};

}  // namespace

std::optional<int> wait_status_of(int pidfd) {
  if (const auto info = sys::waitid_pidfd(pidfd, WEXITED | WNOHANG); info.ok() && info.value()) {
    const int status = info.value()->si_status;
    return info.value()->si_code == CLD_EXITED ? status << 8 : status;
  }
  // Somebody else's child: the kernel tells its exit once it has been reaped, which POLLHUP says.
  sys::poll_one(pidfd, 0, Deadline::in(kReapedWithin)).ignore("then the exit is not known");
  PidfdInfo info;
  info.mask = kInfoExit;
  if (::ioctl(pidfd, kPidfdGetInfo, &info) < 0 || (info.mask & kInfoExit) == 0) return std::nullopt;
  return info.exit_code;
}

}  // namespace wherry::shim
