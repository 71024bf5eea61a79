// A container's place in all cgroup hierarchies as one object: the v2 directory and, on a hybrid
// host, one v1 directory per controller that is bound there. Nothing here knows what a container
// is.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "oci/spec.h"

namespace wherry::cgroups {

// Pure v2; or v2 for kill, freeze and BPF and v1 for (most of) the controllers.
enum class Driver : std::uint8_t { kUnified, kHybrid };

// Where the hierarchies are mounted, found from mountinfo (never assumed), and what each drives.
struct Hierarchies {
  Driver driver = Driver::kUnified;
  std::string unified;  // mount point of cgroup2
  // controller ("memory", "cpu", "name=systemd") -> mount point
  std::map<std::string, std::string> v1;
  std::vector<std::string> unified_controllers;  // cgroup.controllers at the mount point
};
// kUnsupported, naming what is missing, when there is no cgroup2 mount.
Result<Hierarchies> discover();

// "/wherry/pod/web" is a path, "/" is none: no component may be empty, ".", "..", longer than 255
// bytes or hold control characters (SEC-53). kInvalid names the component.
Result<> check_path(const std::string& path);

// One write to one file: what to_writes() gives.
struct Write {
  std::string controller;  // v1 hierarchy in which the file is; "": the v2 directory
  std::string file, value;
  // A file of the same directory whose number must not be above `value`: apply() refuses with
  // kState otherwise (memory.checkBeforeUpdate).
  std::string not_below = {};
  bool operator==(const Write&) const = default;
};
// OCI resources -> writes, in the order in which the kernel takes them. Pure: each controller's
// file names follow from who drives it in `hierarchies`. A setting that the driver does not have,
// or whose controller the host does not have, is kUnsupported and names the field
// ("linux.resources.memory.kernel: ..."). Device rules are not written here (bpf/ does them).
Result<std::vector<Write>> to_writes(const oci::Resources& resources,
                                     const Hierarchies& hierarchies);
// The controllers that a place for `resources` needs, by their v2 names ("io", not "blkio"):
// memory, cpu and pids always (statistics, OOM, fair shares), others when one of their settings is
// there.
std::vector<std::string> needed_controllers(const oci::Resources& resources);
// cpu.shares (2 to 262,144, default 1,024) -> cpu.weight (1 to 10,000, default 100), by the curve
// through both ends and both defaults that runc 1.3.2 and crun 1.23 use (opencontainers/cgroups
// pull request 20). 0 stays 0: not set.
std::uint64_t weight_of_shares(std::uint64_t shares);

struct OomCount {
  std::uint64_t kills = 0;        // v2: oom_kill of this group and all below; v1: of this group
  std::uint64_t group_kills = 0;  // oom_group_kill; 0 where the driver does not tell
};
// In v2 terms on both drivers; absent where the kernel does not tell, or where there is no maximum.
struct Stats {
  std::optional<std::uint64_t> cpu_usage_usec, cpu_user_usec, cpu_system_usec;
  std::optional<std::uint64_t> nr_throttled, throttled_usec;
  std::optional<std::uint64_t> memory_current, memory_peak, memory_max, working_set;  // bytes
  std::optional<std::uint64_t> pids_current, pids_max;
};

// Puts the calling process, which must have one thread, into the v1 hierarchies that
// Place::open_self_placement() opened. For the child between clone and exec, before it unshares its
// cgroup namespace.
Result<> place_self(std::span<const UniqueFd> files);

// Which directory of a place it is: the inode number tells it from a later one of the same name,
// since cgroupfs gives none twice while the machine runs (kernfs on 64 bits, Linux 5.5).
struct DirectoryId {
  std::string controller;   // "": the v2 directory; else the first controller of the v1 hierarchy
  std::uint64_t inode = 0;  // 0: not known (yet)
  bool operator==(const DirectoryId&) const = default;
};

class Place {
 public:
  Place(Place&&) = default;
  Place& operator=(Place&&) = default;

