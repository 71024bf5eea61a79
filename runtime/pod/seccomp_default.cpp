#include "runtime/pod/seccomp_default.h"

#include <linux/sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <string_view>

namespace wherry::pod {
namespace {

constexpr const char* kAllow = "SCMP_ACT_ALLOW";
constexpr const char* kErrno = "SCMP_ACT_ERRNO";

// clang-format off
// By subject. A call stands here when an unprivileged process may make it and nothing in it reaches
// beyond the container's own namespaces; the forms of 32-bit ABIs stand beside the common one.
constexpr std::array kFiles{
    "access", "chdir", "chmod", "chown", "chown32", "close", "close_range", "copy_file_range",
    "creat", "dup", "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fadvise64_64",
    "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchown32", "fchownat",
    "fcntl", "fcntl64", "fdatasync", "fgetxattr", "flistxattr", "flock", "fremovexattr",
    "fsetxattr", "fstat", "fstat64", "fstatat64", "fstatfs", "fstatfs64", "fsync", "ftruncate",
    "ftruncate64", "futimesat", "getcwd", "getdents", "getdents64", "getxattr", "getxattrat",
    "lchown", "lchown32", "lgetxattr", "link", "linkat", "listxattr", "listxattrat",
    "llistxattr", "_llseek", "lremovexattr", "lseek", "lsetxattr", "lstat", "lstat64", "mkdir",
    "mkdirat", "mknod", "mknodat", "name_to_handle_at", "newfstatat", "open", "openat",
    "openat2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read",
    "readahead", "readlink", "readlinkat", "readv", "removexattr", "removexattrat", "rename",
    "renameat", "renameat2", "rmdir", "sendfile", "sendfile64", "setxattr", "setxattrat",
    "splice", "stat", "stat64", "statfs", "statfs64", "statx", "symlink", "symlinkat", "sync",
    "sync_file_range", "sync_file_range2", "syncfs", "tee", "truncate", "truncate64", "umask",
    "unlink", "unlinkat", "utime", "utimensat", "utimensat_time64", "utimes", "vmsplice",
    "write", "writev", "file_getattr", "file_setattr", "cachestat"};
constexpr std::array kWaiting{
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait",
    "epoll_pwait2", "epoll_wait", "epoll_wait_old", "eventfd", "eventfd2", "inotify_add_watch",
    "inotify_init", "inotify_init1", "inotify_rm_watch", "ioctl", "_newselect", "pipe", "pipe2",
    "poll", "ppoll", "ppoll_time64", "pselect6", "pselect6_time64", "select", "signalfd",
    "signalfd4", "timerfd_create", "timerfd_gettime", "timerfd_gettime64", "timerfd_settime",
    "timerfd_settime64", "io_cancel", "io_destroy", "io_getevents", "io_pgetevents",
    "io_pgetevents_time64", "io_setup", "io_submit"};
constexpr std::array kMemory{
    "brk", "madvise", "map_shadow_stack", "membarrier", "memfd_create", "memfd_secret",
    "mincore", "mlock", "mlock2", "mlockall", "mmap", "mmap2", "mprotect", "mremap", "mseal",
    "msync", "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free", "pkey_mprotect",
    "remap_file_pages", "process_mrelease", "process_madvise"};
constexpr std::array kProcesses{
    "alarm", "arch_prctl", "capget", "capset", "execve", "execveat", "exit", "exit_group",
    "fork", "get_robust_list", "get_thread_area", "getcpu", "getegid", "getegid32", "geteuid",
    "geteuid32", "getgid", "getgid32", "getgroups", "getgroups32", "getpgid", "getpgrp",
    "getpid", "getppid", "getpriority", "getresgid", "getresgid32", "getresuid", "getresuid32",
    "getrlimit", "getrusage", "getsid", "gettid", "getuid", "getuid32", "ioprio_get",
    "ioprio_set", "kill", "landlock_add_rule", "landlock_create_ruleset",
    "landlock_restrict_self", "modify_ldt", "pause", "pidfd_getfd", "pidfd_open",
    "pidfd_send_signal", "prctl", "prlimit64", "process_vm_readv", "process_vm_writev",
    "ptrace", "restart_syscall", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
    "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
    "rt_sigtimedwait_time64", "rt_tgsigqueueinfo", "sched_get_priority_max",
    "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
    "sched_getscheduler", "sched_rr_get_interval", "sched_rr_get_interval_time64",
    "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield",
    "seccomp", "set_robust_list", "set_thread_area", "set_tid_address", "setfsgid",
    "setfsgid32", "setfsuid", "setfsuid32", "setgid", "setgid32", "setgroups", "setgroups32",
    "setpgid", "setpriority", "setregid", "setregid32", "setresgid", "setresgid32", "setresuid",
    "setresuid32", "setreuid", "setreuid32", "setrlimit", "setsid", "setuid", "setuid32",
    "sigaltstack", "sigprocmask", "sigreturn", "sigsuspend", "sigpending", "sigaction",
    "signal", "tgkill", "tkill", "ugetrlimit", "uname", "vfork", "wait4", "waitid", "waitpid",
    "uretprobe", "uprobe"};
constexpr std::array kTime{
    "adjtimex", "clock_adjtime", "clock_adjtime64", "clock_getres", "clock_getres_time64",
    "clock_gettime", "clock_gettime64", "clock_nanosleep", "clock_nanosleep_time64",
    "getitimer", "gettimeofday", "nanosleep", "setitimer", "time", "timer_create",
    "timer_delete", "timer_getoverrun", "timer_gettime", "timer_gettime64", "timer_settime",
    "timer_settime64", "times"};
constexpr std::array kLocks{
    "futex", "futex_requeue", "futex_time64", "futex_wait", "futex_waitv", "futex_wake"};
constexpr std::array kSockets{
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt",
    "listen", "recv", "recvfrom", "recvmmsg", "recvmmsg_time64", "recvmsg", "send", "sendmmsg",
    "sendmsg", "sendto", "setsockopt", "shutdown", "socketcall", "socketpair"};
constexpr std::array kIpc{
    "ipc", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedreceive_time64",
    "mq_timedsend", "mq_timedsend_time64", "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd",
    "semctl", "semget", "semop", "semtimedop", "semtimedop_time64", "shmat", "shmctl", "shmdt",
    "shmget"};
constexpr std::array kOther{"getrandom", "sysinfo", "lsm_get_self_attr", "lsm_list_modules"};

// What a capability is for; without it these fail anyhow, and the kernel need not be asked.
constexpr std::array kReadSearch{"open_by_handle_at"};
constexpr std::array kAdmin{
    "bpf", "clone", "clone3", "fanotify_init", "fanotify_mark", "fsconfig", "fsmount", "fsopen",
    "fspick", "listmount", "lookup_dcookie", "lsm_set_self_attr", "mount", "mount_setattr",
    "move_mount", "open_tree", "open_tree_attr", "perf_event_open", "quotactl", "quotactl_fd",
    "setdomainname", "sethostname", "setns", "statmount", "syslog", "umount", "umount2",
    "unshare"};
constexpr std::array kBoot{"reboot"};
constexpr std::array kChroot{"chroot"};
constexpr std::array kModule{"delete_module", "finit_module", "init_module"};
constexpr std::array kPacct{"acct"};
constexpr std::array kPtrace{"kcmp"};
constexpr std::array kRawIo{"ioperm", "iopl"};
constexpr std::array kClock{"clock_settime", "clock_settime64", "settimeofday", "stime"};
constexpr std::array kTty{"vhangup"};
constexpr std::array kNice{
    "get_mempolicy", "mbind", "migrate_pages", "move_pages", "set_mempolicy",
    "set_mempolicy_home_node"};
constexpr std::array kSyslog{"syslog"};
constexpr std::array kBpf{"bpf"};
constexpr std::array kPerfmon{"perf_event_open"};
// clang-format on

struct Group {
  const char* capability;
  std::span<const char* const> names;
};
constexpr std::array kByCapability{Group{"CAP_DAC_READ_SEARCH", kReadSearch},
                                   Group{"CAP_SYS_ADMIN", kAdmin},
                                   Group{"CAP_SYS_BOOT", kBoot},
                                   Group{"CAP_SYS_CHROOT", kChroot},
                                   Group{"CAP_SYS_MODULE", kModule},
                                   Group{"CAP_SYS_PACCT", kPacct},
                                   Group{"CAP_SYS_PTRACE", kPtrace},
                                   Group{"CAP_SYS_RAWIO", kRawIo},
                                   Group{"CAP_SYS_TIME", kClock},
                                   Group{"CAP_SYS_TTY_CONFIG", kTty},
                                   Group{"CAP_SYS_NICE", kNice},
                                   Group{"CAP_SYSLOG", kSyslog},
                                   Group{"CAP_BPF", kBpf},
                                   Group{"CAP_PERFMON", kPerfmon}};

constexpr std::uint64_t kCloneNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                           CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                           CLONE_NEWNET;
// In clone(2) the low byte is the exit signal; only unshare(2) and clone3(2) know CLONE_NEWTIME.
constexpr std::uint64_t kUnshareNamespaces = kCloneNamespaces | CLONE_NEWTIME;

// What personality(2) may ask for: Linux in its 64-bit and 32-bit forms, with the old version
// number or not (the kernel's PER_LINUX, PER_LINUX32 and UNAME26), and the question for the present
// one.
constexpr std::array<std::uint64_t, 5> kPersonalities{0, 0x8, 0x20000, 0x20008, 0xffffffff};

void allow(oci::Seccomp& profile, std::span<const char* const> names) {
  oci::SeccompRule rule;
  rule.names.assign(names.begin(), names.end());
  rule.action = kAllow;
  profile.syscalls.push_back(std::move(rule));
}

void allow_when(oci::Seccomp& profile, const char* name, oci::SeccompArg arg) {
  oci::SeccompRule rule;
  rule.names = {name};
  rule.action = kAllow;
  rule.args = {std::move(arg)};
  profile.syscalls.push_back(std::move(rule));
}

std::vector<std::string> architectures() {
#if defined(__x86_64__)
  return {"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"};
#elif defined(__aarch64__)
  return {"SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"};
#else
  return {};  // the native one alone
#endif
}

}  // namespace

oci::Seccomp default_seccomp(const std::vector<std::string>& capabilities) {
  const auto has = [&](std::string_view name) {
    return std::find(capabilities.begin(), capabilities.end(), name) != capabilities.end();
  };
  oci::Seccomp profile;
  profile.default_action = kErrno;
  profile.default_errno_ret = EPERM;
  profile.architectures = architectures();
  const std::array<std::span<const char* const>, 9> always{
      kFiles, kWaiting, kMemory, kProcesses, kTime, kLocks, kSockets, kIpc, kOther};
  for (const auto names : always) allow(profile, names);
  for (const auto& group : kByCapability) {
    if (has(group.capability)) allow(profile, group.names);
  }
  if (!has("CAP_SYS_ADMIN")) {
    // SCMP_CMP_MASKED_EQ: value is the mask, value_two what must be left.
    allow_when(profile, "clone", {0, kCloneNamespaces, 0, "SCMP_CMP_MASKED_EQ"});
    allow_when(profile, "unshare", {0, kUnshareNamespaces, 0, "SCMP_CMP_MASKED_EQ"});
    oci::SeccompRule no_clone3;
    no_clone3.names = {"clone3"};
    no_clone3.action = kErrno;
    no_clone3.errno_ret = ENOSYS;
    profile.syscalls.push_back(std::move(no_clone3));
  }
  for (const auto persona : kPersonalities)
    allow_when(profile, "personality", {0, persona, 0, "SCMP_CMP_EQ"});
  // Sockets to the hypervisor pass by every network namespace.
  allow_when(profile, "socket", {0, AF_VSOCK, 0, "SCMP_CMP_NE"});
  return profile;
}

}  // namespace wherry::pod
