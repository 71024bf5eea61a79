// The mounts of the spec: planned by the creator, made by the process that becomes the container.
#include <linux/magic.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>

#include "base/path.h"
#include "base/text.h"
#include "mount/copy_up.h"
#include "mount/root.h"

namespace wherry::mount {
namespace {

// Files below /proc that may be covered by a bind (lxcfs gives these); anything else there would
// let a container choose what the runtime reads or writes through /proc (CVE-2019-16884).
constexpr std::array kCoverable = {std::string_view{"/proc/cpuinfo"},
                                   std::string_view{"/proc/diskstats"},
                                   std::string_view{"/proc/meminfo"},
                                   std::string_view{"/proc/stat"},
                                   std::string_view{"/proc/swaps"},
                                   std::string_view{"/proc/uptime"},
                                   std::string_view{"/proc/loadavg"},
                                   std::string_view{"/proc/slabinfo"},
                                   std::string_view{"/proc/sys/kernel/ns_last_pid"},
                                   std::string_view{"/proc/sys/crypto/fips_enabled"}};

Result<> check_destination(const oci::Mount& mount, const Options& options) {
  const std::string plain = "/" + join(components(mount.destination), "/");
  if (plain == "/proc" || !plain.starts_with("/proc/")) return {};
  if (options.bind && std::find(kCoverable.begin(), kCoverable.end(), plain) != kCoverable.end())
    return {};
  return Error::make(Code::kInvalid, cat("'", mount.destination,
                                         "' is inside /proc and cannot be a mount's destination"));
}

// The same of what the kernel has found there: a link or '..' of the image may lead into procfs
// where the text does not (CVE-2019-19921), and a mount on the root of one that is not asked for by
// its name would be /proc for everybody inside. What is coverable is told by what it is, not by how
// it is called.
Result<> check_target(int root, int target, const Planned& planned) {
  struct statfs fs {};
  if (::fstatfs(target, &fs) < 0) return Error::sys("fstatfs", planned.destination);
  const auto plain = "/" + join(components(planned.destination), "/");
  const auto inside = [&](std::string_view tree) {
    return Error::make(Code::kInvalid, cat("'", planned.destination, "' is inside ", tree,
                                           " and cannot be a mount's destination"));
  };
  const auto is_one_of = [&](const auto& paths) -> Result<bool> {
    const auto st = TRY(sys::fstat(target, planned.destination));
    for (const std::string_view path : paths) {
      const auto known = sys::openat2(root, std::string{path.substr(1)}, O_PATH, 0,
                                      RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
      if (!known.ok()) continue;
      const auto other = TRY(sys::fstat(known.value().get(), path));
      if (other.st_dev == st.st_dev && other.st_ino == st.st_ino) return true;
    }
    return false;
  };
  if (fs.f_type == PROC_SUPER_MAGIC) {
    if (plain == "/proc" && TRY(is_one_of(std::array{std::string_view{"/proc"}}))) return {};
    if (planned.type == "bind" && TRY(is_one_of(kCoverable))) return {};
    return inside("a procfs");
  }
  return {};
}

Result<> refuse_senseless(const oci::Mount& mount, const Options& options) {
  if (options.copy_up && mount.type != "tmpfs")
    return Error::make(Code::kInvalid, "option 'tmpcopyup' is for a tmpfs");
  const bool mapped = options.idmap || !mount.uid_mappings.empty() || !mount.gid_mappings.empty();
  if (mapped && !options.bind)
    return Error::make(Code::kInvalid, "only a bind mount can have id mappings");
  return {};
}

// A detached copy of the tree to be bound: of the descriptor, or else of the source's path.
Result<UniqueFd> copy_source(const oci::Mount& mount, const std::string& bundle, int opened,
                             bool recursive) {
  const unsigned flags = OPEN_TREE_CLONE | (recursive ? AT_RECURSIVE : 0U);
  if (opened >= 0) {
    auto tree = sys::open_tree(opened, "", flags | AT_EMPTY_PATH);
    if (!tree.ok()) return std::move(tree).error().context(cat("source '", mount.source, "'"));
    return tree;
  }
  if (mount.source.empty()) return Error::make(Code::kInvalid, "a bind mount needs a source");
  return sys::open_tree(
      AT_FDCWD, mount.source.starts_with('/') ? mount.source : cat(bundle, "/", mount.source),
      flags);
}

// Before it is attached anywhere: the kernel takes no other (mount_setattr(2), Linux 5.12).
Result<> map_ids(int tree, const oci::Mount& mount, const Options& options,
                 const IdMapper& id_mapper) {
  if (!options.idmap && mount.uid_mappings.empty()) return {};
  const auto user_namespace = TRY(id_mapper(mount.uid_mappings, mount.gid_mappings));
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<std::uint64_t>(user_namespace.get());
  auto mapped = sys::mount_setattr(
      tree, "", AT_EMPTY_PATH | (options.idmap_recursive ? AT_RECURSIVE : 0U), attributes);
  if (!mapped.ok())
    return std::move(mapped)
        .error()
        .context("id mappings")
        .hint(
            "the file system of the source has to allow idmapped mounts: ext4, xfs, btrfs, tmpfs "
            "(Linux 6.3) and others do");
  return {};
}

// The security modules label what is made there.
void add_label(Planned& planned, const std::string& label) {
  if (!label.empty() &&
      (planned.type == "tmpfs" || planned.type == "devpts" || planned.type == "mqueue"))
    planned.options.data.emplace_back("context", label);
}

Result<> set_attributes(int tree, const Options& options, bool also_attributes) {
  mount_attr tree_wide{};
  tree_wide.attr_set = options.tree_attributes.set;
  tree_wide.attr_clr = options.tree_attributes.clear;
  // Without a word of the spec a mount is private: a host's shared source must not see what happens
  // in here.
  tree_wide.propagation = options.propagation == 0 ? static_cast<std::uint64_t>(MS_PRIVATE) : 0;
  if (options.propagation != 0 && options.propagation_recursive)
    tree_wide.propagation = options.propagation;
  TRY(sys::mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, tree_wide));
  mount_attr alone{};
  if (also_attributes) {
    alone.attr_set = options.attributes.set;
    alone.attr_clr = options.attributes.clear;
  }
  if (options.propagation != 0 && !options.propagation_recursive)
    alone.propagation = options.propagation;
  if (alone.attr_set == 0 && alone.attr_clr == 0 && alone.propagation == 0) return {};
  return sys::mount_setattr(tree, "", AT_EMPTY_PATH, alone);
}

Result<Planned> plan_one(const oci::Mount& mount, const std::string& bundle, int opened,
                         const std::string& label, const IdMapper& id_mapper) {
  Planned planned;
  planned.options = TRY(parse_options(mount));
  TRY(check_destination(mount, planned.options));
  TRY(refuse_senseless(mount, planned.options));
  planned.destination = mount.destination;
  planned.type = planned.options.bind ? "bind" : mount.type;
  planned.source = mount.source;
  if (!planned.options.bind) {
    if (mount.type.empty())
      return Error::make(Code::kInvalid, "it has neither a type nor 'bind' among its options");
    add_label(planned, label);
    return planned;
  }
  planned.tree = TRY(copy_source(mount, bundle, opened, planned.options.recursive));
  planned.source_is_dir = S_ISDIR(TRY(sys::fstat(planned.tree.get(), mount.source)).st_mode);
  TRY(map_ids(planned.tree.get(), mount, planned.options, id_mapper));
  TRY(set_attributes(planned.tree.get(), planned.options, true));
  return planned;
}

// A real directory: a link in its place would put procfs or sysfs where the image likes
// (CVE-2023-27561).
Result<UniqueFd> real_directory(int root, const std::string& destination) {
  const auto relative = join(components(destination), "/");
  if (auto there = sys::openat2(root, relative, O_PATH | O_DIRECTORY, 0,
                                RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
      there.ok() || there.error().sys_errno() != ENOENT)
    return there;
  TRY(make_dirs_in_root(root, destination, 0755)).reset();
  return sys::openat2(root, relative, O_PATH | O_DIRECTORY, 0,
                      RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
}

bool is_kernel_tree(std::string_view type) {
  return type == "proc" || type == "sysfs" || type == "cgroup" || type == "cgroup2";
}

Result<UniqueFd> new_filesystem(const std::string& type, const std::string& source,
                                const std::vector<std::pair<std::string, std::string>>& data,
                                std::uint64_t attributes) {
  const auto fs = TRY(sys::fsopen(type));
  if (!source.empty()) TRY(sys::fsconfig_string(fs.get(), "source", source));
  for (const auto& [key, value] : data) {
    if (value.empty())
      TRY(sys::fsconfig_flag(fs.get(), key));
    else
      TRY(sys::fsconfig_string(fs.get(), key, value));
  }
  TRY(sys::fsconfig_create(fs.get()));
  return sys::fsmount(fs.get(), static_cast<unsigned>(attributes));
}

Result<> attach(int mount, int target) {
  return sys::move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

// The kernel says only "Not a directory" of a directory on a file, and of a file on a directory.
Result<> check_kinds(int root, const Planned& planned) {
  const auto there = open_in_root(root, planned.destination, O_PATH);
  if (!there.ok()) return {};  // to be made
  const auto st = TRY(sys::fstat(there.value().get(), planned.destination));
  if (S_ISDIR(st.st_mode) == planned.source_is_dir) return {};
  return Error::make(
      Code::kInvalid,
      planned.source_is_dir
          ? cat("the source '", planned.source, "' is a directory, but the target is a file")
          : cat("the source '", planned.source, "' is a file, but the target is a directory"));
}

Result<> share(int tree, const Options& options) {
  mount_attr attributes{};
  attributes.propagation = MS_SHARED;
  return sys::mount_setattr(
      tree, "", AT_EMPTY_PATH | (options.propagation_recursive ? AT_RECURSIVE : 0U), attributes);
}

Result<> mount_bind(int root, Planned& planned) {
  TRY(check_kinds(root, planned));
  const auto target =
      TRY(planned.source_is_dir ? make_dirs_in_root(root, planned.destination, 0755)
                                : make_file_in_root(root, planned.destination, 0755, 0644));
  TRY(check_target(root, target.get(), planned));
  // A copy for another user namespace is never a peer, so "shared" is said again in here.
  if (planned.options.propagation == MS_SHARED) TRY(share(planned.tree.get(), planned.options));
  TRY(attach(planned.tree.get(), target.get()));
  planned.tree.reset();
  return {};
}

Result<> mount_cgroup_member(int tmpfs, const std::string& name, const std::string& type,
                             const std::vector<std::pair<std::string, std::string>>& data,
                             std::uint64_t attributes) {
  TRY(sys::mkdirat(tmpfs, name, 0755));
  const auto dir = TRY(sys::openat(tmpfs, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  const auto mount = TRY(new_filesystem(type, "cgroup", data, attributes));
  return attach(mount.get(), dir.get());
}

// A hybrid host's view: a tmpfs with a directory for each v1 hierarchy that the container has a
// place in, and "unified".
Result<> mount_cgroups(int root, const Planned& planned, const CgroupView& view) {
  const auto target = TRY(real_directory(root, planned.destination));
  TRY(check_target(root, target.get(), planned));
  const auto attributes = planned.options.attributes.set;
  if (view.v1_controllers.empty()) {
    const auto mount = TRY(new_filesystem("cgroup2", "cgroup", {}, attributes));
    TRY(set_attributes(mount.get(), planned.options, false));
    return attach(mount.get(), target.get());
  }
  const auto tmpfs =
      TRY(new_filesystem("tmpfs", "tmpfs", {{"mode", "755"}},
                         attributes & ~static_cast<std::uint64_t>(MOUNT_ATTR_RDONLY)));
  TRY(attach(tmpfs.get(), target.get()));
  for (const auto& hierarchy : view.v1_controllers) {
    std::vector<std::pair<std::string, std::string>> data;
    for (const auto controller : split(hierarchy, ',')) {
      if (controller.starts_with("name="))
        data = {{"none", ""}, {"name", std::string{controller.substr(5)}}};
      else
        data.emplace_back(controller, "");
    }
    const auto name = hierarchy.starts_with("name=") ? hierarchy.substr(5) : hierarchy;
    TRY_CTX(mount_cgroup_member(tmpfs.get(), name, "cgroup", data, attributes), hierarchy);
    for (const auto controller : split(hierarchy, ','))
      if (controller != hierarchy)
        TRY(sys::symlinkat(hierarchy, tmpfs.get(), std::string{controller}));
  }
  TRY_CTX(mount_cgroup_member(tmpfs.get(), "unified", "cgroup2", {}, attributes), "unified");
  if ((attributes & MOUNT_ATTR_RDONLY) == 0) return {};
  return make_root_read_only(tmpfs.get());
}

Error explain_new(Error error, std::string_view type) {
  if (error.sys_errno() != EPERM) return error;
  if (type == "sysfs")
    return std::move(error).hint(
        "in a user namespace a sysfs needs a network namespace that belongs to it; with another "
        "one, bind the host's /sys read-only");
  if (type == "proc")
    return std::move(error).hint(
        "in a user namespace a procfs needs a pid namespace that belongs to it, and a /proc of the "
        "host that nothing covers");
  return error;
}

Result<> mount_filesystem(int root, const Planned& planned) {
  auto data = planned.options.data;
  const bool was_there = open_in_root(root, planned.destination, O_PATH | O_DIRECTORY).ok();
  const auto target =
      TRY(is_kernel_tree(planned.type) ? real_directory(root, planned.destination)
                                       : make_dirs_in_root(root, planned.destination, 0755));
  TRY(check_target(root, target.get(), planned));
  const auto has = [&](std::string_view key) {
    return std::any_of(data.begin(), data.end(), [&](const auto& d) { return d.first == key; });
  };
  const Given given{has("uid"), has("gid"), has("mode")};
  if (planned.type == "tmpfs" && was_there && !given.mode && !planned.options.copy_up) {
    // The directory that is covered keeps its mode: /tmp stays 1777.
    const auto st = TRY(sys::fstat(target.get(), planned.destination));
    constexpr std::array kOctal = {'0', '1', '2', '3', '4', '5', '6', '7'};
    std::string mode;
    for (int shift = 9; shift >= 0; shift -= 3) mode.push_back(kOctal[(st.st_mode >> shift) & 7U]);
    data.emplace_back("mode", mode);
  }
  const auto source = planned.source.empty() ? planned.type : planned.source;
  const auto read_only = static_cast<std::uint64_t>(MOUNT_ATTR_RDONLY);
  const auto first = planned.options.attributes.set & ~(planned.options.copy_up ? read_only : 0);
  auto made = new_filesystem(planned.type, source, data, first);
  if (!made.ok()) return explain_new(std::move(made).error(), planned.type);
  const auto mount = std::move(made).value();
  if (planned.options.copy_up && was_there) {
    const auto covered = TRY(sys::openat(target.get(), ".", O_RDONLY | O_DIRECTORY));
    const auto fresh = TRY(sys::openat(mount.get(), ".", O_RDONLY | O_DIRECTORY));
    TRY_CTX(copy_up(covered.get(), fresh.get(), given), "tmpcopyup");
  }
  TRY(set_attributes(mount.get(), planned.options, planned.options.copy_up));
  return attach(mount.get(), target.get());
}

}  // namespace

Result<std::vector<Planned>> plan_mounts(const std::vector<oci::Mount>& mounts,
                                         const std::string& bundle, const OpenedSources& opened,
                                         const std::string& label, const IdMapper& id_mapper) {
  for (const auto& [destination, fd] : opened)
    if (std::count_if(mounts.begin(), mounts.end(), [&name = destination](const auto& mount) {
          return mount.destination == name;
        }) != 1)
      return Error::make(Code::kInvalid,
                         cat("mount '", destination, "': its opened source is not of one mount"));
  std::vector<Planned> planned;
  planned.reserve(mounts.size());
  for (const auto& mount : mounts) {
    const auto source = opened.find(mount.destination);
    const int fd = source == opened.end() ? -1 : source->second.get();
    auto one = TRY_CTX(plan_one(mount, bundle, fd, label, id_mapper),
                       cat("mount '", mount.destination, "'"));
    if (fd >= 0 && !one.tree)
      return Error::make(Code::kInvalid, cat("mount '", mount.destination,
                                             "': it has an opened source and is no bind mount"));
    planned.push_back(std::move(one));
  }
  return planned;
}

Result<> do_mounts(int root, std::vector<Planned>& mounts, const CgroupView& cgroups) {
  for (auto& planned : mounts) {
    const auto context = cat("mount '", planned.destination, "'");
    if (planned.type == "bind")
      TRY_CTX(mount_bind(root, planned), context);
    else if (planned.type == "cgroup" || planned.type == "cgroup2")
      TRY_CTX(mount_cgroups(root, planned, cgroups), context);
    else
      TRY_CTX(mount_filesystem(root, planned), context);
  }
  return {};
}

}  // namespace wherry::mount
