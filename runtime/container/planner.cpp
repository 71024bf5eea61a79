#include "runtime/container/planner.h"

#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>

#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "oci/config.h"
#include "runtime/container/hooks.h"
#include "runtime/container/id_maps.h"
#include "runtime/container/identity.h"
#include "runtime/container/seccomp.h"

namespace wherry::container {
namespace {

using oci::NamespaceType;

int clone_flag(NamespaceType type) {
  switch (type) {
    case NamespaceType::kPid:
      return CLONE_NEWPID;
    case NamespaceType::kNetwork:
      return CLONE_NEWNET;
    case NamespaceType::kMount:
      return CLONE_NEWNS;
    case NamespaceType::kIpc:
      return CLONE_NEWIPC;
    case NamespaceType::kUts:
      return CLONE_NEWUTS;
    case NamespaceType::kUser:
      return CLONE_NEWUSER;
    case NamespaceType::kCgroup:
      return CLONE_NEWCGROUP;
    case NamespaceType::kTime:
      return 0x80;  // CLONE_NEWTIME (Linux 5.6)
  }
  return 0;
}

Result<UniqueFd> open_namespace(const oci::Namespace& ns) {
  auto fd = TRY(sys::openat(AT_FDCWD, ns.path, O_RDONLY | O_NOCTTY));
  const int type = ::ioctl(fd.get(), NS_GET_NSTYPE);
  if (type != clone_flag(ns.type))
    return Error::make(Code::kInvalid,
                       cat("'", ns.path, "' is not a ", oci::to_string(ns.type), " namespace"));
  return fd;
}

Result<> plan_namespaces(const oci::Linux& linux_, Planned& planned) {
  for (const auto& ns : linux_.namespaces) {
    if (ns.type != NamespaceType::kUser) continue;
    planned.plan.user_namespace = true;
    planned.plan.new_user_namespace = ns.path.empty();
  }
  for (const auto& ns : linux_.namespaces) {
    const auto context = cat("linux.namespaces: ", oci::to_string(ns.type));
    if (!ns.path.empty()) {
      auto fd = TRY_CTX(open_namespace(ns), context);
      const bool visit = ns.type == NamespaceType::kPid ||
                         (planned.plan.user_namespace && ns.type != NamespaceType::kTime);
      if (ns.type == NamespaceType::kUser)
        planned.user_namespace = std::move(fd);
      else
        (visit ? planned.visits : planned.plan.joins)
            .push_back({std::move(fd), clone_flag(ns.type), ns.path});
    } else if (ns.type == NamespaceType::kTime) {
      planned.plan.new_time_namespace = true;
    } else if (ns.type == NamespaceType::kCgroup) {
      planned.plan.new_cgroup_namespace = true;
    } else if (ns.type == NamespaceType::kIpc && planned.plan.user_namespace) {
      planned.plan.new_ipc_namespace = true;
    } else {
      planned.clone_flags |= static_cast<std::uint64_t>(clone_flag(ns.type));
    }
  }
  planned.plan.new_network = (planned.clone_flags & CLONE_NEWNET) != 0;
  return {};
}

// The hierarchies that the container has a place in, and no other: of the rest it would see the
// host's root. Controllers that are mounted together are one mount of the view.
mount::CgroupView cgroup_view(const cgroups::Hierarchies& hierarchies,
                              const std::vector<std::string>& controllers) {
  std::map<std::string, std::string> by_mount_point;
  for (const auto& name : controllers) {
    // The v2 name of blkio is io.
    const auto found = hierarchies.v1.find(name == "io" ? "blkio" : name);
    if (found != hierarchies.v1.end()) by_mount_point[found->second];
  }
  for (const auto& [controller, mount_point] : hierarchies.v1) {
    const auto used = by_mount_point.find(mount_point);
    if (used == by_mount_point.end()) continue;
    auto& names = used->second;
    names += names.empty() ? controller : "," + controller;
  }
  mount::CgroupView view;
  for (auto& [mount_point, names] : by_mount_point) view.v1_controllers.push_back(std::move(names));
  return view;
}

Result<> plan_root(const PlanInputs& inputs, Planned& planned) {
  const auto& spec = inputs.spec;
  init::RootPlan root;
  if (inputs.options.root_mount) {
    root.root = std::move(inputs.options.root_mount);
  } else {
    const auto& given = spec.root->path;
    const auto path = given.starts_with('/') ? given : cat(inputs.options.bundle, "/", given);
    root.root = TRY(mount::clone_root(path));
    if (looks_before_entering(spec.hooks)) root.attach_at = path;
  }
  root.read_only = spec.root->readonly;
  if (!spec.linux_->rootfs_propagation.empty())
    std::tie(root.propagation, root.propagation_recursive) = TRY_CTX(
        mount::parse_propagation(spec.linux_->rootfs_propagation), "linux.rootfsPropagation");
  TRY(check_mount_label(spec.linux_->mount_label));
  const auto id_mapper = [&](const auto& uids, const auto& gids) {
    return mount_id_maps(spec, planned.user_namespace, uids, gids);
  };
  root.mounts =
      TRY(mount::plan_mounts(spec.mounts, inputs.options.bundle, inputs.options.bind_sources,
                             spec.linux_->mount_label, id_mapper));
  if (planned.plan.user_namespace)
    root.device_binds = TRY(mount::plan_device_binds(spec.linux_->devices));
  if (inputs.hierarchies.driver == cgroups::Driver::kHybrid)
    root.cgroups = cgroup_view(inputs.hierarchies, inputs.controllers);
  root.devices = spec.linux_->devices;
  root.masked_paths = spec.linux_->masked_paths;
  root.readonly_paths = spec.linux_->readonly_paths;
  planned.plan.root = std::move(root);
  return {};
}

Result<int> rlimit_number(const std::string& type) {
  static const std::map<std::string_view, int> kLimits = {{"RLIMIT_AS", RLIMIT_AS},
                                                          {"RLIMIT_CORE", RLIMIT_CORE},
                                                          {"RLIMIT_CPU", RLIMIT_CPU},
                                                          {"RLIMIT_DATA", RLIMIT_DATA},
                                                          {"RLIMIT_FSIZE", RLIMIT_FSIZE},
                                                          {"RLIMIT_LOCKS", RLIMIT_LOCKS},
                                                          {"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK},
                                                          {"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE},
                                                          {"RLIMIT_NICE", RLIMIT_NICE},
                                                          {"RLIMIT_NOFILE", RLIMIT_NOFILE},
                                                          {"RLIMIT_NPROC", RLIMIT_NPROC},
                                                          {"RLIMIT_RSS", RLIMIT_RSS},
                                                          {"RLIMIT_RTPRIO", RLIMIT_RTPRIO},
                                                          {"RLIMIT_RTTIME", RLIMIT_RTTIME},
                                                          {"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
                                                          {"RLIMIT_STACK", RLIMIT_STACK}};
  const auto found = kLimits.find(type);
  if (found == kLimits.end())
    return Error::make(Code::kInvalid, cat("process.rlimits: there is no limit ", in_quotes(type)));
  return found->second;
}

// Of a variable that is given twice the last one counts, as with runc and crun: getenv(3) would
// find the first, and what is appended to an image's environment would have no effect.
std::vector<std::string> environment_of(const std::vector<std::string>& given) {
  std::map<std::string_view, std::size_t> last;
  const auto name = [](const std::string& entry) {
    return std::string_view{entry}.substr(0, entry.find('='));
  };
  for (std::size_t i = 0; i < given.size(); ++i) last[name(given[i])] = i;
  std::vector<std::string> env;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (last[name(given[i])] == i) env.push_back(given[i]);
  return env;
}

bool has_variable(const std::vector<std::string>& env, std::string_view name) {
  return std::any_of(env.begin(), env.end(),
                     [&](const auto& entry) { return entry.starts_with(name); });
}

// A shell without HOME misbehaves, so one that is missing comes from the root's own /etc/passwd, as
// with runc and crun. A file that cannot be read is no reason to refuse the container.
std::string home_of(uid_t uid, int rootfd) {
  if (rootfd >= 0)
    if (const auto user = resolve_user(rootfd, cat(uid)); user.ok()) return user.value().home;
  return uid == 0 ? "/root" : "/";
}

}  // namespace

Result<> plan_process(const oci::Process& process, int rootfd, init::Plan& plan) {
  if (process.args.empty())
    return Error::make(Code::kInvalid, "process.args: it is empty, so there is nothing to run");
  plan.args = process.args;
  plan.env = environment_of(process.env);
  if (!has_variable(plan.env, "HOME="))
    plan.env.push_back(cat("HOME=", home_of(process.user.uid, rootfd)));
  plan.cwd = process.cwd;
  plan.uid = process.user.uid;
  plan.gid = process.user.gid;
  plan.umask = static_cast<mode_t>(process.user.umask.value_or(0022));
  // The primary group belongs to the list: a file closed to its group would be open to "others"
  // (CVE-2022-36109).
  plan.groups.assign(process.user.additional_gids.begin(), process.user.additional_gids.end());
  if (std::find(plan.groups.begin(), plan.groups.end(), plan.gid) == plan.groups.end())
    plan.groups.insert(plan.groups.begin(), plan.gid);
  if (process.capabilities)
    plan.capabilities = TRY_CTX(capability_sets(*process.capabilities), "process.capabilities");
  for (const auto& limit : process.rlimits) {
    const int resource = TRY(rlimit_number(limit.type));
    plan.rlimits.push_back({limit.type, resource, rlimit{limit.soft, limit.hard}});
  }
  plan.no_new_privileges = process.no_new_privileges;
  plan.oom_score_adj = process.oom_score_adj;
  plan.terminal = process.terminal;
  plan.console_size = process.console_size.value_or(oci::Box{});
  return {};
}

Result<> plan_seccomp(const oci::Spec& spec, const std::string& cache, init::Plan& plan,
                      Deadline deadline) {
  if (!spec.linux_->seccomp) return {};
  auto filter = TRY(compile_seccomp(*spec.linux_->seccomp, cache, deadline));
  plan.seccomp = std::move(filter.instructions);
  plan.seccomp_flags = filter.flags;
  return {};
}

Result<> plan_stdio(const std::array<int, 3>& stdio, init::Plan& plan, UniqueFd& null) {
  plan.stdio = stdio;
  for (auto& fd : plan.stdio) {
    if (fd >= 0) continue;
    if (!null) null = TRY(sys::openat(AT_FDCWD, "/dev/null", O_RDWR | O_NOCTTY));
    fd = null.get();
  }
  return {};
}

Result<Planned> make_plan(const PlanInputs& inputs, Deadline deadline) {
  const auto& spec = inputs.spec;
  Planned planned;
  TRY(plan_namespaces(*spec.linux_, planned));
  TRY(plan_root(inputs, planned));
  TRY(plan_process(*spec.process, planned.plan.root->root.get(), planned.plan));
  TRY(plan_properties(*spec.process, *spec.linux_, planned.plan.properties));
  TRY(plan_seccomp(spec, inputs.options.seccomp_cache, planned.plan, deadline));
  auto& plan = planned.plan;
  plan.hostname = spec.hostname;
  plan.domainname = spec.domainname;
  for (const auto& [key, value] : spec.linux_->sysctl) {
    auto path = oci::sysctl_path(key);
    if (!path)
      return Error::make(Code::kInvalid, cat("linux.sysctl: ", in_quotes(key), " is not a name"));
    plan.sysctls.emplace_back(std::move(*path), value);
  }
  plan.new_keyring = !inputs.options.no_new_keyring;
  plan.id = inputs.options.id;
  plan.preserve_fds = inputs.options.preserve_fds;
  return planned;
}

}  // namespace wherry::container
