#include "cgroups/tree.h"

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"

namespace wherry::cgroups {
namespace {

constexpr std::size_t kFileLimit = 16U << 20;  // cgroup.procs of a fork bomb is the largest

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

void nap(std::chrono::microseconds how_long) {
  const timespec time{0, std::chrono::nanoseconds{how_long}.count()};
  ::ppoll(nullptr, 0, &time, nullptr);
}

// rmdir until it works or the deadline passes. A v1 directory has no event for "empty", and in both
// versions a directory can be busy for some microseconds after its last process was reaped.
Result<> remove_one(int parent, const std::string& name, const std::string& where,
                    Deadline deadline) {
  using std::chrono::microseconds;
  for (microseconds pause{100};; pause = std::min(pause * 2, microseconds{20000})) {
    auto removed = sys::unlinkat(parent, name, AT_REMOVEDIR);
    if (removed.ok() || gone(removed.error())) return {};
    if (removed.error().sys_errno() != EBUSY) return std::move(removed).error().context(where);
    if (deadline.expired()) break;
    nap(pause);
  }
  std::string left = "processes that are not shown";
  if (auto dir = open_directory(parent, name); dir.ok())
    if (auto pids = processes_in(dir->get()); pids.ok() && !pids->empty()) left = describe(*pids);
  return Error::make(Code::kTimeout,
                     cat("remove cgroup ", in_quotes(where), ": still holds ", left));
}

std::string comm_of(pid_t pid) {
  auto comm = read_file_at(AT_FDCWD, cat("/proc/", pid, "/comm"), 64);
  return comm.ok() ? in_quotes(trim(*comm)) : "gone";
}

}  // namespace

Result<UniqueFd> open_directory(int dirfd, const std::string& path) {
  return open_plain(dirfd, path, O_RDONLY | O_DIRECTORY);
}

Result<std::string> read_file(int dirfd, const std::string& name) {
  return read_file_at(dirfd, name, kFileLimit);
}

Result<std::vector<pid_t>> processes_in(int dirfd) {
  auto text = read_file(dirfd, "cgroup.procs");
  // A threaded cgroup lists threads only (REL-17).
  if (!text.ok() && text.error().sys_errno() == EOPNOTSUPP)
    text = read_file(dirfd, "cgroup.threads");
  if (!text.ok()) return std::move(text).error();
  std::vector<pid_t> pids;
  for (const auto line : split(*text, '\n'))
    if (const auto pid = parse_int<pid_t>(line)) pids.push_back(*pid);
  return pids;
}

std::string describe(const std::vector<pid_t>& pids) {
  constexpr std::size_t kShown = 8;
  std::string out;
  for (std::size_t i = 0; i < std::min(pids.size(), kShown); ++i) {
    out += out.empty() ? "" : ", ";
    out += pids[i] == 0 ? std::string{"a process of another pid namespace"}
                        : cat("pid ", pids[i], " (", comm_of(pids[i]), ")");
  }
  if (pids.size() > kShown) out += cat(" and ", pids.size() - kShown, " more");
  return out;
}

Result<std::vector<std::string>> subdirectories(int dirfd) {
  auto own = TRY(sys::openat(dirfd, ".", O_RDONLY | O_DIRECTORY));
  const std::unique_ptr<DIR, CloseDir> dir{::fdopendir(own.get())};
  if (!dir) return Error::sys("fdopendir");
  own.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0 && errno != ENOENT) return Error::sys("readdir");
  return names;
}

Result<> remove_tree_of(int parent, const std::string& name, const std::string& where,
                        Deadline deadline) {
  auto first = sys::unlinkat(parent, name, AT_REMOVEDIR);
  if (first.ok() || gone(first.error())) return {};
  if (first.error().sys_errno() != EBUSY) return std::move(first).error().context(where);

  // One level of the way down; the way up is "..": cgroup directories cannot be moved elsewhere.
  struct Level {
    std::string name;                    // of this directory in the one above
    std::vector<std::string> remaining;  // directories in it
  };
  auto at = open_directory(parent, name);
  if (!at.ok()) return gone(at.error()) ? Result<>{} : std::move(at).error().context(where);
  std::vector<Level> way;
  auto children = TRY(subdirectories(at->get()));
  way.push_back({name, std::move(children)});
  while (!way.empty()) {
    auto& level = way.back();
    if (!level.remaining.empty()) {
      std::string child = std::move(level.remaining.back());
      level.remaining.pop_back();
      auto below = open_directory(at->get(), child);
      if (!below.ok() && gone(below.error())) continue;
      if (!below.ok()) return std::move(below).error().context(where);
      at = std::move(below);
      children = TRY(subdirectories(at->get()));
      way.push_back({std::move(child), std::move(children)});
      continue;
    }
    std::string path = where;
    for (std::size_t i = 1; i < way.size(); ++i) path += cat("/", way[i].name);
    if (way.size() == 1) return remove_one(parent, name, path, deadline);
    auto above = sys::openat(at->get(), "..", O_RDONLY | O_DIRECTORY);
    // Somebody else removes the same tree: what is left of it is found from the top.
    if (!above.ok() && gone(above.error()) && !deadline.expired())
      return remove_tree_of(parent, name, where, deadline);
    if (!above.ok()) return std::move(above).error().context(path);
    TRY(remove_one(above->get(), level.name, path, deadline));
    at = std::move(above);
    way.pop_back();
  }
  return {};
}

std::optional<std::uint64_t> field(std::string_view text, std::string_view key) {
  for (const auto line : split(text, '\n'))
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ')
      return parse_int<std::uint64_t>(line.substr(key.size() + 1));
  return std::nullopt;
}

OpenUmask::OpenUmask() : before_{::umask(0)} {}
OpenUmask::~OpenUmask() {
  ::umask(before_);
}

}  // namespace wherry::cgroups
