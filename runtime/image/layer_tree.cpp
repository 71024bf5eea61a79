#include "runtime/image/layer_tree.h"

#include <limits.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "runtime/image/metadata.h"

namespace wherry::image {
namespace {
constexpr const char* kOpaqueAttribute = "trusted.overlay.opaque";
constexpr int kDirectory = O_PATH | O_DIRECTORY | O_NOFOLLOW;
constexpr std::size_t kDeepest =
    256;  // so that a tree can be walked with a descriptor for each level

Error too_deep() {
  return Error::make(Code::kInvalid, cat("it is deeper than ", kDeepest, " directories"));
}
}  // namespace

bool is_whiteout(const struct stat& st) {
  return S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0);
}

Result<std::optional<struct stat>> look(int dir, const std::string& name) {
  auto st = sys::fstatat(dir, name);
  if (st.ok()) return std::optional<struct stat>{*st};
  if (st.error().sys_errno() == ENOENT) return std::optional<struct stat>{};
  return std::move(st).error();
}

// The kernel resolves what this layer has by itself; where it comes upon something that only a
// lower layer can have, walk() goes component by component.
Result<int> LayerTree::directory(const std::vector<std::string>& parts, Missing missing) {
  auto path = join(parts, "/");
  if (cache_holds_ && path == cached_path_) return cached_.get();
  if (parts.size() > kDeepest) return too_deep();
  auto found = open_in_root(root_, path, O_PATH | O_DIRECTORY);
  if (!found.ok() && (found.error().sys_errno() == ENOENT || found.error().sys_errno() == ENOTDIR))
    found = walk(parts, missing);
  cached_ = TRY(std::move(found));
  if (components(TRY(path_of(cached_.get()))).size() > kDeepest)
    return too_deep();  // by way of links
  cached_path_ = std::move(path);
  cache_holds_ = true;
  return cached_.get();
}

// Links are followed here and not by the kernel, because each may lead from this layer to one below
// and back. Nobody else can reach the root, so what was looked at stays as it was.
Result<UniqueFd> LayerTree::walk(const std::vector<std::string>& parts, Missing missing) {
  constexpr int kMostLinks = 40;  // path_resolution(7)
  std::vector<std::string> todo{parts.rbegin(), parts.rend()}, names;
  std::vector<UniqueFd> stack;
  stack.push_back(TRY(sys::openat(root_, ".", O_PATH | O_DIRECTORY)));
  for (int links = 0; !todo.empty();) {
    const auto name = std::move(todo.back());
    todo.pop_back();
    if (name == "..") {
      if (names.empty()) continue;
      names.pop_back();
      stack.pop_back();
      continue;
    }
    std::string link;
    auto next =
        TRY(step(stack.back().get(), names.empty() ? name : cat(join(names, "/"), "/", name), name,
                 missing, link));
    if (next) {
      stack.push_back(std::move(next));
      names.push_back(name);
      if (names.size() > kDeepest) return too_deep();
      continue;
    }
    if (++links > kMostLinks) return Error::sys("open", join(parts, "/"), ELOOP);
    if (link.starts_with('/')) {
      names.clear();
      stack.resize(1);
    }
    const auto onward = components(link);
    todo.insert(todo.end(), onward.rbegin(), onward.rend());
    if (todo.size() > PATH_MAX) return Error::sys("open", join(parts, "/"), ENAMETOOLONG);
  }
  return std::move(stack.back());
}

