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

// Some inits look for their dead only every few seconds.
constexpr Millis kReapedWithin{5'000};

std::optional<int> as_parent(int pidfd) {
  const auto info = sys::waitid_pidfd(pidfd, WEXITED | WNOHANG);
  if (!info.ok() || !info.value()) return std::nullopt;
  const int status = info.value()->si_status;
  return info.value()->si_code == CLD_EXITED ? status << 8 : status;
}

}  // namespace

std::unique_ptr<ExitWatch> ExitWatch::start(EventLoop& loop, int pidfd, Done done) {
  std::unique_ptr<ExitWatch> watch{new ExitWatch{loop, pidfd, std::move(done)}};
  loop.watch(pidfd, EPOLLIN, [self = watch.get()](std::uint32_t) { self->on_end(); })
      .ignore("a pidfd can be watched");
  return watch;
}

ExitWatch::~ExitWatch() {
  loop_.cancel(give_up_);
  loop_.unwatch(pidfd_);
}

void ExitWatch::on_end() {
  if (const auto status = as_parent(pidfd_)) return tell(status);
  // Somebody else's child: the kernel tells its exit once it has been reaped, which EPOLLHUP says.
  loop_.unwatch(pidfd_);
  loop_.watch(pidfd_, 0, [this](std::uint32_t) { on_reaped(); }).ignore("a pidfd can be watched");
  give_up_ = loop_.after(kReapedWithin, [this] { tell(std::nullopt); });
}

void ExitWatch::on_reaped() {
  PidfdInfo info;
  info.mask = kInfoExit;
  if (::ioctl(pidfd_, kPidfdGetInfo, &info) < 0 || (info.mask & kInfoExit) == 0)
    return tell(std::nullopt);
  tell(info.exit_code);
}

void ExitWatch::tell(std::optional<int> wait_status) {
  loop_.cancel(give_up_);
  loop_.unwatch(pidfd_);
  const auto done = std::move(done_);
  done(wait_status);
}

}  // namespace wherry::shim
