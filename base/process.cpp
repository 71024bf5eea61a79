#include "base/process.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry {
namespace {

struct StatLine {
  char state = '?';
  std::uint64_t start_ticks = 0;
};

// proc(5): "pid (comm) state ppid ..."; comm may hold blanks and parentheses, so fields are counted
// after the last ')'.
Result<StatLine> read_stat(pid_t pid) {
  auto text = read_file_at(AT_FDCWD, cat("/proc/", pid, "/stat"), 4096);
  if (!text.ok()) {
    if (text.error().sys_errno() == ENOENT || text.error().sys_errno() == ESRCH)
      return Error::make(Code::kNotFound, cat("there is no process ", pid));
    return std::move(text).error();
  }
  const std::string_view line = *text;
  const auto close = line.rfind(')');
  if (close == std::string_view::npos)
    return Error::make(Code::kProtocol, cat("/proc/", pid, "/stat has no ')'"));
  const auto fields = split(line.substr(close + 2), ' ');
  constexpr std::size_t kStartTime = 22 - 3;  // fields after comm start with number 3
  if (fields.size() <= kStartTime)
    return Error::make(Code::kProtocol, cat("/proc/", pid, "/stat is short"));
  const auto ticks = parse_int<std::uint64_t>(fields[kStartTime]);
  if (!ticks) return Error::make(Code::kProtocol, cat("/proc/", pid, "/stat: bad start time"));
  return StatLine{fields[0].empty() ? '?' : fields[0].front(), *ticks};
}

}  // namespace

Result<std::string> boot_id() {
  static std::string known;  // it changes with a boot, which this process does not outlive
  if (known.empty())
    known = trim(TRY(read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 128)));
  return known;
}

Result<ProcessIdentity> identify(pid_t pid) {
  const auto stat = TRY(read_stat(pid));
  auto boot = TRY(boot_id());
  return ProcessIdentity{pid, stat.start_ticks, std::move(boot)};
}

Result<char> process_state(pid_t pid) {
  return TRY(read_stat(pid)).state;
}

Result<UniqueFd> open_pidfd(const ProcessIdentity& who) {
  const auto gone = [&] {
    return Error::make(Code::kNotFound, cat("process ", who.pid, " is gone"));
  };
  if (who.pid <= 0 || who.boot_id != TRY(boot_id())) return gone();
  auto pidfd = sys::pidfd_open(who.pid);
  if (!pidfd.ok()) {
    if (pidfd.error().sys_errno() == ESRCH) return gone();
    return pidfd;
  }
  // Compared after the pidfd is held: the number cannot change hands any more.
  const auto stat = read_stat(who.pid);
  if (!stat.ok() || stat.value().start_ticks != who.start_ticks || stat.value().state == 'Z' ||
      stat.value().state == 'X')
    return gone();
  return pidfd;
}

bool single_threaded() {
  const auto tasks = sys::openat(AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY);
  if (!tasks.ok()) return true;  // no procfs to ask: nothing in this project makes a thread
  struct stat st {};
  return ::fstat(tasks.value().get(), &st) == 0 && st.st_nlink == 3;  // '.', '..' and one task
}

Result<Cloned> clone_process(const CloneArgs& args) {
  CHECK(single_threaded(), "a process with threads may not clone");
  clone_args raw{};
  int pidfd = -1;
  raw.flags = args.flags | CLONE_PIDFD;
  raw.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  // With CLONE_PARENT the child's death is signalled to our own parent; clone3 wants exit_signal 0
  // then (clone(2)).
  raw.exit_signal = (args.flags & CLONE_PARENT) != 0 ? 0 : SIGCHLD;
  if (args.cgroup_fd >= 0) {
    raw.flags |= CLONE_INTO_CGROUP;
    raw.cgroup = static_cast<std::uint64_t>(args.cgroup_fd);
  }
  long pid = ::syscall(SYS_clone3, &raw, sizeof raw);
  // A seccomp profile cannot look into clone3's arguments, so most answer ENOSYS and mean clone(2).
  if (pid < 0 && errno == ENOSYS && args.cgroup_fd < 0)
    pid = ::syscall(SYS_clone, raw.flags | raw.exit_signal, nullptr, &pidfd, nullptr, 0);
  if (pid < 0) return Error::sys("clone3");
  return Cloned{static_cast<pid_t>(pid), UniqueFd{pid == 0 ? -1 : pidfd}};
}

int exit_code_of(int wait_status) {
  if (WIFEXITED(wait_status)) return WEXITSTATUS(wait_status);
  if (WIFSIGNALED(wait_status)) return 128 + WTERMSIG(wait_status);
  return 255;
}

}  // namespace wherry
