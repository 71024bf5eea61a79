// A container's place in all cgroup hierarchies as one object: the v2 directory and, on a hybrid host, one v1 directory
// per controller that is bound there. Nothing here knows what a container is.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "oci/spec.h"

namespace wherry::cgroups {

enum class Driver : std::uint8_t { kUnified, kHybrid };  // pure v2; v2 for kill/freeze/BPF and v1 for the controllers

// Where the hierarchies are mounted, found from mountinfo (never assumed), and which controllers each drives.
struct Hierarchies {
  Driver driver = Driver::kUnified;
  std::string unified;                        // mount point of cgroup2
  std::map<std::string, std::string> v1;      // controller ("memory", "cpu", "name=systemd") -> mount point
  std::vector<std::string> unified_controllers;  // cgroup.controllers at the mount point
};
Result<Hierarchies> discover();  // kUnsupported, naming what is missing, when there is no cgroup2 mount

// One write to one file: what to_writes() gives. `controller` is "" for a file of the v2 directory.
struct Write {
  std::string controller, file, value;
  bool operator==(const Write&) const = default;
};
// OCI resources -> writes, in the order in which the kernel takes them. Pure. A setting that the driver does not have
// is an error that names the field; device rules are not written here (bpf/ does them).
Result<std::vector<Write>> to_writes(const oci::Resources& resources, Driver driver);
// The controllers that `resources` needs, so that only those are enabled or placed.
std::vector<std::string> needed_controllers(const oci::Resources& resources);

struct OomCount {
  std::uint64_t kills = 0;        // oom_kill of this group
  std::uint64_t group_kills = 0;  // oom_group_kill; 0 where the driver does not tell
};
struct Stats {  // in v2 terms on both drivers; absent where the kernel does not tell
  std::optional<std::uint64_t> cpu_usage_usec, cpu_user_usec, cpu_system_usec, nr_throttled, throttled_usec;
  std::optional<std::uint64_t> memory_current, memory_peak, memory_max, working_set;  // bytes
  std::optional<std::uint64_t> pids_current, pids_max;
};

class Place {
 public:
  // Makes the directory `path` ("/wherry/<pod>/<container>", relative to each hierarchy's root; components are checked:
  // no "..", no empty, no control characters) in the v2 hierarchy and in every v1 hierarchy that is used, parents
  // included, and enables the needed controllers on the way. kExists when the last directory is there and not empty of
  // processes. A failure takes away what it made.
  static Result<Place> create(const Hierarchies& hierarchies, const std::string& path,
                              const std::vector<std::string>& controllers);
  // The place that is there already; missing v1 parts are tolerated. kNotFound when the v2 directory is gone.
  static Result<Place> open(const Hierarchies& hierarchies, const std::string& path);

  const std::string& path() const;
  int unified_fd() const;                 // v2 directory, for CLONE_INTO_CGROUP and BPF; owned by the Place
  bool needs_placement() const;           // hybrid: the v1 hierarchies want add()
  Result<> add(pid_t pid) const;          // into the v1 hierarchies only; the v2 one is for clone3
  Result<> add_everywhere(pid_t pid) const;  // v2 as well: for a process that is there already
  Result<> apply(const std::vector<Write>& writes) const;  // stops at the first failure; the value is in the error
  Result<std::string> read(const std::string& controller, const std::string& file) const;

  Result<> kill() const;                  // cgroup.kill (Linux 5.14): all processes of the group and below, forks included
  Result<> freeze(Deadline deadline) const;  // waits for `frozen 1`; thaws again when the deadline passes
  Result<> thaw() const;
  Result<bool> frozen() const;
  Result<bool> populated() const;         // cgroup.events; a group that is gone is not populated
  Result<std::vector<pid_t>> processes() const;  // of the group and all below
  Result<> wait_empty(Deadline deadline) const;  // poll(POLLPRI) on cgroup.events; kTimeout names pids that are left
  Result<UniqueFd> open_events() const;   // cgroup.events for the caller's own poll(POLLPRI)

  Result<OomCount> oom_count() const;     // memory.events{,.local} or v1 memory.oom_control's oom_kill
  Result<UniqueFd> open_oom_events() const;  // v2: memory.events (POLLPRI); v1: an eventfd armed for memory.oom_control
  Result<Stats> stats() const;

  // Removes the directories, children first, with descriptors, retrying EBUSY until the deadline; missing ones are fine.
  // kTimeout says which directory and which processes are left.
  Result<> remove(Deadline deadline) const;
};

}  // namespace wherry::cgroups
