#include "runtime/pod/to_spec.h"

#include <algorithm>
#include <array>

#include "base/path.h"
#include "base/text.h"
#include "runtime/pod/defaults.h"
#include "runtime/pod/seccomp_default.h"

namespace wherry::pod {
namespace {

constexpr std::string_view kDefaultPath =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::uint64_t kCpuPeriod = 100'000;  // microseconds
constexpr std::int64_t kMinQuota = 1000;       // the kernel's least, microseconds
constexpr std::int64_t kPodPids = 4096;

// The caller says which container it is.
Error invalid(std::string_view field, std::string_view what) {
  return Error::make(Code::kInvalid, cat(field, ": ", what));
}

// ---- process
// -----------------------------------------------------------------------------------------------------

// Kubernetes: command stands for the entry point, args for the image's cmd, and a command alone
// leaves cmd out.
Result<std::vector<std::string>> arguments(const Container& container,
                                           const oci::ImageConfig& image) {
  std::vector<std::string> out = container.command.empty() ? image.entrypoint : container.command;
  const bool own = !container.command.empty() || !container.args.empty();
  const auto& rest = own ? container.args : image.cmd;
  out.insert(out.end(), rest.begin(), rest.end());
  if (out.empty())
    return invalid("command", "none is given, and the image has no entry point and no cmd");
  return out;
}

void set_variable(std::vector<std::string>& env, std::string_view name, std::string_view value) {
  const std::string prefix = cat(name, "=");
  const auto old = std::find_if(env.begin(), env.end(),
                                [&](const auto& entry) { return entry.starts_with(prefix); });
  if (old != env.end())
    *old = prefix + std::string{value};
  else
    env.push_back(prefix + std::string{value});
}

std::vector<std::string> environment(const Pod& pod, const Container& container,
                                     const oci::ImageConfig& image, const Surroundings& around) {
  std::vector<std::string> env{std::string{kDefaultPath}};
  set_variable(env, "HOSTNAME", hostname_of(pod));
  if (container.tty) set_variable(env, "TERM", "xterm");
  set_variable(env, "HOME", around.user.home.empty() ? "/" : around.user.home);
  for (const auto& entry : image.env) {
    const auto equals = entry.find('=');
    if (equals != std::string::npos && equals != 0)
      set_variable(env, std::string_view{entry}.substr(0, equals),
                   std::string_view{entry}.substr(equals + 1));
  }
  for (const auto& [name, value] : container.env) set_variable(env, name, value);
  return env;
}

oci::User process_user(const Pod& pod, const RunAs& user) {
  oci::User out;
  out.uid = user.uid;
  out.gid = user.gid;
  out.additional_gids = user.additional_gids;
  const auto add = [&](std::uint32_t gid) {
    auto& gids = out.additional_gids;
    if (std::find(gids.begin(), gids.end(), gid) == gids.end()) gids.push_back(gid);
  };
  for (const auto gid : pod.supplemental_groups) add(gid);
  if (pod.fs_group) add(*pod.fs_group);
  return out;
}

Result<oci::Process> process_of(const Pod& pod, const Container& container,
                                const oci::ImageConfig& image, const Surroundings& around) {
  oci::Process process;
  process.terminal = container.tty;
  process.user = process_user(pod, around.user);
  process.args = TRY(arguments(container, image));
  process.env = environment(pod, container, image, around);
  process.cwd = container.working_dir.empty() ? image.working_dir : container.working_dir;
  if (process.cwd.empty()) process.cwd = "/";
  if (process.cwd[0] != '/') return invalid("workingDir", "must be an absolute path");
  process.capabilities = TRY(capabilities_of(container, around));
  process.no_new_privileges = !container.security.allow_privilege_escalation.value_or(true);
  return process;
}

// ---- mounts
// ------------------------------------------------------------------------------------------------------

void add_kernel_mounts(const Pod& pod, const Surroundings& around, bool privileged,
                       std::vector<oci::Mount>& mounts) {
  const std::string sys_mode = privileged ? "rw" : "ro";
  mounts.push_back({"/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}, {}, {}});
  mounts.push_back(
      {"/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}, {}, {}});
  mounts.push_back({"/dev/pts",
                    "devpts",
                    "devpts",
                    {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"},
                    {},
                    {}});
  // One shared memory and one set of queues for all that share an IPC namespace.
  const std::string shm = pod.host_ipc ? "/dev/shm" : around.shm;
  if (shm.empty())
    mounts.push_back({"/dev/shm",
                      "tmpfs",
                      "shm",
                      {"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"},
                      {},
                      {}});
  else
    mounts.push_back(
        {"/dev/shm", "bind", shm, {"rbind", "rprivate", "nosuid", "noexec", "nodev"}, {}, {}});
  mounts.push_back({"/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}, {}, {}});
  mounts.push_back({"/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", sys_mode}, {}, {}});
  mounts.push_back({"/sys/fs/cgroup",
                    "cgroup",
                    "cgroup",
                    {"nosuid", "noexec", "nodev", "relatime", sys_mode},
                    {},
                    {}});
}

void add_file_mounts(const Container& container, const Surroundings& around,
                     std::vector<oci::Mount>& mounts) {
  const std::array files{std::pair{"/etc/hosts", &around.hosts},
                         std::pair{"/etc/hostname", &around.hostname},
                         std::pair{"/etc/resolv.conf", &around.resolv_conf}};
  for (const auto& file : files) {
    const char* const destination = file.first;
    const std::string* const source = file.second;
    const bool taken =
        std::any_of(container.mounts.begin(), container.mounts.end(),
                    [&](const auto& mount) { return mount.mount_path == destination; });
    if (source->empty() || taken) continue;
    std::vector<std::string> options{"rbind", "rprivate"};
    if (container.security.read_only_root.value_or(false)) options.emplace_back("ro");
    mounts.push_back({destination, "bind", *source, std::move(options), {}, {}});
  }
}

Result<std::string> propagation_option(const Container& container, const VolumeMount& mount) {
  if (mount.propagation.empty() || mount.propagation == "private") return std::string{"rprivate"};
  if (mount.propagation == "rslave") return std::string{"rslave"};
  if (mount.propagation == "rshared") {
    if (container.security.privileged.value_or(false)) return std::string{"rshared"};
    return invalid(cat("mount ", in_quotes(mount.mount_path)),
                   "propagation back to the host needs a privileged container");
  }
  return invalid(cat("mount ", in_quotes(mount.mount_path)),
                 cat(in_quotes(mount.propagation), " is not private, rslave or rshared"));
}

std::size_t uses_of(const Pod& pod, const std::string& volume) {
  std::size_t uses = 0;
  for (const auto* list : {&pod.init_containers, &pod.containers}) {
    for (const auto& container : *list) {
      uses += static_cast<std::size_t>(
          std::count_if(container.mounts.begin(), container.mounts.end(),
                        [&](const auto& mount) { return mount.volume == volume; }));
    }
  }
  return uses;
}

Result<oci::Mount> volume_mount(const Pod& pod, const Container& container,
                                const VolumeMount& mount, const Surroundings& around) {
  const auto field = cat("mount ", in_quotes(mount.mount_path));
  const auto volume = std::find_if(pod.volumes.begin(), pod.volumes.end(),
                                   [&](const auto& v) { return v.name == mount.volume; });
  if (volume == pod.volumes.end())
    return invalid(field, cat("the pod has no volume ", in_quotes(mount.volume)));
  if (mount.mount_path.empty() || mount.mount_path[0] != '/')
    return invalid(field, "must be an absolute path");
  for (const auto& part : components(mount.sub_path)) {
    if (part == "..") return invalid(field, "the sub-path contains '..'");
  }
  std::string source;
  if (const auto place = around.volumes.find(volume_key(mount)); place != around.volumes.end())
    source = place->second;
  else if (volume->kind == Volume::Kind::kHostPath && mount.sub_path.empty())
    source = volume->host_path;
  if (source.empty()) {
    const bool own_memory = volume->kind == Volume::Kind::kEmptyDir && volume->memory &&
                            mount.sub_path.empty() && uses_of(pod, volume->name) == 1;
    if (!own_memory)
      return invalid(field,
                     cat("volume ", in_quotes(volume_key(mount)), " has no place on the host"));
    oci::Mount out{mount.mount_path,
                   "tmpfs",
                   "tmpfs",
                   {"nosuid", "nodev", mount.read_only ? "ro" : "rw"},
                   {},
                   {}};
    const std::string words = tmpfs_options(*volume);
    for (const auto option : split(words, ',')) out.options.emplace_back(option);
    return out;
  }
  oci::Mount out{mount.mount_path, "bind", source, {"rbind"}, {}, {}};
  out.options.push_back(TRY(propagation_option(container, mount)));
  if (mount.read_only) out.options.emplace_back("rro");  // what is mounted below, too (Linux 5.12)
  return out;
}

Result<std::vector<oci::Mount>> mounts_of(const Pod& pod, const Container& container,
                                          const Surroundings& around) {
  std::vector<oci::Mount> mounts;
  add_kernel_mounts(pod, around, container.security.privileged.value_or(false), mounts);
  add_file_mounts(container, around, mounts);
  std::vector<oci::Mount> own;
  for (const auto& mount : container.mounts) {
    auto made = TRY(volume_mount(pod, container, mount, around));
    // One would hide the other, and which one would not be clear; Kubernetes refuses it, too.
    for (const auto& other : own)
      if (components(other.destination) == components(made.destination))
        return invalid(cat("mount ", in_quotes(mount.mount_path)), "another mount has this path");
    own.push_back(std::move(made));
  }
  // A mount below another one comes after it, whatever their order in the manifest.
  std::stable_sort(own.begin(), own.end(), [](const auto& a, const auto& b) {
    return components(a.destination).size() < components(b.destination).size();
  });
  // What the pod puts in place of a default mount takes its place.
  std::erase_if(mounts, [&](const auto& mount) {
    return std::any_of(own.begin(), own.end(), [&](const auto& other) {
      return components(other.destination) == components(mount.destination);
    });
  });
  mounts.insert(mounts.end(), std::make_move_iterator(own.begin()),
                std::make_move_iterator(own.end()));
  return mounts;
}

// ---- linux
// -------------------------------------------------------------------------------------------------------

std::vector<oci::Namespace> namespaces_of(const Pod& pod, const Surroundings& around) {
  using Type = oci::NamespaceType;
  std::vector<oci::Namespace> out{{Type::kMount, {}}, {Type::kCgroup, {}}};
  if (pod.pid_mode != PidMode::kHost)
    out.push_back({Type::kPid, pod.pid_mode == PidMode::kPod ? around.pid_ns : std::string{}});
  if (!pod.host_ipc) out.push_back({Type::kIpc, around.ipc_ns});
  if (pod.network != Network::kHost) {
    out.push_back({Type::kNetwork, around.net_ns});
    out.push_back({Type::kUts, around.uts_ns});
  }
  return out;
}

Result<> check_sysctls(const Pod& pod) {
  for (const auto& [key, value] : pod.sysctls) {
    const auto problem = sysctl_problem(pod, key, value);
    if (!problem.empty())
      return Error::make(Code::kInvalid, cat("sysctl ", in_quotes(key), ": ", problem));
  }
  return {};
}

oci::Device device_node(const NodeDevice& device) {
  oci::Device out;
  out.path = device.path;
  out.type = std::string(1, device.type);
  out.major = device.major;
  out.minor = device.minor;
  out.file_mode = device.mode;
  out.uid = device.uid;
  out.gid = device.gid;
  return out;
}

Result<oci::Linux> linux_of(const Pod& pod, const Container& container, const Surroundings& around,
                            const oci::Capabilities& capabilities) {
  oci::Linux out;
  const bool privileged = container.security.privileged.value_or(false);
  if (pod.pid_mode == PidMode::kPod && around.pid_ns.empty())
    return Error::make(Code::kUnsupported, "a PID namespace shared by the pod needs a pod init");
  TRY(check_sysctls(pod));
  out.namespaces = namespaces_of(pod, around);
  out.cgroups_path = around.cgroup_path;
  out.sysctl = pod.sysctls;
  for (const auto& device : around.devices) out.devices.push_back(device_node(device));
  out.resources = container_resources(container);
  out.resources->devices = device_rules(container, around);
  if (!privileged && !container.security.unmasked_proc) {
    out.masked_paths = masked_paths(around.cpus);
    out.readonly_paths = readonly_paths();
  }
  switch (container.security.seccomp) {
    case SeccompMode::kRuntimeDefault:
      if (!privileged) out.seccomp = default_seccomp(capabilities.bounding);
      break;
    case SeccompMode::kUnconfined:
      break;
    case SeccompMode::kLocalhost:
      if (!around.seccomp)
        return invalid("seccomp", cat("the profile ", in_quotes(container.security.seccomp_profile),
                                      " has not been read"));
      out.seccomp = around.seccomp;
      break;
  }
  for (const auto& mount : container.mounts) {
    // A mount that is to follow the host's needs a root that does.
    if (mount.propagation == "rshared")
      out.rootfs_propagation = "shared";
    else if (mount.propagation == "rslave" && out.rootfs_propagation.empty())
      out.rootfs_propagation = "slave";
  }
  return out;
}

}  // namespace

std::string volume_key(const VolumeMount& mount) {
  return mount.sub_path.empty() ? mount.volume : cat(mount.volume, "/", mount.sub_path);
}

Result<oci::Spec> to_spec(const Pod& pod, const Container& container, const oci::ImageConfig& image,
                          const Surroundings& around) {
  TRY(check_user(container, around.user));
  oci::Spec spec;
  spec.oci_version = "1.2.0";
  spec.process = TRY(process_of(pod, container, image, around));
  spec.root = oci::Root{around.rootfs, container.security.read_only_root.value_or(false)};
  // A namespace that is joined has its name already.
  if (pod.network != Network::kHost && around.uts_ns.empty()) spec.hostname = hostname_of(pod);
  spec.mounts = TRY(mounts_of(pod, container, around));
  spec.linux_ = TRY(linux_of(pod, container, around, *spec.process->capabilities));
  spec.annotations = {{"io.wherry.pod.id", pod.id},
                      {"io.wherry.pod.name", pod.name},
                      {"io.wherry.pod.namespace", pod.ns},
                      {"io.wherry.container.name", container.name}};
  return spec;
}

std::string user_of(const Container& container, const oci::ImageConfig& image) {
  const auto& security = container.security;
  std::string user = image.user;
  if (!security.user.empty()) user = security.user;
  if (security.run_as_user) user = std::to_string(*security.run_as_user);
  if (!security.run_as_group) return user;
  const auto name = user.substr(0, user.find(':'));
  return cat(name.empty() ? "0" : name, ":", *security.run_as_group);
}

Result<> check_user(const Container& container, const RunAs& user) {
  if (!container.security.run_as_non_root.value_or(false) || user.uid != 0) return {};
  return invalid("runAsNonRoot", "it would run as root").code(Code::kDenied);
}

oci::Resources container_resources(const Container& container) {
  return resources_of(container.limits);
}

oci::Resources pod_resources(const Pod& pod) {
  auto out = resources_of(pod.limits);
  if (!out.pids_limit) out.pids_limit = kPodPids;
  return out;
}

oci::Resources resources_of(const Limits& limits) {
  oci::Resources out;
  if (limits.memory_bytes) {
    out.memory.emplace();
    out.memory->limit =
        static_cast<std::int64_t>(std::min<std::uint64_t>(*limits.memory_bytes, INT64_MAX));
  }
  if (limits.cpu_milli || limits.cpu_request_milli) out.cpu.emplace();
  if (limits.cpu_milli) {
    out.cpu->period = kCpuPeriod;
    // A limit of nothing is refused where it is read; the kernel takes no quota below a
    // millisecond.
    const auto quota = std::min<std::uint64_t>(*limits.cpu_milli, INT32_MAX) * kCpuPeriod / 1000;
    out.cpu->quota = std::max(static_cast<std::int64_t>(quota), kMinQuota);
  }
  // As everywhere in the field: a request in 1024ths of a CPU, the limit standing in for one that
  // is absent.
  if (const auto request = limits.cpu_request_milli ? limits.cpu_request_milli : limits.cpu_milli) {
    const auto shares = std::min<std::uint64_t>(*request, INT32_MAX) * 1024 / 1000;
    out.cpu->shares = std::clamp<std::uint64_t>(shares, 2, 262'144);
  }
  if (limits.pids) out.pids_limit = limits.pids;
  return out;
}

}  // namespace wherry::pod
