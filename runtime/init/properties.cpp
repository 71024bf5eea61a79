#include "runtime/init/properties.h"

#include <fcntl.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry::init {
namespace {

constexpr int kIoprioProcess = 1;  // IOPRIO_WHO_PROCESS; linux/ioprio.h is C only

// sched_setattr(2), of Linux 3.14: SCHED_ATTR_SIZE_VER0. The C library has it or not.
struct SchedulerAttributes {
  std::uint32_t size, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
};
static_assert(sizeof(SchedulerAttributes) == 48);

Result<> set_scheduler(const Scheduling& wanted, pid_t pid) {
  SchedulerAttributes raw{};
  raw.size = sizeof raw;
  raw.policy = wanted.policy;
  raw.flags = wanted.flags;
  raw.nice = wanted.nice;
  raw.priority = wanted.priority;
  raw.runtime = wanted.runtime;
  raw.deadline = wanted.deadline;
  raw.period = wanted.period;
  if (::syscall(SYS_sched_setattr, pid, &raw, 0) < 0)
    return Error::sys("sched_setattr", cat("process.scheduler: policy ", wanted.policy))
        .hint(
            "EPERM: CAP_SYS_NICE, or a cgroup without real-time budget; EINVAL: this kernel does "
            "not know the policy, or the values do not fit together");
  return {};
}

}  // namespace

bool Properties::scheduler_ends_at_fork() const {
  constexpr std::uint32_t kDeadline = 6;     // SCHED_DEADLINE
  constexpr std::uint64_t kResetOnFork = 1;  // SCHED_FLAG_RESET_ON_FORK
  return scheduler && (scheduler->policy == kDeadline || (scheduler->flags & kResetOnFork) != 0);
}

Result<> set_scheduling(const Properties& properties, pid_t pid) {
  if (properties.scheduler) TRY(set_scheduler(*properties.scheduler, pid));
  if (!properties.io_priority) return {};
  if (::syscall(SYS_ioprio_set, kIoprioProcess, pid, *properties.io_priority) < 0)
    return Error::sys("ioprio_set", "process.ioPriority")
        .hint("the real-time class needs CAP_SYS_ADMIN or CAP_SYS_NICE");
  return {};
}

Result<> set_own_properties(const Properties& properties) {
  if (properties.affinity && ::sched_setaffinity(0, sizeof(cpu_set_t), &*properties.affinity) < 0)
    return Error::sys("sched_setaffinity", "process.execCPUAffinity.final")
        .hint("none of these CPUs belongs to the container's cpuset");
  if (properties.personality && ::personality(*properties.personality) < 0)
    return Error::sys("personality", "linux.personality");
  if (!properties.memory_policy) return {};
  const auto& policy = *properties.memory_policy;
  // The kernel takes one bit less than it is told of (set_mempolicy(2), BUGS).
  const auto bits = policy.nodes.size() * sizeof(unsigned long) * 8;
  if (::syscall(SYS_set_mempolicy, policy.mode,
                policy.nodes.empty() ? nullptr : policy.nodes.data(),
                policy.nodes.empty() ? 0 : bits + 1) < 0)
    return Error::sys("set_mempolicy", "linux.memoryPolicy")
        .hint(
            "EINVAL: the mode or a flag is not known to this kernel, or a node does not exist; "
            "ENOSYS: it has no NUMA support");
  return {};
}

Result<> set_labels(const Properties& properties, int process) {
  for (const auto& label : properties.labels) {
    TRY_CTX(write_kernel_file(process, label.file, label.value), "label of the process");
    const auto file = TRY(open_plain(process, label.file, O_RDONLY));
    const auto taken = TRY(sys::read_to_end(file.get(), 65536, label.file));
    const auto wanted =
        label.value.starts_with("exec ") ? label.value.substr(5) : std::string{label.value};
    // AppArmor adds the mode: "name (enforce)".
    std::string_view plain = taken;
    while (!plain.empty() && (plain.back() == '\0' || plain.back() == '\n')) plain.remove_suffix(1);
    if (plain != wanted && !plain.starts_with(wanted + " ("))
      return Error::make(Code::kDenied, cat("the kernel took ", in_quotes(plain), " for the label ",
                                            in_quotes(wanted)));
  }
  return {};
}

}  // namespace wherry::init
