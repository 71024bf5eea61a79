// One container: from a spec to a process behind the gate, and back to nothing.
#pragma once
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"
#include "cgroups/cgroups.h"
#include "mount/root.h"
#include "oci/spec.h"
#include "oci/state.h"
#include "runtime/init/sync.h"

namespace wherry::container {

// What the record directory's record.json says: a hint that tells where to look, never the truth
// about a process.
struct Record {
  std::string id, bundle;
  ProcessIdentity init;  // pid 0: not cloned yet (the record is written before the first resource)
  std::string cgroup;    // path below each hierarchy's root
  std::vector<cgroups::DirectoryId> directories;  // of it; inode 0: about to be made
  std::string created;                            // RFC 3339
  std::map<std::string, std::string> annotations;
  std::string oci_version;
  bool terminal = false;
};

struct CreateOptions {
  std::string id;      // checked: [A-Za-z0-9_][A-Za-z0-9_.+-]*, at most 255 (SEC-54)
  std::string bundle;  // absolute; relative paths of the spec start here
  int record_dir =
      -1;  // 0700 directory that is the container's own; record.json, gate and result come here
  UniqueFd root_mount;  // detached mount to be the root (an overlay); else root.path of the spec is
                        // bound
  mount::OpenedSources bind_sources;  // of mounts of the spec; theirs are never resolved by name
  std::array<int, 3> stdio{
      0, 1, 2};  // what the payload gets as 0, 1, 2 (without a terminal); -1: /dev/null
  unsigned preserve_fds = 0;  // 3 .. 2+N are passed on
  bool clone_parent = false;  // the child becomes a child of our own parent (the keeper)
  bool no_new_keyring = false;
  std::string cgroup_default;  // when the spec has no cgroupsPath
  std::string seccomp_cache;   // directory for compiled filters; "" compiles each time
};

struct Created {
  ProcessIdentity init;
  UniqueFd pidfd;
  UniqueFd console;  // pty master, when process.terminal
};

// Everything up to the gate. A failure leaves nothing: no process, cgroup, mount or record file.
Result<Created> create(const oci::Spec& spec, CreateOptions options, Deadline deadline);

// Opens the gate and waits until the payload has been exec'd; the child's own failure arrives
// whole. kState when init is dead or was started already. After a hook that failed (the error's
// step is "hooks") the container is destroyed, as the runtime-spec wants it.
Result<> start(int record_dir, Deadline deadline);

Result<Record> load_record(int record_dir);  // kNotFound, or kInvalid when it cannot be read
// Ask the kernel: created (alive and behind the gate), running, paused or stopped.
Result<oci::State> state(int record_dir);
// To init by pidfd; `all` to every process of the cgroup. kState when it is not running.
enum class Reach : std::uint8_t { kInit, kAll };
Result<> kill(int record_dir, int signum, Reach reach);
// Freezes all its processes until resume(); kState when it is not created or running, or not
// paused. SIGKILL works meanwhile, other signals wait for resume().
Result<> pause(int record_dir, Deadline deadline);
Result<> resume(int record_dir);
// Of the container and its execs, as pids of our own pid namespace (0: not visible from it).
Result<std::vector<pid_t>> processes(int record_dir);
// Changes the limits that `resources` sets and leaves the others; a list of device rules replaces
// the old one in one step. A setting of a v1 controller that the container was made without is
// kUnsupported. kState when it is stopped.
Result<> update(int record_dir, oci::Resources resources);

// Kills what lives, removes the cgroup, runs the poststop hooks, removes the files create() made in
// the record directory. Idempotent; works on a half-made container. What is at the cgroup's path
// and was not made for this container stays untouched. With an unreadable record `fallback_cgroup`
// is taken for the container's, when it is not empty: only for a path that nobody else can have.
Result<> destroy(int record_dir, const std::string& fallback_cgroup, Deadline deadline);

struct ExecOptions {
  oci::Process process;
  std::array<int, 3> stdio{0, 1, 2};
  unsigned preserve_fds = 0;
  bool clone_parent = false;
  std::string seccomp_cache;
};
struct Executed {
  ProcessIdentity process;
  UniqueFd pidfd;
  UniqueFd console;
  init::Channel channel;
  UniqueFd leaf_cgroup;  // v2 directory of the exec's own leaf: cgroup.kill there ends it with all
                         // its children
  std::string leaf_path;

  // What became of execve: the channel is readable when it is known. From the moment at which the
  // container can see the process it can also stop it, so whoever has others to serve must not wait
  // long. After a failure the process ends with 127 (not found) or 126. kTimeout: not yet known.
  Result<> outcome(Deadline deadline) const;
};
// A second process in a running container, in a leaf cgroup of its own. Returns when it is there,
// with all done but execve. kState once init has exited.
Result<Executed> exec(int record_dir, const oci::Spec& spec, ExecOptions options,
                      Deadline deadline);
// Removes an exec's leaf cgroup after its end (kills what is left in it).
Result<> finish_exec(int record_dir, const std::string& leaf_path, Deadline deadline);

// The environment, user, groups and so on of `spec` need the root of the container only when they
// name a user: these resolve "user", "user:group", "1000:1000" in /etc/passwd and /etc/group below
// `rootfd` by the rules of SEC-32, SEC-33.
struct ResolvedUser {
  std::uint32_t uid = 0, gid = 0;
  std::vector<std::uint32_t> additional_gids;
  std::string home;
};
Result<ResolvedUser> resolve_user(int rootfd, const std::string& user);

}  // namespace wherry::container
