#include "shim/worker/surroundings.h"

#include <sched.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "base/capability.h"
#include "base/file.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "oci/seccomp_profile.h"

namespace wherry::shim {
namespace {

using pod::Volume;

Result<std::vector<std::string>> own_capabilities() {
  const auto status = TRY(read_file_at(AT_FDCWD, "/proc/self/status", 65536));
  std::vector<std::string> names;
  for (const auto line : split(status, '\n')) {
    if (line.rfind("CapBnd:", 0) != 0) continue;
    const auto mask = parse_int<std::uint64_t>(trim(line.substr(7)), 16).value_or(0);
    for (unsigned i = 0; i < kCapabilityCount; ++i)
      if ((mask >> i & 1U) != 0) names.push_back(capability_name(i));
  }
  return names;
}

pod::NodeDevice node_of(const std::string& path, const struct stat& st,
                        const std::string& permissions) {
  pod::NodeDevice node;
  node.path = path;
  node.type = S_ISBLK(st.st_mode) ? 'b' : 'c';
  node.major = major(st.st_rdev);
  node.minor = minor(st.st_rdev);
  node.mode = st.st_mode & 07777;
  node.uid = st.st_uid;
  node.gid = st.st_gid;
  node.permissions = permissions;
  return node;
}

bool is_device(const struct stat& st) {
  return S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode);
}

// Terminals of the host are its users'; the container has a devpts of its own.
bool of_the_host_alone(const std::string& path) {
  return path.rfind("pts/", 0) == 0 || path == "ptmx" || path == "console" ||
         path.rfind("tty", 0) == 0;
}

Result<std::vector<pod::NodeDevice>> devices_of(const pod::Container& container) {
  std::vector<pod::NodeDevice> nodes;
  if (container.security.privileged.value_or(false)) {
    const auto dev = TRY(sys::openat(AT_FDCWD, "/dev", O_RDONLY | O_DIRECTORY));
    TRY(walk_tree(
        dev.get(),
        [&](int, const std::string&, const std::string& path, const struct stat& st) -> Result<> {
          if (is_device(st) && !of_the_host_alone(path))
            nodes.push_back(node_of("/dev/" + path, st, "rwm"));
          return {};
        }));
  }
  for (const auto& device : container.devices) {
    const auto st = TRY_CTX(sys::fstatat(AT_FDCWD, device.host_path, 0), "device");
    if (!is_device(st))
      return Error::make(Code::kInvalid, cat("'", device.host_path, "' is not a device"));
    const auto& path = device.container_path.empty() ? device.host_path : device.container_path;
    nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                               [&](const auto& node) { return node.path == path; }),
                nodes.end());
    nodes.push_back(node_of(path, st, device.permissions));
  }
  return nodes;
}

// ---- volumes
// -----------------------------------------------------------------------------------------------------

std::string place_of(const Context& context, const Volume& volume) {
  return volume.kind == Volume::Kind::kHostPath
             ? volume.host_path
             : cat(context.root_path(), "/volumes/", volume.name);
}

