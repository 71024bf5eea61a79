// Putting a container's root together, by descriptor, inside its own mount namespace. Each function
// is called by the process that becomes the container, after clone3 with CLONE_NEWNS, and before
// the root is entered; `root` is the descriptor of the root mount, and nothing below it is ever
// named by a path of the host (CVE-2021-30465).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "mount/options.h"
#include "oci/spec.h"

namespace wherry::mount {

// One mount of the spec with all that can be parsed and opened beforehand.
struct Planned {
  std::string destination, type, source;
  Options options;
  // A bind's source as a detached copy of its tree (open_tree), made by the creator, with the
  // options and id mappings applied.
  UniqueFd tree;
  bool source_is_dir = true;  // of a bind: what has to be made at the destination
};

// Makes a user namespace with the maps of an idmapped mount; both empty: the container's own maps.
using IdMapper = std::function<Result<UniqueFd>(const std::vector<oci::IdMapping>& uids,
                                                const std::vector<oci::IdMapping>& gids)>;

// Sources of binds that the caller has opened itself (O_PATH), by the mount's destination as the
// spec writes it. They are bound as they are: `source` of the spec is not resolved again, it is for
// people. The descriptors live in this object, which the caller keeps until plan_mounts returns.
using OpenedSources = std::map<std::string, UniqueFd>;

// Opened by the creator, in its own mount namespace: a source that is missing is told before
// anything is made. kInvalid when an opened source belongs to no mount of the list or to several:
// what was meant to be bound by descriptor is never bound by name. `label` is linux.mountLabel for
// the file systems that are made, or empty.
Result<std::vector<Planned>> plan_mounts(const std::vector<oci::Mount>& mounts,
                                         const std::string& bundle, const OpenedSources& opened,
                                         const std::string& label, const IdMapper& id_mapper);
// The root itself: root.path cloned as a detached tree.
Result<UniqueFd> clone_root(const std::string& path);

// One controller mount of a "cgroup" mount on a hybrid host; empty: pure v2.
struct CgroupView {
  std::vector<std::string> v1_controllers;  // "memory", "cpu", "name=systemd"
};

// The namespace's own copy of the host's tree: nothing that is mounted here may reach the host.
Result<> isolate(unsigned long propagation);
// Attaches the root mount so that it can be pivoted to, on top of `at`, a directory of the host as
// this namespace sees it, or of "/" when that is -1; the old tree stays below it.
Result<> attach_root(int root, int at);
Result<> do_mounts(int root, std::vector<Planned>& mounts, const CgroupView& cgroups);

// /dev inside `root`, whatever the image put there (CVE-2026-41579): the default devices, those of
// the spec, and the links fd, stdin, stdout, stderr, ptmx. What is there already must be the right
// thing, else it is an error. The caller's umask must be 0: modes are given to mknod(2), so that no
// path is named twice.
Result<> make_devices(int root, const std::vector<oci::Device>& devices);

// In a user namespace nobody may make a device: the host's own of the same path and number, opened
// by the creator. kUnsupported when there is none, or when it is open to more than the spec says
// (its mode is the host's).
struct DeviceBind {
  std::string path;
  UniqueFd tree;
};
Result<std::vector<DeviceBind>> plan_device_binds(const std::vector<oci::Device>& devices);
// make_devices() with these; FIFOs among `devices` are made.
Result<> bind_devices(int root, const std::vector<oci::Device>& devices,
                      std::vector<DeviceBind>& binds);

// A new terminal of the container's own devpts, checked by its file system magic; its slave end
// becomes /dev/console.
struct Console {
  UniqueFd master, slave;
};
Result<Console> make_console(int root, const oci::Box& size, uid_t owner);
Result<Console> open_terminal(int root, const oci::Box& size,
                              uid_t owner);  // without /dev/console: for an exec

// Each path that exists: hidden by an object that we made, or made read-only with all below. A
// missing one is fine.
Result<> mask_paths(int root, const std::vector<std::string>& paths);
Result<> make_read_only(int root, const std::vector<std::string>& paths);
Result<> make_root_read_only(int root);

// pivot_root(2) into `root`, the old tree detached: afterwards no path leads to the host.
Result<> enter_root(int root);
Result<> set_root_propagation(unsigned long propagation, bool recursive);  // after enter_root

}  // namespace wherry::mount
