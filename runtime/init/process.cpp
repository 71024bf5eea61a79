#include "runtime/init/process.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/mount.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry::init {
namespace {

Result<UniqueFd> private_procfs() {
  const auto fs = TRY(sys::fsopen("proc"));
  TRY(sys::fsconfig_create(fs.get()));
  return sys::fsmount(fs.get(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

Result<> write_sysctl(int proc, const std::string& path, const std::string& value) {
  TRY(write_kernel_file(proc, "sys/" + path, value));
  const auto file = TRY(open_plain(proc, "sys/" + path, O_RDONLY));
  const auto taken = TRY(sys::read_to_end(file.get(), 65536, path));
  // Numbers come back in the kernel's own spacing ("1 2" as "1\t2").
  const auto plain = [](std::string_view text) {
    std::string out;
    for (const auto word : split(trim(text), ' '))
      for (const auto piece : split(word, '\t'))
        if (!piece.empty()) out += cat(piece, " ");
    return out;
  };
  if (plain(taken) != plain(value))
    return Error::make(Code::kInvalid, cat("sysctl '", path, "' is '", trim(taken),
                                           "' after writing '", value, "'"));
  return {};
}

Result<UniqueFd> above(int fd, int least) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, least);
  if (copy < 0) return Error::sys("fcntl(F_DUPFD_CLOEXEC)", cat("fd ", fd));
  return UniqueFd{copy};
}

Result<> set_stdio(const Plan& plan, const UniqueFd& terminal, int least) {
  std::array<UniqueFd, 3> sources;
  for (std::size_t i = 0; i < 3; ++i)
    sources[i] = TRY(above(terminal ? terminal.get() : plan.stdio[i], least));
  for (std::size_t i = 0; i < 3; ++i)
    if (::dup2(sources[i].get(), static_cast<int>(i)) < 0) return Error::sys("dup2", cat("fd ", i));
  // Of an exec into a pid namespace it is the second process that leads the session.
  if (terminal && !plan.pid_namespace && ::ioctl(0, TIOCSCTTY, 0) < 0)
    return Error::sys("ioctl(TIOCSCTTY)");
  if (!terminal && !plan.user_namespace) give_pipes({0, 1, 2}, plan.uid);
  return {};
}

// Closes everything from `first` on but `kept`, which is sorted.
Result<> close_all_but(unsigned first, std::vector<unsigned> kept) {
  std::sort(kept.begin(), kept.end());
  for (const unsigned fd : kept) {
    if (fd < first) continue;
    if (fd > first) TRY(sys::close_range(first, fd - 1));
    first = fd + 1;
  }
  return sys::close_range(first, ~0U);
}

}  // namespace

std::vector<UniqueFd*> RootPlan::trees() {
  std::vector<UniqueFd*> all{&root};
  for (auto& mount : mounts) all.push_back(&mount.tree);
  for (auto& device : device_binds) all.push_back(&device.tree);
  return all;
}

Result<> keep_only_planned(const Plan& plan, int channel) {
  std::vector<unsigned> kept;
  const auto keep = [&](int fd) {
    if (fd >= 0) kept.push_back(static_cast<unsigned>(fd));
  };
  keep(channel);
  for (const int fd : plan.stdio) keep(fd);
  for (const auto& ns : plan.joins) keep(ns.fd.get());
  keep(plan.pid_namespace.get());
  for (const auto& file : plan.placement) keep(file.get());
  keep(plan.gate.get());
  keep(plan.result.get());
  if (plan.root) {
    keep(plan.root->root.get());
    for (const auto& mount : plan.root->mounts) keep(mount.tree.get());
    for (const auto& device : plan.root->device_binds) keep(device.tree.get());
  }
  return close_all_but(3 + plan.preserve_fds, std::move(kept));
}

void give_pipes(const std::array<int, 3>& stdio, uid_t uid) {
  for (const int fd : stdio) {
    const auto st = sys::fstat(fd);
    if (st.ok() && S_ISFIFO(st.value().st_mode) && st.value().st_uid != uid)
      sys::fchown(fd, uid, static_cast<gid_t>(-1))
          .ignore("a pipe of another user namespace stays his");
  }
}

Result<> make_dirs(int root, const std::string& path) {
  TRY(make_dirs_in_root(root, path, 0755)).reset();
  return {};
}

Result<> new_session() {
  // A process group leader cannot (EPERM), but a fresh clone is none.
  if (::setsid() < 0) return Error::sys("setsid");
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  // EINVAL: SIGKILL, SIGSTOP and what the C library keeps for itself.
  for (int signum = 1; signum < NSIG; ++signum)
    if (::sigaction(signum, &plain, nullptr) < 0 && errno != EINVAL)
      return Error::sys("sigaction", cat(signum));
  sigset_t none;
  sigemptyset(&none);
  if (::sigprocmask(SIG_SETMASK, &none, nullptr) < 0) return Error::sys("sigprocmask");
  return {};
}

Result<> set_names(const Plan& plan) {
  if (!plan.hostname.empty() && ::sethostname(plan.hostname.data(), plan.hostname.size()) < 0)
    return Error::sys("sethostname", plan.hostname);
  if (!plan.domainname.empty() &&
      ::setdomainname(plan.domainname.data(), plan.domainname.size()) < 0)
    return Error::sys("setdomainname", plan.domainname);
  return {};
}

Result<> bring_up_loopback() {
  const UniqueFd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (!socket) return Error::sys("socket", "AF_INET");
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) < 0)
    return Error::sys("ioctl(SIOCSIFFLAGS)", "lo");
  return {};
}