  // Makes the directory `path` ("/wherry/<pod>/<container>", relative to each hierarchy's root, see
  // check_path()) in the v2 hierarchy and in the v1 hierarchies of `controllers` (v2 names),
  // parents included, and enables the controllers on the way. An empty directory of that name is
  // made anew; kExists names the processes or the groups in one that has some. kBusy when a parent
  // cannot hand on controllers because processes are in it; the error names them (REL-18). A
  // failure takes away what it made.
  static Result<Place> create(const Hierarchies& hierarchies, const std::string& path,
                              const std::vector<std::string>& controllers);
  // The place that is there already; missing v1 parts are tolerated. kNotFound when the v2
  // directory is gone.
  static Result<Place> open(const Hierarchies& hierarchies, const std::string& path);
  // The same of these very directories; others of that path are somebody else's and no part of the
  // place. kNotFound when the v2 directory is none of them.
  static Result<Place> open(const Hierarchies& hierarchies, const std::string& path,
                            const std::vector<DirectoryId>& own);
  // What create() is going to make, with inode 0; and what it has made.
  static std::vector<DirectoryId> planned(const Hierarchies& hierarchies,
                                          const std::vector<std::string>& controllers);
  Result<std::vector<DirectoryId>> directories() const;
  // Removes those of `own` that are there, as remove() does, whether or not the v2 one still is.
  // Of inode 0: whichever is there, but only when nothing is in it.
  static Result<> remove(const Hierarchies& hierarchies, const std::string& path,
                         const std::vector<DirectoryId>& own, Deadline deadline);

  const std::string& path() const { return path_; }
  // The v2 directory, for CLONE_INTO_CGROUP and BPF; owned by the Place.
  int unified_fd() const { return unified_.self.get(); }
  // Hybrid: the v1 hierarchies want place_self() in the child, or add().
  bool needs_placement() const { return !v1_.empty(); }

  // Into the v1 hierarchies, the fast way: these descriptors (`tasks` files, close-on-exec) are
  // opened before the clone and the child calls place_self() on them. A task that moves itself
  // alone takes no lock (Linux 5.5): 0.1 ms for all hierarchies together, where a move by another
  // process waits for an RCU grace period, 10 ms and more on an idle machine (measured on 6.18).
  Result<std::vector<UniqueFd>> open_self_placement() const;
  // The slow way: into the v1 hierarchies only; the v2 one is for clone3.
  Result<> add(pid_t pid) const;
  // Into the v2 hierarchy as well: for a process that is there already.
  Result<> add_everywhere(pid_t pid) const;
  // A v2 directory below this one in which an exec'd process can be born (CLONE_INTO_CGROUP), to be
  // killed or frozen by itself. It has no controllers, so that the place may have processes of its
  // own: limits and statistics stay with the place. Open it again as Place::open(path()/name).
  Result<UniqueFd> make_leaf(const std::string& name) const;

  // Stops at the first failure; file and value are in the error. A write that the kernel refuses
  // only because of the old value of the one that follows (memory and memory+swap raised together)
  // is made after it.
  Result<> apply(const std::vector<Write>& writes) const;
  Result<std::string> read(const std::string& controller, const std::string& file) const;

  // cgroup.kill (Linux 5.14): all processes of the group and below, forks included. A group that is
  // gone is success.
  Result<> kill() const;
  Result<> freeze(Deadline deadline) const;  // waits for `frozen 1`; thaws again at the deadline
  Result<> thaw() const;
  Result<bool> frozen() const;                   // a group that is gone is neither frozen ...
  Result<bool> populated() const;                // ... nor populated
  Result<std::vector<pid_t>> processes() const;  // of the group and all below
  // poll(POLLPRI) on cgroup.events; kTimeout names pids that are left.
  Result<> wait_empty(Deadline deadline) const;
  Result<UniqueFd> open_events() const;  // cgroup.events for the caller's own poll(POLLPRI)

  // memory.events or v1 memory.oom_control; kUnsupported when the place has no memory controller.
  Result<OomCount> oom_count() const;
  // v2: memory.events (POLLPRI; read it again after each). v1: an eventfd (POLLIN) armed for
  // memory.oom_control, which also fires when the group is removed: compare oom_count() before it
  // is believed.
  Result<UniqueFd> open_oom_events() const;
  Result<Stats> stats() const;

  // Removes the directories, children first, with descriptors, retrying EBUSY until the deadline;
  // missing ones are fine, and one that somebody else made in its place stays. kTimeout says which
  // directory and which processes are left. Kills nothing.
  Result<> remove(Deadline deadline) const;

 private:
  struct Directory {
    std::string mount_point;               // for messages
    std::vector<std::string> controllers;  // v1: those of this hierarchy
    UniqueFd parent, self;
    std::string key() const { return controllers.empty() ? "" : controllers.front(); }
  };
  Place() = default;
  // `key`: Directory::key() of a v1 hierarchy.
  static Result<Place> open_parts(const Hierarchies& hierarchies, const std::string& path,
                                  const std::function<bool(const std::string& key)>& wanted);
  static Result<> open_directory_of(Directory& directory, const std::string& path);
  static std::vector<Directory> v1_directories(const Hierarchies& hierarchies);
  const Directory* find(const std::string& controller) const;
  std::string name_of(const Directory& directory) const;  // its whole path, for messages

  std::string path_, name_;
  Directory unified_;
  std::vector<Directory> v1_;
};

}  // namespace wherry::cgroups