Result<> make_empty_dir(const Context& context, const Volume& volume) {
  const auto all = TRY(make_dir_at(context.root_dir.get(), "volumes", 0711));
  const auto dir = TRY(make_dir_at(all.get(), volume.name, 0777));
  if (context.pod.fs_group) TRY(sys::fchown(dir.get(), 0, *context.pod.fs_group, volume.name));
  TRY(sys::fchmod(dir.get(), context.pod.fs_group ? 02777 : 0777, volume.name));
  if (!volume.memory) return {};
  // Mounted in the worker's own mount namespace, which ends with the pod: nothing of it can stay on
  // the host.
  const auto fs = TRY(sys::fsopen("tmpfs"));
  const auto options = pod::tmpfs_options(volume);
  for (const auto option : split(options, ',')) {
    const auto equals = option.find('=');
    if (equals == std::string_view::npos) continue;
    TRY(sys::fsconfig_string(fs.get(), std::string{option.substr(0, equals)},
                             std::string{option.substr(equals + 1)}));
  }
  if (context.pod.fs_group)
    TRY(sys::fsconfig_string(fs.get(), "gid", std::to_string(*context.pod.fs_group)));
  TRY(sys::fsconfig_create(fs.get()));
  const auto mounted = TRY(sys::fsmount(fs.get(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  // By path: what was opened before we left the host's namespace is a place in that one.
  const auto place =
      TRY(sys::openat(AT_FDCWD, place_of(context, volume), O_PATH | O_DIRECTORY | O_NOFOLLOW));
  return sys::move_mount(mounted.get(), "", place.get(), "",
                         MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

// What is made outside our own directories is for others as well.
class UsualUmask {
 public:
  UsualUmask() : before_{::umask(0022)} {}
  UsualUmask(const UsualUmask&) = delete;
  UsualUmask& operator=(const UsualUmask&) = delete;
  ~UsualUmask() { ::umask(before_); }

 private:
  mode_t before_;
};

Result<> make_missing(const Volume& volume) {
  const auto st = sys::fstatat(AT_FDCWD, volume.host_path, 0);
  if (st.ok() || st.error().code() != Code::kNotFound) return {};
  const auto root = TRY(sys::openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
  const UsualUmask usual;
  if (volume.host_type == Volume::HostType::kDirectoryOrCreate)
    static_cast<void>(TRY(make_dirs_in_root(root.get(), volume.host_path, 0755)));
  if (volume.host_type == Volume::HostType::kFileOrCreate)
    static_cast<void>(TRY(make_file_in_root(root.get(), volume.host_path, 0755, 0644)));
  return {};
}

Result<> check_host_path(const Volume& volume) {
  using HostType = Volume::HostType;
  TRY(make_missing(volume));
  const auto st = TRY(sys::fstatat(AT_FDCWD, volume.host_path, 0));
  const auto must_be = [&](bool is, const char* what) -> Result<> {
    if (is) return {};
    return Error::make(Code::kInvalid, cat("'", volume.host_path, "' is not a ", what));
  };
  switch (volume.host_type) {
    case HostType::kAny:
      return {};
    case HostType::kDirectoryOrCreate:
    case HostType::kDirectory:
      return must_be(S_ISDIR(st.st_mode), "directory");
    case HostType::kFileOrCreate:
    case HostType::kFile:
      return must_be(S_ISREG(st.st_mode), "file");
    case HostType::kSocket:
      return must_be(S_ISSOCK(st.st_mode), "socket");
    case HostType::kCharDevice:
      return must_be(S_ISCHR(st.st_mode), "character device");
    case HostType::kBlockDevice:
      return must_be(S_ISBLK(st.st_mode), "block device");
  }
  return {};
}

// The pod can put links into its own volume, so the sub-path is resolved beneath it, once, and the
// descriptor is what is bound (CVE-2017-1002101, CVE-2021-25741).
Result<UniqueFd> open_sub_path(const std::string& place, const std::string& sub_path) {
  const auto root = TRY(sys::openat(AT_FDCWD, place, O_PATH | O_DIRECTORY));
  auto found = open_beneath(root.get(), sub_path, O_PATH);
  if (found.ok()) return found;
  if (found.error().sys_errno() == EXDEV)
    return Error::make(Code::kDenied, cat("sub-path '", sub_path, "' leads out of the volume"));
  if (found.error().code() != Code::kNotFound) return found;
  const UsualUmask usual;
  return make_dirs_in_root(root.get(), sub_path, 0755);
}

Result<> place_volumes(const Context& context, const pod::Container& container,
                       Prepared& prepared) {
  for (const auto& mount : container.mounts) {
    const auto volume = std::find_if(context.pod.volumes.begin(), context.pod.volumes.end(),
                                     [&](const auto& one) { return one.name == mount.volume; });
    if (volume == context.pod.volumes.end())
      return Error::make(Code::kInvalid, cat("there is no volume '", mount.volume, "'"));
    std::string place = place_of(context, *volume);
    if (!mount.sub_path.empty()) {
      auto opened =
          TRY_CTX(open_sub_path(place, mount.sub_path), cat("volume '", mount.volume, "'"));
      prepared.bind_sources.insert_or_assign(mount.mount_path, std::move(opened));
      place += cat("/", mount.sub_path);
    }
    prepared.around.volumes[pod::volume_key(mount)] = place;
  }
  return {};
}

}  // namespace

Result<VolumesIn> prepare_pod_files(const Context& context) {
  const auto etc = TRY(make_dir_at(context.root_dir.get(), "etc", 0700));
  const auto host_resolv = read_file_at(AT_FDCWD, "/etc/resolv.conf", 65536);
  TRY(replace_file(etc.get(), "hosts", pod::hosts_file(context.pod), 0644));
  TRY(replace_file(etc.get(), "hostname", pod::hostname_file(context.pod), 0644));
  TRY(replace_file(
      etc.get(), "resolv.conf",
      pod::resolv_conf_file(context.pod, host_resolv.ok() ? host_resolv.value() : std::string{}),
      0644));
  for (const char* name : {"hosts", "hostname", "resolv.conf"}) {
    const auto file = TRY(sys::openat(etc.get(), name, O_RDONLY));
    TRY(sys::fchmod(file.get(), 0644, name));  // whatever our umask is
  }
  const bool memory = std::any_of(
      context.pod.volumes.begin(), context.pod.volumes.end(),
      [](const auto& volume) { return volume.kind == Volume::Kind::kEmptyDir && volume.memory; });
  if (memory) {
    TRY(sys::unshare(CLONE_NEWNS, "mount namespace of the pod's volumes"));
    TRY(sys::set_propagation("/", MS_SLAVE | MS_REC));  // what the host mounts later is still seen
  }
  for (const auto& volume : context.pod.volumes)
    TRY_CTX(volume.kind == Volume::Kind::kEmptyDir ? make_empty_dir(context, volume)
                                                   : check_host_path(volume),
            cat("volume '", volume.name, "'"));
  return memory ? VolumesIn::kOwnNamespace : VolumesIn::kHost;
}

void detach_memory_volumes(const Context& context) {
  for (const auto& volume : context.pod.volumes)
    if (volume.kind == Volume::Kind::kEmptyDir && volume.memory)
      sys::umount2(place_of(context, volume), MNT_DETACH | UMOUNT_NOFOLLOW)
          .ignore("it was not mounted, or the removal of its directory tells");
}

Result<Prepared> prepare_surroundings(const Context& context, const pod::Container& container) {
  Prepared prepared;
  auto& around = prepared.around;
  around.cgroup_path = context.container_cgroup(container.name);
  around.hosts = context.root_path() + "/etc/hosts";
  around.hostname = context.root_path() + "/etc/hostname";
  around.resolv_conf = context.root_path() + "/etc/resolv.conf";
  around.devices = TRY(devices_of(container));
  around.own_capabilities = TRY(own_capabilities());
  if (container.security.seccomp == pod::SeccompMode::kLocalhost)
    around.seccomp = TRY(oci::load_seccomp(container.security.seccomp_profile));
  around.cpus = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  TRY(place_volumes(context, container, prepared));
  return prepared;
}

}  // namespace wherry::shim
