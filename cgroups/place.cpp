#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "cgroups/cgroups.h"
#include "cgroups/tree.h"

namespace wherry::cgroups {

const Place::Directory* Place::find(const std::string& controller) const {
  if (controller.empty()) return &unified_;
  for (const auto& directory : v1_)
    if (std::find(directory.controllers.begin(), directory.controllers.end(), controller) !=
        directory.controllers.end())
      return &directory;
  return nullptr;
}

std::string Place::name_of(const Directory& directory) const {
  return cat(directory.mount_point, path_);
}

Result<std::vector<UniqueFd>> Place::open_self_placement() const {
  std::vector<UniqueFd> files;
  files.reserve(v1_.size());
  for (const auto& directory : v1_)
    files.push_back(
        TRY_CTX(sys::openat(directory.self.get(), "tasks", O_WRONLY), name_of(directory)));
  return files;
}

Result<> place_self(std::span<const UniqueFd> files) {
  // "0" is the writer itself, in whatever pid namespace it is; the kernel checks the credentials of
  // the opener, so it works from within a user namespace too.
  for (const auto& file : files) {
    auto written = sys::write_all(file.get(), "0", "tasks");
    if (written.ok()) continue;
    if (written.error().sys_errno() != EINVAL) return written;
    // CONFIG_RT_GROUP_SCHED: a v1 cpu cgroup starts with no realtime time at all.
    return std::move(written).error().hint(
        "a realtime scheduling policy was inherited: start without one, or set "
        "linux.resources.cpu.realtimeRuntime");
  }
  return {};
}

Result<> Place::add(pid_t pid) const {
  for (const auto& directory : v1_)
    TRY_CTX(write_kernel_file(directory.self.get(), "cgroup.procs", cat(pid)), name_of(directory));
  return {};
}

Result<> Place::add_everywhere(pid_t pid) const {
  TRY_CTX(write_kernel_file(unified_.self.get(), "cgroup.procs", cat(pid)), name_of(unified_));
  return add(pid);
}

Result<UniqueFd> Place::make_leaf(const std::string& name) const {
  const auto leaf = cat(path_, "/", name);
  TRY(check_path(leaf));
  if (name.find('/') != std::string::npos)
    return Error::make(Code::kInvalid,
                       cat("cgroup leaf ", in_quotes(name), " is more than a name"));
  auto make = [&]() -> Result<UniqueFd> {
    const OpenUmask exact_modes;
    TRY(sys::mkdirat(unified_.self.get(), name, 0755));
    return open_directory(unified_.self.get(), name);
  };
  auto made = make();
  if (!made.ok()) return std::move(made).error().context(cat("create cgroup ", in_quotes(leaf)));
  return made;
}

Result<> Place::apply(const std::vector<Write>& writes) const {
  const auto write = [&](const Write& one) -> Result<> {
    const auto* directory = find(one.controller);
    if (directory == nullptr)
      return Error::make(Code::kUnsupported,
                         cat("cgroup ", in_quotes(path_), " has no part in '", one.controller,
                             "', which '", one.file, "' needs"));
    if (!one.not_below.empty()) {
      const auto used =
          parse_int<std::uint64_t>(trim(TRY(read_file(directory->self.get(), one.not_below))));
      const auto asked = parse_int<std::uint64_t>(one.value);
      if (used && asked && *used > *asked)
        return Error::make(Code::kState, cat(one.file, " = ", one.value, ": ", one.not_below,
                                             " is ", *used, " already"));
    }
    return write_kernel_file(directory->self.get(), one.file, one.value);
  };
  const auto failed = [&](Result<>& result) {
    return std::move(result).error().context(cat("cgroup ", in_quotes(path_)));
  };
  for (std::size_t i = 0; i < writes.size(); ++i) {
    auto written = write(writes[i]);
    if (written.ok()) continue;
    const bool has_partner = i + 1 < writes.size() &&
                             writes[i + 1].controller == writes[i].controller &&
                             written.error().sys_errno() == EINVAL;
    if (!has_partner || !write(writes[i + 1]).ok()) return failed(written);
    if (auto again = write(writes[i]); !again.ok()) return failed(again);
    ++i;
  }
  return {};
}

Result<std::string> Place::read(const std::string& controller, const std::string& file) const {
  const auto* directory = find(controller);
  if (directory == nullptr)
    return Error::make(Code::kUnsupported,
                       cat("cgroup ", in_quotes(path_), " has no part in '", controller, "'"));
  const auto opened = TRY_CTX(open_plain(directory->self.get(), file, O_RDONLY), path_);
  constexpr std::size_t kLimit = 1U << 20;
  return sys::read_to_end(opened.get(), kLimit, file);
}

Result<std::vector<DirectoryId>> Place::directories() const {
  std::vector<DirectoryId> ids;
  const auto note = [&](const Directory& directory) -> Result<> {
    const auto st = TRY(sys::fstat(directory.self.get(), name_of(directory)));
    ids.push_back({directory.key(), st.st_ino});
    return {};
  };
  TRY(note(unified_));
  for (const auto& directory : v1_) TRY(note(directory));
  return ids;
}

Result<> Place::remove(Deadline deadline) const {
  // v2 last: open() goes by it, so whoever is killed in here leaves what the next one finds.
  Result<> first;
  const auto remove_one = [&](const Directory& directory) -> Result<> {
    // Somebody else may have made one of that name since ours went. Between this look and the
    // removal only an empty one can be hit, which its maker then misses at once.
    if (!TRY(is_entry(directory.parent.get(), name_, directory.self.get()))) return {};
    return remove_tree_of(directory.parent.get(), name_, name_of(directory), deadline);
  };
  for (const auto& directory : v1_) {
    auto removed = remove_one(directory);
    if (first.ok()) first = std::move(removed);
  }
  TRY(std::move(first));  // for the same reason the unified one stays while another does
  return remove_one(unified_);
}

Result<> Place::remove(const Hierarchies& hierarchies, const std::string& path,
                       const std::vector<DirectoryId>& own, Deadline deadline) {
  TRY(check_path(path));
  const auto name = path.substr(path.rfind('/') + 1);
  auto directories = v1_directories(hierarchies);
  directories.push_back({hierarchies.unified, {}, {}, {}});
  Result<> first;
  for (auto& directory : directories) {
    const auto id = std::find_if(own.begin(), own.end(), [&](const DirectoryId& one) {
      return one.controller == directory.key();
    });
    if (id == own.end()) continue;
    const auto remove_one = [&]() -> Result<> {
      TRY(open_directory_of(directory, path));
      const auto where = cat(directory.mount_point, path);
      if (id->inode == 0) {
        auto removed = sys::unlinkat(directory.parent.get(), name, AT_REMOVEDIR);
        // Its maker puts nothing in before it has noted which it is: this one is another's.
        if (!removed.ok() && removed.error().sys_errno() == EBUSY) return {};
        return removed;
      }
      if (TRY(sys::fstat(directory.self.get(), where)).st_ino != id->inode) return {};
      return remove_tree_of(directory.parent.get(), name, where, deadline);
    };
    auto removed = remove_one();
    if (first.ok() && !removed.ok() && !gone(removed.error())) first = std::move(removed);
  }
  return first;
}

}  // namespace wherry::cgroups
