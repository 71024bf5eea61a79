// Making the directories of a place, and taking them away again when one of them fails.
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "cgroups/cgroups.h"
#include "cgroups/tree.h"
#include "cgroups/writes.h"

namespace wherry::cgroups {
namespace {

constexpr mode_t kMode = 0755;

// The directory that is being made in one hierarchy.
class Maker {
 public:
  Maker(UniqueFd root, const std::string& path, std::vector<std::string> wanted, bool is_cpuset)
      : root_{std::move(root)},
        parts_{components(path)},
        wanted_{std::move(wanted)},
        is_cpuset_{is_cpuset} {}
  Maker(Maker&&) = default;

  struct Made {
    UniqueFd parent, self;
  };
  Result<Made> make();
  void undo() const;  // what make() made, as far as it is empty

 private:
  Result<UniqueFd> parent();
  Result<> step(int above, const std::string& path, const std::string& name, bool is_last);
  Result<> renew(int above, const std::string& path, const std::string& name);
  Result<> hand_on(int dirfd, const std::string& path) const;

  UniqueFd root_;
  std::vector<std::string> parts_;
  std::vector<std::string> wanted_;  // v2: controllers that the children are to have
  bool is_cpuset_;
  std::vector<std::string> made_;  // relative to the root, parents first
};

// v1 cpusets start empty and take no process until they have been given CPUs and memory nodes.
Result<> inherit_cpuset(int above, int dirfd) {
  for (const auto* file : {"cpuset.cpus", "cpuset.mems"}) {
    if (!trim(TRY(read_file(dirfd, file))).empty()) continue;
    const auto inherited = TRY(read_file(above, file));
    TRY(write_kernel_file(dirfd, file, trim(inherited)));
  }
  return {};
}

std::vector<std::string> missing_from(const std::vector<std::string>& wanted,
                                      std::string_view present) {
  const auto words = split(trim(present), ' ');
  std::vector<std::string> missing;
  for (const auto& name : wanted)
    if (std::find(words.begin(), words.end(), name) == words.end()) missing.push_back(name);
  return missing;
}

// Lets the children of a v2 directory have the controllers. One that the directory does not have
// itself is left out: a limit that needs it fails later, by name.
Result<> Maker::hand_on(int dirfd, const std::string& path) const {
  if (wanted_.empty()) return {};
  const auto missing = missing_from(wanted_, TRY(read_file(dirfd, "cgroup.subtree_control")));
  if (missing.empty()) return {};
  const auto unknown = missing_from(missing, TRY(read_file(dirfd, "cgroup.controllers")));
  std::string value;
  for (const auto& name : missing)
    if (std::find(unknown.begin(), unknown.end(), name) == unknown.end())
      value += cat(value.empty() ? "+" : " +", name);
  if (value.empty()) return {};
  auto written = write_kernel_file(dirfd, "cgroup.subtree_control", value);
  if (written.ok()) return {};
  const auto what = cat("hand controllers of cgroup '/", path, "' to its children");
  if (written.error().sys_errno() != EBUSY) return std::move(written).error().context(what);
  // Only a cgroup without processes may do it ("no internal processes", cgroup-v2.rst). Waiting for
  // them to go would be waiting for our own caller.
  const auto pids = TRY(processes_in(dirfd));
  return Error::make(Code::kBusy, cat(what, ": ", describe(pids), " is in it"))
      .hint("choose another cgroup parent, or move the process into a cgroup of its own");
}

// A directory that was left behind would bring its old limits along: it is made anew when nothing
// is in it. What is in it belongs to somebody, who would lose it when this place is removed.
Result<> Maker::renew(int above, const std::string& path, const std::string& name) {
  auto removed = sys::unlinkat(above, name, AT_REMOVEDIR);
  if (removed.ok() || gone(removed.error())) {
    TRY(sys::mkdirat(above, name, kMode));
    made_.push_back(path);
    return {};
  }
  if (removed.error().sys_errno() != EBUSY) return removed;
  std::vector<std::string> pending{path};
  while (!pending.empty()) {
    const auto at = std::move(pending.back());
    pending.pop_back();
    auto dir = open_directory(root_.get(), at);
    if (!dir.ok() && gone(dir.error())) continue;
    if (!dir.ok()) return std::move(dir).error();
    const auto pids = TRY(processes_in(dir->get()));
    if (!pids.empty())
      return Error::make(Code::kExists, cat("cgroup ", in_quotes(cat("/", at)),
                                            " is not empty: ", describe(pids), " is in it"))
          .hint("another container has this cgroup, or had it and is not deleted yet");
    for (const auto& child : TRY(subdirectories(dir->get())))
      pending.push_back(cat(at, "/", child));
  }
  return Error::make(Code::kExists, cat("cgroup ", in_quotes(cat("/", path)),
                                        " is not empty: it has groups of somebody else's in it"))
      .hint("choose a path below it, or remove them");
}

Result<> Maker::step(int above, const std::string& path, const std::string& name, bool is_last) {
  auto made = sys::mkdirat(above, name, kMode);
  if (made.ok()) {
    made_.push_back(path);
    return {};
  }
  if (made.error().sys_errno() != EEXIST) return made;
  return is_last ? renew(above, path, name) : Result<>{};
}

// The directory above the last one. Nearly always it is there and ready, and one openat2 finds it.
Result<UniqueFd> Maker::parent() {
  const std::vector<std::string> above{parts_.begin(), parts_.end() - 1};
  const std::string whole = above.empty() ? "." : join(above, "/");
  if (auto there = open_directory(root_.get(), whole); there.ok()) {
    if (wanted_.empty() ||
        missing_from(wanted_, TRY(read_file(there->get(), "cgroup.subtree_control"))).empty())
      return there;
  } else if (there.error().sys_errno() != ENOENT) {
    return there;
  }
  auto at = TRY(open_directory(root_.get(), "."));
  std::string path;
  for (const auto& name : above) {
    TRY(hand_on(at.get(), path));
    path += path.empty() ? name : cat("/", name);
    TRY(step(at.get(), path, name, false));
    auto below = TRY(open_directory(at.get(), name));
    if (is_cpuset_) TRY(inherit_cpuset(at.get(), below.get()));
    at = std::move(below);
  }
  TRY(hand_on(at.get(), path));
  return at;
}

Result<Maker::Made> Maker::make() {
  Made made;
  made.parent = TRY(parent());
  TRY(step(made.parent.get(), join(parts_, "/"), parts_.back(), true));
  made.self = TRY(open_directory(made.parent.get(), parts_.back()));
  if (is_cpuset_) TRY(inherit_cpuset(made.parent.get(), made.self.get()));
  return made;
}

void Maker::undo() const {
  for (auto path = made_.rbegin(); path != made_.rend(); ++path)
    sys::unlinkat(root_.get(), *path, AT_REMOVEDIR).ignore("the first error is the one to tell");
}

}  // namespace

// v1 mount points that are wanted, each with all the controllers that are bound there: controllers
// that share a mount ("cpu,cpuacct") share the directory.
static std::map<std::string, std::vector<std::string>> v1_mounts(
    const Hierarchies& hierarchies, const std::vector<std::string>& controllers) {
  std::map<std::string, std::vector<std::string>> mounts;
  for (const auto& name : controllers)
    if (const auto found = hierarchies.v1.find(v1_name(name)); found != hierarchies.v1.end())
      mounts[found->second];
  for (const auto& [controller, mount_point] : hierarchies.v1)
    if (const auto used = mounts.find(mount_point); used != mounts.end())
      used->second.push_back(controller);
  return mounts;
}

Result<Place> Place::create(const Hierarchies& hierarchies, const std::string& path,
                            const std::vector<std::string>& controllers) {
  TRY(check_path(path));
  const OpenUmask exact_modes;
  Place place;
  place.path_ = path;
  place.name_ = path.substr(path.rfind('/') + 1);
  std::vector<Maker> makers;  // in this order: an undo goes backwards
  const auto make = [&](Directory& directory, Maker maker) -> Result<> {
    makers.push_back(std::move(maker));
    auto made = TRY(makers.back().make());
    directory.parent = std::move(made.parent);
    directory.self = std::move(made.self);
    return {};
  };
  const auto make_all = [&]() -> Result<> {
    std::vector<std::string> unified;
    for (const auto& name : hierarchies.unified_controllers)
      if (std::find(controllers.begin(), controllers.end(), name) != controllers.end())
        unified.push_back(name);
    place.unified_.mount_point = hierarchies.unified;
    TRY(make(place.unified_, Maker{TRY(open_root(hierarchies.unified, Version::kV2)), path,
                                   std::move(unified), false}));
    for (auto& [mount_point, names] : v1_mounts(hierarchies, controllers)) {
      const bool is_cpuset = std::find(names.begin(), names.end(), "cpuset") != names.end();
      place.v1_.push_back({mount_point, names, {}, {}});
      TRY_CTX(make(place.v1_.back(),
                   Maker{TRY(open_root(mount_point, Version::kV1)), path, {}, is_cpuset}),
              in_quotes(mount_point));
    }
    return {};
  };
  if (auto made = make_all(); !made.ok()) {
    for (auto maker = makers.rbegin(); maker != makers.rend(); ++maker) maker->undo();
    return std::move(made).error().context(cat("create cgroup ", in_quotes(path)));
  }
  return place;
}

std::vector<Place::Directory> Place::v1_directories(const Hierarchies& hierarchies) {
  std::vector<std::string> all;
  for (const auto& [controller, mount_point] : hierarchies.v1)
    if (!controller.starts_with("name=")) all.push_back(controller);
  std::vector<Directory> directories;
  for (auto& [mount_point, names] : v1_mounts(hierarchies, all))
    directories.push_back({mount_point, names, {}, {}});
  return directories;
}

Result<> Place::open_directory_of(Directory& directory, const std::string& path) {
  const auto version = directory.controllers.empty() ? Version::kV2 : Version::kV1;
  const auto root = TRY(open_root(directory.mount_point, version));
  directory.self = TRY(open_directory(root.get(), path.substr(1)));
  directory.parent = TRY(sys::openat(directory.self.get(), "..", O_RDONLY | O_DIRECTORY));
  return {};
}

Result<Place> Place::open_parts(const Hierarchies& hierarchies, const std::string& path,
                                const std::function<bool(const std::string& key)>& wanted) {
  TRY(check_path(path));
  Place place;
  place.path_ = path;
  place.name_ = path.substr(path.rfind('/') + 1);
  const auto context = cat("open cgroup ", in_quotes(path));
  place.unified_.mount_point = hierarchies.unified;
  TRY_CTX(open_directory_of(place.unified_, path), context);
  for (auto& directory : v1_directories(hierarchies)) {
    if (!wanted(directory.key())) continue;
    if (auto opened = open_directory_of(directory, path); opened.ok())
      place.v1_.push_back(std::move(directory));
    else if (!gone(opened.error()))
      return std::move(opened).error().context(context);
  }
  return place;
}

Result<Place> Place::open(const Hierarchies& hierarchies, const std::string& path) {
  return open_parts(hierarchies, path, [](const std::string&) { return true; });
}

Result<Place> Place::open(const Hierarchies& hierarchies, const std::string& path,
                          const std::vector<DirectoryId>& own) {
  const auto id_of = [](const std::vector<DirectoryId>& ids, const std::string& key) {
    return std::find_if(ids.begin(), ids.end(),
                        [&](const auto& one) { return one.controller == key; });
  };
  auto place = TRY(open_parts(
      hierarchies, path, [&](const std::string& key) { return id_of(own, key) != own.end(); }));
  const auto ids = TRY(place.directories());
  const auto is_own = [&](const std::string& key) {
    const auto id = id_of(ids, key);
    return id != ids.end() && std::find(own.begin(), own.end(), *id) != own.end();
  };
  if (!is_own(""))
    return Error::make(Code::kNotFound,
                       cat("cgroup ", in_quotes(path), " is gone: another one has its place"));
  std::erase_if(place.v1_, [&](const Directory& one) { return !is_own(one.key()); });
  return place;
}

std::vector<DirectoryId> Place::planned(const Hierarchies& hierarchies,
                                        const std::vector<std::string>& controllers) {
  std::vector<DirectoryId> ids{{"", 0}};
  for (const auto& [mount_point, names] : v1_mounts(hierarchies, controllers))
    ids.push_back({names.front(), 0});
  return ids;
}

}  // namespace wherry::cgroups