// The directory `name` in the directory `at`, or no descriptor and the target of a link. `path` has
// no link in it.
Result<UniqueFd> LayerTree::step(int at, const std::string& path, const std::string& name,
                                 Missing missing, std::string& link) {
  if (const auto st = TRY(look(at, name))) {
    if (S_ISDIR(st->st_mode)) return sys::openat(at, name, kDirectory);
    if (S_ISLNK(st->st_mode)) {
      link = TRY(sys::readlinkat(at, name));
      return UniqueFd{};
    }
    if (!is_whiteout(*st)) return Error::sys("open", path, ENOTDIR);
    if (missing == Missing::kFail) return Error::sys("open", path, ENOENT);
    TRY(sys::unlinkat(at, name, 0));
    auto made = TRY(make_implied(at, path, name, -1));
    TRY(make_opaque(made.get()));
    return made;
  }
  const auto make_new = [&]() -> Result<UniqueFd> {
    if (missing == Missing::kFail) return Error::sys("open", path, ENOENT);
    return make_implied(at, path, name, -1);
  };
  if (below_ < 0) return make_new();
  // Where a lower layer has a link on the way, this layer has replaced it, and nothing shows
  // through.
  const auto lower = open_plain(below_, path, O_PATH | O_NOFOLLOW);
  if (!lower.ok()) return make_new();
  const auto st = TRY(sys::fstat(lower.value().get(), path));
  if (S_ISLNK(st.st_mode)) {
    link = TRY(sys::readlinkat(lower.value().get(), ""));
    return UniqueFd{};
  }
  if (!S_ISDIR(st.st_mode)) return Error::sys("open", path, ENOTDIR);
  const auto like = TRY(sys::openat(lower.value().get(), ".", O_RDONLY | O_DIRECTORY));
  return make_implied(at, path, name, like.get());
}

// A directory that no entry has named yet: as the one it will cover, since of a merged directory an
// overlay shows the topmost's owner and mode; else 0755.
Result<UniqueFd> LayerTree::make_implied(int at, const std::string& path, const std::string& name,
                                         int like) {
  TRY(sys::mkdirat(at, name, 0755));
  auto made = TRY(sys::openat(at, name, kDirectory));
  TarEntry entry;
  entry.mode = S_IFDIR | 0755;
  ::clock_gettime(CLOCK_REALTIME, &entry.mtime);
  if (like >= 0) {
    entry = TRY(metadata_of(like, path));
    set_time_later(path, entry.mtime);
  }
  entry.path = path;
  TRY(set_metadata(made.get(), entry));
  return made;
}

Result<> LayerTree::make_opaque(int dir) const {
  if (below_ < 0) return {};
  if (::setxattr(fd_path(dir).c_str(), kOpaqueAttribute, "y", 1, 0) < 0)
    return Error::sys("setxattr", kOpaqueAttribute);
  // In a directory that is not merged overlayfs lists whiteouts as broken entries.
  for (const auto& name : TRY(list_dir(dir)))
    if (const auto st = TRY(look(dir, name)); st && is_whiteout(*st))
      TRY(sys::unlinkat(dir, name, 0));
  return {};
}

// Where `dir` is below the root, without links.
Result<std::string> LayerTree::path_of(int dir) const {
  const auto own = TRY(sys::readlinkat(AT_FDCWD, fd_path(root_)));
  const auto path = TRY(sys::readlinkat(AT_FDCWD, fd_path(dir)));
  if (path == own) return std::string{"."};
  if (!path.starts_with(own + "/"))
    return Error::make(Code::kSystem,
                       cat("directory ", in_quotes(path), " is not below ", in_quotes(own)));
  return path.substr(own.size() + 1);
}

Result<UniqueFd> LayerTree::lower(int dir, const std::string& name) const {
  if (below_ < 0) return Error::sys("open", name, ENOENT);
  return open_plain(below_, cat(TRY(path_of(dir)), "/", name), O_PATH | O_NOFOLLOW);
}

Result<std::vector<std::string>> LayerTree::lower_names() const {
  if (below_ < 0) return std::vector<std::string>{};
  return list_dir(below_);
}

Result<bool> LayerTree::covers(int dir, const std::string& name) const {
  char value = 0;
  if (below_ < 0 || ::getxattr(fd_path(dir).c_str(), kOpaqueAttribute, &value, 1) == 1)
    return false;
  const auto found = lower(dir, name);
  if (found.ok()) return true;
  const int err = found.error().sys_errno();
  return err != ENOENT && err != ENOTDIR && err != ELOOP;
}

Result<> LayerTree::set_times() {
  for (const auto& [path, mtime] : times_) {
    auto parts = components(path);
    if (parts.empty()) {
      TRY(set_mtime(root_, mtime, path));
      continue;
    }
    const auto name = parts.back();
    parts.pop_back();
    const auto parent = open_in_root(root_, join(parts, "/"), O_PATH | O_DIRECTORY);
    if (!parent.ok()) continue;  // a later entry has replaced it
    if (const auto dir = sys::openat(parent.value().get(), name, kDirectory); dir.ok())
      TRY(set_mtime(dir.value().get(), mtime, path));
  }
  return {};
}

}  // namespace wherry::image
