#include "runtime/network/namespaces.h"

#include <linux/sched.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/file.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry::network {
namespace {

struct Kind {
  std::uint64_t flag;
  const char* proc_name;  // below /proc/PID/ns
  const char* limit;      // below /proc/sys/user
  bool NamespacePlan::*wanted;
  UniqueFd PodNamespaces::*fd;
};
constexpr std::array kKinds{
    Kind{CLONE_NEWNET, "net", "max_net_namespaces", &NamespacePlan::net, &PodNamespaces::net},
    Kind{CLONE_NEWIPC, "ipc", "max_ipc_namespaces", &NamespacePlan::ipc, &PodNamespaces::ipc},
    Kind{CLONE_NEWUTS, "uts", "max_uts_namespaces", &NamespacePlan::uts, &PodNamespaces::uts},
};

// What the child says: everything is set up, or the call that failed. The texts are literals of
// this program, which the parent shares.
struct Report {
  int err = 0;
  const char* call = "";
};

Report bring_loopback_up() {
  const UniqueFd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (!socket) return {errno, "socket"};
  struct ifreq request {};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return {errno, "ioctl SIOCGIFFLAGS 'lo'"};
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return {errno, "ioctl SIOCSIFFLAGS 'lo'"};
  return {};
}

// In the child: sets the namespaces up, says so, and stays until the parent has opened them.
[[noreturn]] void child_main(const NamespacePlan& plan, int socket) {
  Report report;
  if (plan.uts && !plan.hostname.empty() &&
      ::sethostname(plan.hostname.data(), plan.hostname.size()) != 0)
    report = {errno, "sethostname"};
  if (report.err == 0 && plan.net && plan.loopback_up) report = bring_loopback_up();
  const std::string_view bytes{reinterpret_cast<const char*>(&report), sizeof report};
  if (!sys::sendmsg(socket, bytes, {}, MSG_NOSIGNAL).ok()) _exit(1);
  std::array<char, 1> word{};
  // The end of the conversation: the parent has what it wants, or is dead.
  sys::recvmsg(socket, word).ignore("whatever it says, the child is done");
  _exit(0);
}

// REL-39: clone answers ENOSPC and nothing else when one of several limits is reached.
Error limit_reached(const NamespacePlan& plan, Error error) {
  std::string limits;
  for (const auto& kind : kKinds) {
    if (!(plan.*kind.wanted)) continue;
    auto value = read_file_at(AT_FDCWD, cat("/proc/sys/user/", kind.limit), 64);
    limits += cat(limits.empty() ? "" : ", ", "user.", kind.limit, " = ",
                  value.ok() ? trim(value.value()) : std::string_view{"?"});
  }
  return std::move(error)
      .context(cat("the limit on namespaces is reached (", limits, ")"))
      .code(Code::kUnsupported)
      .hint("raise the sysctl, or remove pods");
}

Result<Report> receive_report(int socket, Deadline deadline) {
  if (TRY(sys::poll_one(socket, POLLIN, deadline)) == 0)
    return Error::make(Code::kTimeout, "the child did not answer in time");
  Report report;
  std::array<char, sizeof report> bytes{};
  const auto received = TRY(sys::recvmsg(socket, bytes));
  if (received.size != sizeof report)
    return Error::make(Code::kProtocol, "the child ended before it was done");
  std::memcpy(&report, bytes.data(), sizeof report);
  return report;
}

Result<PodNamespaces> open_all(const NamespacePlan& plan, pid_t pid) {
  PodNamespaces out;
  // The child is ours and not reaped: its number cannot be another's.
  for (const auto& kind : kKinds) {
    if (plan.*kind.wanted)
      out.*kind.fd =
          TRY(sys::openat(AT_FDCWD, cat("/proc/", pid, "/ns/", kind.proc_name), O_RDONLY));
  }
  return out;
}

Result<PodNamespaces> converse(const NamespacePlan& plan, pid_t pid, int socket,
                               Deadline deadline) {
  const auto report = TRY(receive_report(socket, deadline));
  if (report.err != 0) return Error::sys(report.call, {}, report.err);
  return open_all(plan, pid);
}

}  // namespace

Result<PodNamespaces> make_namespaces(const NamespacePlan& plan, Deadline deadline) {
  CloneArgs args;
  for (const auto& kind : kKinds) {
    if (plan.*kind.wanted) args.flags |= kind.flag;
  }
  if (args.flags == 0) return PodNamespaces{};
  auto [ours, theirs] = TRY(sys::socketpair(SOCK_SEQPACKET));
  auto cloned = clone_process(args);
  if (!cloned.ok()) {
    auto error = std::move(cloned).error();
    if (error.sys_errno() == ENOSPC) error = limit_reached(plan, std::move(error));
    return std::move(error).context("make the pod's namespaces");
  }
  if (cloned->pid == 0) {
    ours.reset();
    child_main(plan, theirs.get());
  }
  theirs.reset();
  auto result = converse(plan, cloned->pid, ours.get(), deadline);
  // It has nothing to lose and nothing more to say: killed, it is reaped without a wait that could
  // last.
  sys::pidfd_send_signal(cloned->pidfd.get(), SIGKILL).ignore("it may have ended by itself");
  auto reaped = sys::waitid_pidfd(cloned->pidfd.get(), WEXITED);
  if (!result.ok()) return std::move(result).error().context("make the pod's namespaces");
  if (!reaped.ok()) return std::move(reaped).error().context("make the pod's namespaces");
  return std::move(result).value();
}

}  // namespace wherry::network