Result<UniqueFd> open_procfs(const Plan& plan) {
  const bool limits = plan.oom_score_adj && !plan.user_namespace;
  if (plan.sysctls.empty() && plan.properties.labels.empty() && !limits) return UniqueFd{};
  return private_procfs();
}

Result<> set_sysctls(const Plan& plan, const UniqueFd& procfs) {
  for (const auto& [path, value] : plan.sysctls) TRY(write_sysctl(procfs.get(), path, value));
  return {};
}

Result<> set_limits(const Plan& plan, pid_t pid, int process) {
  for (const auto& [name, resource, value] : plan.rlimits)
    if (::prlimit(pid, static_cast<__rlimit_resource>(resource), &value, nullptr) < 0)
      return Error::sys("prlimit", cat(name, " = ", value.rlim_cur, ":", value.rlim_max))
          .hint("raising a hard limit needs CAP_SYS_RESOURCE");
  if (!plan.pid_namespace || !plan.properties.scheduler_ends_at_fork())
    TRY(set_scheduling(plan.properties, pid));
  if (!plan.oom_score_adj) return {};
  auto set = write_kernel_file(process, "oom_score_adj", cat(*plan.oom_score_adj));
  if (!set.ok() && (set.error().sys_errno() == EACCES || set.error().sys_errno() == EPERM))
    return std::move(set).error().hint("lowering it below our own needs CAP_SYS_RESOURCE");
  return set;
}

Result<> set_own(const Plan& plan, const UniqueFd& procfs) {
  UniqueFd process;
  // "self" by its number: no link is followed in there. It is the number in the namespace that the
  // procfs was made in.
  if (procfs)
    process = TRY(sys::openat2(procfs.get(), TRY(sys::readlinkat(procfs.get(), "self")),
                               O_PATH | O_DIRECTORY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS));
  if (!plan.user_namespace) TRY(set_limits(plan, 0, process.get()));
  TRY(set_own_properties(plan.properties));
  return set_labels(plan.properties, process.get());
}

Result<> become_root_inside() {
  if (::syscall(SYS_setgroups, 0, nullptr) < 0) return Error::sys("setgroups");
  if (::syscall(SYS_setresgid, 0, 0, 0) < 0) return Error::sys("setresgid", "0");
  if (::syscall(SYS_setresuid, 0, 0, 0) < 0) return Error::sys("setresuid", "0");
  // The change of ids has made the process dumpable again (CVE-2016-9962).
  return sys::prctl(PR_SET_DUMPABLE, 0);
}

Result<> new_keyring(const Plan& plan) {
  if (!plan.new_keyring) return {};
  // Without a name: by name one that is there already would be joined, of an earlier container of
  // the same id or of another runtime's (keyctl_join_session_keyring(3)).
  const long key = ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr, 0, 0, 0);
  if (key >= 0 || errno == ENOSYS) return {};  // a kernel without keyrings has none to share
  return Error::sys("keyctl(JOIN_SESSION_KEYRING)")
      .hint(
          "kernel.keys.maxkeys is the quota of keys a user may have; --no-new-keyring shares the "
          "caller's");
}

Result<> enter_working_directory(const std::string& cwd) {
  const auto root = TRY(sys::openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
  const auto dir = TRY(open_in_root(root.get(), cwd, O_PATH | O_DIRECTORY));
  TRY(sys::fchdir(dir.get(), cwd));
  std::array<char, 4096> where{};
  if (::syscall(SYS_getcwd, where.data(), where.size()) < 0) return Error::sys("getcwd", cwd);
  if (where[0] != '/')
    return Error::make(Code::kDenied,
                       cat("working directory '", cwd, "' is outside of the container"));
  return {};
}

Result<UniqueFd> open_exec_terminal(const Plan& plan, const Channel& channel) {
  const auto root = TRY(sys::openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
  auto terminal = TRY(mount::open_terminal(root.get(), plan.console_size, plan.uid));
  TRY(channel.send({.step = Step::kConsole, .text = {}, .fd = std::move(terminal.master)}));
  return std::move(terminal.slave);
}

Result<> arrange_descriptors(Plan& plan, int channel, const UniqueFd& terminal) {
  const int first = 3 + static_cast<int>(plan.preserve_fds);
  std::vector<unsigned> kept{static_cast<unsigned>(channel)};
  for (UniqueFd* fd : {&plan.gate, &plan.result, &plan.pid_namespace}) {
    if (!*fd) continue;
    if (fd->get() < first) *fd = TRY(above(fd->get(), first));
    kept.push_back(static_cast<unsigned>(fd->get()));
  }
  CHECK(channel >= first, "the channel is made after the preserved descriptors");
  TRY(set_stdio(plan, terminal, first));
  return close_all_but(static_cast<unsigned>(first), std::move(kept));
}

}  // namespace wherry::init
