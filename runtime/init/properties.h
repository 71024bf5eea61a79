// Properties of the payload's process that are the kernel's numbers: scheduling, memory policy,
// personality, labels.
#pragma once
#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace wherry::init {

struct Scheduling {  // sched_setattr(2)
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;  // nanoseconds
};

struct MemoryPolicy {  // set_mempolicy(2)
  int mode = 0;        // with its flags
  std::vector<unsigned long> nodes;
};

struct Label {
  std::string file;  // below /proc/PID: "attr/exec"
  std::string value;
};

struct Properties {
  std::optional<Scheduling> scheduler;
  std::optional<int> io_priority;            // ioprio_set(2)
  std::optional<cpu_set_t> affinity;         // after placement
  std::optional<unsigned long> personality;  // personality(2)
  std::optional<MemoryPolicy> memory_policy;
  std::vector<Label> labels;  // taken by the next execve

  // Not inherited by a child, or forbidding one: for an exec by a second process it is set on that.
  bool scheduler_ends_at_fork() const;
};

// Those that may need a capability of the initial user namespace: scheduler and I/O priority. 0:
// the caller itself.
Result<> set_scheduling(const Properties& properties, pid_t pid);
// Those that a process may only set itself, and may always set.
Result<> set_own_properties(const Properties& properties);
// `process` is the caller's directory of a procfs that nothing is mounted on (CVE-2019-19921). Each
// label is read back.
Result<> set_labels(const Properties& properties, int process);

}  // namespace wherry::init
