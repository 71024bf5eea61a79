// All that the process between clone and exec has to do, finished: parsed, checked, opened,
// compiled. Nothing is decided in the child.
#pragma once
#include <linux/filter.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "mount/root.h"
#include "oci/spec.h"
#include "oci/state.h"
#include "runtime/init/properties.h"

namespace wherry::init {

struct CapabilitySets {  // bit masks by capability number
  std::uint64_t bounding = 0, effective = 0, inheritable = 0, permitted = 0, ambient = 0;
};

struct Join {
  UniqueFd fd;
  int type = 0;  // CLONE_NEW*; several bits when `fd` is a pidfd (Linux 5.8)
  std::string name;
};

// The hooks that concern the process itself; the others are the creator's alone.
struct HookPlan {
  std::vector<oci::Hook> create_container, start_container;
  oci::State state;               // without pid and status
  Millis create_wait{0};          // for those of create_container without a timeout
  bool creator_is_asked = false;  // it has hooks to run before the root is entered, or we have
};

struct RootPlan {
  // With a user namespace: where the trees wait for the copy of the mount namespace
  // (mount/stage.h).
  std::string stage_at;
  std::vector<UniqueFd*> trees();
  UniqueFd root;  // detached mount
  // Where it is attached; empty: on top of everything. With hooks that look at the root before it
  // is entered: root.path of the spec, where these find it as they would with other runtimes.
  std::string attach_at;
  bool read_only = false;
  unsigned long propagation = 0;
  bool propagation_recursive = true;
  std::vector<mount::Planned> mounts;
  mount::CgroupView cgroups;
  std::vector<oci::Device> devices;
  std::vector<mount::DeviceBind> device_binds;  // in a user namespace
  std::vector<std::string> masked_paths, readonly_paths;
};

struct Limit {
  std::string name;  // "RLIMIT_NOFILE", for messages
  int resource;      // of setrlimit(2)
  rlimit value;
};

struct Plan {
  // Surroundings. A container has `root`; an exec has `joins` and `pid_namespace` only.
  std::vector<Join> joins;
  // Of an exec, and entered by its second process alone: who is born in there can be
  // seen, traced and signalled by the container, so it has nothing left to do but execve
  // (CVE-2016-9962). The first one stays out of sight, does all the rest and ends.
  UniqueFd pid_namespace;
  // Whose child the second process is: the creator's, or that of the creator's reaper.
  bool child_of_creator = true;
  // In a user namespace, of one's own or joined: the process becomes its root once the maps are
  // there. What needs a capability of the host's (limits, scheduling, oom_score_adj) is then set by
  // the creator, from outside.
  bool user_namespace = false;
  bool new_user_namespace = false;  // made by the clone: the creator writes its maps
  bool new_time_namespace = false;  // made before anything else; the creator writes its offsets
  // With a user namespace only, made as its root: the mqueue file system belongs to whoever makes
  // it.
  bool new_ipc_namespace = false;
  bool new_network = false;           // its loopback is to be brought up
  bool new_cgroup_namespace = false;  // made after placement
  // `tasks` files of the v1 hierarchies (hybrid): the child moves itself, which takes no lock
  // (Linux 5.5), where a move by its creator waits 10 ms for an RCU grace period (measured
  // on 6.18).
  std::vector<UniqueFd> placement;
  std::optional<RootPlan> root;
  std::optional<HookPlan> hooks;
  std::string hostname, domainname;
  std::vector<std::pair<std::string, std::string>> sysctls;  // path below /proc/sys, value
  bool new_keyring = true;
  std::string id;

  // The process.
  std::vector<std::string> args, env;
  std::string cwd = "/";
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // exact list for setgroups(2)
  mode_t umask = 0022;
  CapabilitySets capabilities;
  std::vector<Limit> rlimits;
  bool no_new_privileges = false;
  std::vector<sock_filter> seccomp;  // empty: no filter
  unsigned seccomp_flags = 0;
  std::optional<int> oom_score_adj;
  Properties properties;
  bool terminal = false;
  oci::Box console_size;
  std::array<int, 3> stdio{0, 1, 2};  // the creator's numbers, inherited by clone
  unsigned preserve_fds = 0;

  // The start gate; both -1 for an exec, which goes on at once and reports through the channel.
  UniqueFd gate, result;
};

}  // namespace wherry::init
