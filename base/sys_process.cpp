#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/sys.h"
#include "base/text.h"

namespace wherry::sys {
namespace {
constexpr std::size_t kMostFds = 64;  // in one message; the kernel's own limit is 253 (SCM_MAX_FD)
}

Result<> setns(int fd, int nstype, std::string_view subject) {
  if (::setns(fd, nstype) < 0) return Error::sys("setns", subject);
  return {};
}

Result<> unshare(int flags, std::string_view subject) {
  if (::unshare(flags) < 0) return Error::sys("unshare", subject);
  return {};
}

Result<UniqueFd> pidfd_open(pid_t pid, unsigned flags) {
  const long fd = ::syscall(SYS_pidfd_open, pid, flags);
  if (fd < 0) return Error::sys("pidfd_open", cat("pid ", pid));
  return UniqueFd{static_cast<int>(fd)};
}

Result<> pidfd_send_signal(int pidfd, int signum) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signum, nullptr, 0) < 0)
    return Error::sys("pidfd_send_signal", cat("signal ", signum));
  return {};
}

Result<std::optional<siginfo_t>> waitid_pidfd(int pidfd, int options) {
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, options) < 0)
    if (errno != EINTR) return Error::sys("waitid", cat("pidfd ", pidfd));
  if (info.si_pid == 0) return std::optional<siginfo_t>{};
  return std::optional<siginfo_t>{info};
}

Result<> close_range(unsigned first, unsigned last, unsigned flags) {
  if (::syscall(SYS_close_range, first, last, flags) < 0) return Error::sys("close_range");
  return {};
}

Result<> prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  if (::prctl(option, a, b, c, d) < 0) return Error::sys("prctl", cat("option ", option));
  return {};
}

Result<std::pair<UniqueFd, UniqueFd>> socketpair(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) < 0) return Error::sys("socketpair");
  return std::pair{UniqueFd{ends[0]}, UniqueFd{ends[1]}};
}

Result<> sendmsg(int socket, std::string_view data, std::span<const int> fds, int flags) {
  CHECK(fds.size() <= kMostFds, "too many descriptors for one message");
  iovec piece{const_cast<char*>(data.data()), data.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostFds)> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &message, flags | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return Error::sys("sendmsg");
  if (static_cast<std::size_t>(sent) != data.size())
    return Error::sys("sendmsg (short)", {}, EMSGSIZE);
  return {};
}

Result<Received> recvmsg(int socket, std::span<char> into, int flags) {
  iovec piece{into.data(), into.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostFds)> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got;
  do {
    got = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return Error::sys("recvmsg");
  Received received;
  received.size = static_cast<std::size_t>(got);
  received.truncated = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      received.fds.emplace_back(fd);
    }
  }
  return received;
}

Result<short> poll_one(int fd, short events, Deadline deadline) {
  pollfd one{fd, events, 0};
  while (true) {
    const int ready = ::poll(&one, 1, deadline.poll_timeout_ms());
    if (ready > 0) return one.revents;
    if (ready == 0 && deadline.expired()) return short{0};
    if (ready < 0 && errno != EINTR) return Error::sys("poll");
  }
}

}  // namespace wherry::sys
