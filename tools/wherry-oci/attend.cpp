// In the foreground: signals go to the process, bytes to and from its terminal, its exit code to
// the caller.
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/sys.h"
#include "base/text.h"
#include "tools/wherry-oci/verbs.h"

namespace wherry::tool {
namespace {

// The caller's terminal in raw mode for as long as this lives.
class RawMode {
 public:
  explicit RawMode(bool wanted) {
    if (!wanted || ::tcgetattr(0, &saved_) < 0) return;
    termios raw = saved_;
    ::cfmakeraw(&raw);
    active_ = ::tcsetattr(0, TCSANOW, &raw) == 0;
  }
  ~RawMode() {
    if (active_) ::tcsetattr(0, TCSANOW, &saved_);
  }
  RawMode(const RawMode&) = delete;
  RawMode& operator=(const RawMode&) = delete;

 private:
  termios saved_{};
  bool active_ = false;
};

Result<UniqueFd> all_signals() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
    sigdelset(&all, fault);
  if (::sigprocmask(SIG_BLOCK, &all, nullptr) < 0) return Error::sys("sigprocmask");
  UniqueFd fd{::signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd) return Error::sys("signalfd");
  return fd;
}

void copy_size(int console) {
  winsize size{};
  if (::ioctl(0, TIOCGWINSZ, &size) == 0) ::ioctl(console, TIOCSWINSZ, &size);
}

void pass_signals(int signals, int pidfd, int console) {
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signum = static_cast<int>(info.ssi_signo);
    if (signum == SIGWINCH && console >= 0)
      copy_size(console);
    else if (signum != SIGCHLD && signum != SIGPIPE && signum != SIGURG)
      sys::pidfd_send_signal(pidfd, signum).ignore("it may have ended just now");
  }
}

// One way of the relay, with what has been read and not written yet. Interest in input ends while
// output is blocked.
class Way {
 public:
  Way(int from, int to) : from_{from}, to_{to} {}
  bool open() const { return from_ >= 0 || !pending_.empty(); }
  void add(std::vector<pollfd>& polls) const {
    if (!pending_.empty())
      polls.push_back({to_, POLLOUT, 0});
    else if (from_ >= 0)
      polls.push_back({from_, POLLIN, 0});
  }
  void move(const pollfd& ready) {
    if (ready.fd == from_ && pending_.empty() &&
        (ready.revents & (POLLIN | POLLHUP | POLLERR)) != 0)
      fill();
    else if (ready.fd == to_ && !pending_.empty() && ready.revents != 0)
      drain();
  }

 private:
  void fill() {
    std::array<char, 16384> chunk;
    const ssize_t got = ::read(from_, chunk.data(), chunk.size());
    if (got > 0) {
      pending_.assign(chunk.data(), static_cast<std::size_t>(got));
      drain();
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      from_ = -1;  // EIO: all slave ends are closed
    }
  }
  void drain() {
    const ssize_t put = ::write(to_, pending_.data(), pending_.size());
    if (put > 0)
      pending_.erase(0, static_cast<std::size_t>(put));
    else if (put < 0 && errno != EAGAIN && errno != EINTR)
      from_ = -1, pending_.clear();
  }
  int from_, to_;
  std::string pending_;
};

Result<int> exit_code(int pidfd) {
  const auto info = TRY(sys::waitid_pidfd(pidfd, WEXITED));
  return info->si_code == CLD_EXITED ? info->si_status : 128 + info->si_status;
}

Result<> relay(int pidfd, int signals, int console) {
  Way in{console >= 0 ? 0 : -1, console}, out{console, 1};
  bool ended = false;
  // After its end the rest of the terminal's output is taken, until all slave ends are closed or
  // nothing comes.
  while (!ended || (console >= 0 && out.open())) {
    std::vector<pollfd> polls{{signals, POLLIN, 0}};
    if (!ended) polls.push_back({pidfd, POLLIN, 0});
    if (console >= 0 && !ended) in.add(polls);
    if (console >= 0) out.add(polls);
    const int ready = ::poll(polls.data(), polls.size(), ended ? 100 : -1);
    if (ready < 0 && errno != EINTR) return Error::sys("poll");
    if (ready == 0 && ended) return {};
    for (const auto& one : polls) {
      if (one.revents == 0) continue;
      if (one.fd == signals)
        pass_signals(signals, pidfd, console);
      else if (one.fd == pidfd)
        ended = true;
      else if (console >= 0)
        in.move(one), out.move(one);
    }
  }
  return {};
}

}  // namespace

Result<int> attend(const UniqueFd& pidfd, UniqueFd console) {
  const auto signals = TRY(all_signals());
  const RawMode raw{static_cast<bool>(console)};
  if (console) {
    copy_size(console.get());
    TRY(sys::set_nonblock(console.get(), true));
  }
  TRY(relay(pidfd.get(), signals.get(), console ? console.get() : -1));
  return exit_code(pidfd.get());
}

}  // namespace wherry::tool
