// The kernel's numbers for the words of process.scheduler, ioPriority, execCPUAffinity,
// linux.personality and memoryPolicy.
#include "runtime/init/properties.h"

#include <linux/mempolicy.h>
#include <sys/personality.h>

#include <array>

#include "base/file.h"
#include "base/text.h"
#include "runtime/container/planner.h"

namespace wherry::container {
namespace {

struct Word {
  std::string_view word;
  std::uint64_t value;
};

// linux/sched.h and sched_setattr(2); SCHED_ISO is a number that no kernel of Linus's ever took.
constexpr std::array kPolicies = {
    Word{"SCHED_OTHER", 0},    Word{"SCHED_FIFO", 1}, Word{"SCHED_RR", 2},
    Word{"SCHED_BATCH", 3},    Word{"SCHED_ISO", 4},  Word{"SCHED_IDLE", 5},
    Word{"SCHED_DEADLINE", 6},
};
constexpr std::array kSchedulerFlags = {
    Word{"SCHED_FLAG_RESET_ON_FORK", 0x01},  Word{"SCHED_FLAG_RECLAIM", 0x02},
    Word{"SCHED_FLAG_DL_OVERRUN", 0x04},     Word{"SCHED_FLAG_KEEP_POLICY", 0x08},
    Word{"SCHED_FLAG_KEEP_PARAMS", 0x10},    Word{"SCHED_FLAG_UTIL_CLAMP_MIN", 0x20},
    Word{"SCHED_FLAG_UTIL_CLAMP_MAX", 0x40},
};
constexpr std::array kIoClasses = {Word{"IOPRIO_CLASS_RT", 1}, Word{"IOPRIO_CLASS_BE", 2},
                                   Word{"IOPRIO_CLASS_IDLE", 3}};
constexpr std::array kMemoryModes = {
    Word{"MPOL_DEFAULT", 0},
    Word{"MPOL_PREFERRED", 1},
    Word{"MPOL_BIND", 2},
    Word{"MPOL_INTERLEAVE", 3},
    Word{"MPOL_LOCAL", 4},
    Word{"MPOL_PREFERRED_MANY", 5},
    Word{"MPOL_WEIGHTED_INTERLEAVE", 6},
};
constexpr std::array kMemoryFlags = {Word{"MPOL_F_STATIC_NODES", 1U << 15},
                                     Word{"MPOL_F_RELATIVE_NODES", 1U << 14},
                                     Word{"MPOL_F_NUMA_BALANCING", 1U << 13}};

template <std::size_t N>
Result<std::uint64_t> value_of(const std::array<Word, N>& table, std::string_view word,
                               std::string_view field) {
  for (const auto& known : table)
    if (known.word == word) return known.value;
  return Error::make(Code::kInvalid, cat(field, ": ", in_quotes(word), " is not known"));
}

// "0-3,7" as numbers below `most`.
Result<std::vector<unsigned>> numbers(std::string_view list, unsigned most,
                                      std::string_view field) {
  std::vector<unsigned> all;
  if (trim(list).empty()) return all;
  for (const auto part : split(list, ',')) {
    const auto range = trim(part);
    const auto dash = range.find('-');
    const auto first = parse_int<unsigned>(trim(range.substr(0, dash)));
    const auto last =
        dash == std::string_view::npos ? first : parse_int<unsigned>(trim(range.substr(dash + 1)));
    if (!first || !last || *first > *last || *last >= most)
      return Error::make(Code::kInvalid, cat(field, ": ", in_quotes(range),
                                             " is not a range of numbers below ", most));
    for (auto number = *first; number <= *last; ++number) all.push_back(number);
  }
  return all;
}

Result<init::Scheduling> scheduling_of(const oci::Scheduler& scheduler) {
  init::Scheduling out;
  out.policy = static_cast<std::uint32_t>(
      TRY(value_of(kPolicies, scheduler.policy, "process.scheduler.policy")));
  for (const auto& flag : scheduler.flags)
    out.flags |= TRY(value_of(kSchedulerFlags, flag, "process.scheduler.flags"));
  out.nice = scheduler.nice;
  out.priority = static_cast<std::uint32_t>(scheduler.priority);
  out.runtime = scheduler.runtime;
  out.deadline = scheduler.deadline;
  out.period = scheduler.period;
  return out;
}

Result<init::MemoryPolicy> memory_policy_of(const oci::MemoryPolicy& policy) {
  constexpr unsigned kMostNodes = 1024, kBits = sizeof(unsigned long) * 8;
  init::MemoryPolicy out;
  out.mode = static_cast<int>(TRY(value_of(kMemoryModes, policy.mode, "linux.memoryPolicy.mode")));
  for (const auto& flag : policy.flags)
    out.mode |= static_cast<int>(TRY(value_of(kMemoryFlags, flag, "linux.memoryPolicy.flags")));
  const auto nodes = TRY(numbers(policy.nodes, kMostNodes, "linux.memoryPolicy.nodes"));
  for (const auto node : nodes) {
    if (out.nodes.size() <= node / kBits) out.nodes.resize(node / kBits + 1);
    out.nodes[node / kBits] |= 1UL << (node % kBits);
  }
  return out;
}

bool has_apparmor() {
  const auto text = read_file_at(AT_FDCWD, "/sys/module/apparmor/parameters/enabled", 16);
  return text.ok() && text.value().starts_with('Y');
}
bool has_selinux() {
  const auto text = read_file_at(AT_FDCWD, "/proc/filesystems", 65536);
  return text.ok() && text.value().find("selinuxfs") != std::string::npos;
}

Result<> plan_labels(const oci::Process& process, init::Properties& out) {
  // "unconfined" is what a process is without AppArmor as well.
  const auto& profile = process.apparmor_profile;
  if (!profile.empty() && (profile != "unconfined" || has_apparmor())) {
    if (!has_apparmor())
      return Error::make(Code::kUnsupported,
                         cat("process.apparmorProfile: ", in_quotes(profile),
                             " cannot be had: AppArmor is not enabled in this kernel"));
    // Linux 5.8 has a directory of its own for each security module.
    const bool own = sys::fstatat(AT_FDCWD, "/proc/thread-self/attr/apparmor/exec").ok();
    out.labels.push_back({own ? "attr/apparmor/exec" : "attr/exec", "exec " + profile});
  }
  if (process.selinux_label.empty()) return {};
  if (!has_selinux())
    return Error::make(Code::kUnsupported,
                       cat("process.selinuxLabel: ", in_quotes(process.selinux_label),
                           " cannot be had: SELinux is not enabled in this kernel"));
  out.labels.push_back({"attr/exec", process.selinux_label});
  return {};
}

}  // namespace

Result<cpu_set_t> cpu_set(const std::string& list, std::string_view field) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const auto cpus = TRY(numbers(list, CPU_SETSIZE, field));
  for (const auto cpu : cpus) CPU_SET(cpu, &set);
  return set;
}

Result<> check_mount_label(const std::string& label) {
  if (label.empty() || has_selinux()) return {};
  return Error::make(Code::kUnsupported,
                     cat("linux.mountLabel: ", in_quotes(label),
                         " cannot be had: SELinux is not enabled in this kernel"));
}

Result<> plan_properties(const oci::Process& process, const oci::Linux& linux_,
                         init::Properties& out) {
  constexpr int kClassShift = 13;  // ioprio_set(2)
  if (process.scheduler) out.scheduler = TRY(scheduling_of(*process.scheduler));
  if (process.io_priority)
    out.io_priority = static_cast<int>(TRY(value_of(kIoClasses, process.io_priority->class_name,
                                                    "process.ioPriority.class")))
                          << kClassShift |
                      process.io_priority->priority;
  if (linux_.personality)
    out.personality = linux_.personality->domain == "LINUX32" ? PER_LINUX32 : PER_LINUX;
  if (linux_.memory_policy) out.memory_policy = TRY(memory_policy_of(*linux_.memory_policy));
  return plan_labels(process, out);
}

}  // namespace wherry::container
