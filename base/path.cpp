#include "base/path.h"

#include <unistd.h>

#include "base/text.h"

namespace wherry {
namespace {

constexpr int kMostComponents = 4096;

// The directory `name` below `parent` inside `rootfd`, made when it is missing. `walked` is the
// path so far: a link is resolved from the root again, because RESOLVE_IN_ROOT needs the root's own
// descriptor to stay inside.
Result<UniqueFd> step_into(int rootfd, int parent, const std::string& name,
                           const std::string& walked, mode_t mode) {
  constexpr int kDir = O_PATH | O_DIRECTORY;
  auto plain = sys::openat2(parent, name, kDir | O_NOFOLLOW, 0,
                            RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
  if (plain.ok()) return plain;
  if (plain.error().sys_errno() == ENOENT) {
    if (auto made = sys::mkdirat(parent, name, mode);
        !made.ok() && made.error().sys_errno() != EEXIST)
      return std::move(made).error();
    return sys::openat2(parent, name, kDir | O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
  }
  // ELOOP from RESOLVE_NO_SYMLINKS, ENOTDIR from O_DIRECTORY with O_NOFOLLOW: both may be a link.
  if (plain.error().sys_errno() != ELOOP && plain.error().sys_errno() != ENOTDIR) return plain;
  return open_in_root(rootfd, walked, kDir);
}

}  // namespace

Result<UniqueFd> open_in_root(int rootfd, const std::string& path, int flags, mode_t mode) {
  return sys::openat2(rootfd, path.empty() ? "." : path, static_cast<std::uint64_t>(flags), mode,
                      RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

Result<UniqueFd> open_beneath(int dirfd, const std::string& path, int flags, mode_t mode) {
  return sys::openat2(dirfd, path, static_cast<std::uint64_t>(flags), mode,
                      RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

Result<UniqueFd> open_plain(int dirfd, const std::string& path, int flags, mode_t mode) {
  return sys::openat2(
      dirfd, path, static_cast<std::uint64_t>(flags), mode,
      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
}

Result<UniqueFd> make_dirs_in_root(int rootfd, const std::string& path, mode_t mode) {
  const auto parts = components(path);
  if (parts.size() > kMostComponents) return Error::sys("mkdir", path, ENAMETOOLONG);
  // The common case in one call; also the one that follows whatever links there are.
  if (auto there = open_in_root(rootfd, path, O_PATH | O_DIRECTORY);
      there.ok() || there.error().sys_errno() != ENOENT)
    return there;
  auto at = TRY(sys::openat(rootfd, ".", O_PATH | O_DIRECTORY));
  std::string walked;
  for (const auto& part : parts) {
    if (part == "..")
      return Error::make(Code::kInvalid,
                         cat("'", path, "' has '..' below a directory that does not exist"));
    walked += '/';
    walked += part;
    at = TRY(step_into(rootfd, at.get(), part, walked, mode));
  }
  return at;
}

Result<UniqueFd> make_file_in_root(int rootfd, const std::string& path, mode_t dir_mode,
                                   mode_t file_mode) {
  if (auto there = open_in_root(rootfd, path, O_PATH);
      there.ok() || there.error().sys_errno() != ENOENT)
    return there;
  auto parts = components(path);
  if (parts.empty() || parts.back() == "..")
    return Error::make(Code::kInvalid, cat("'", path, "' does not name a file"));
  const std::string name = parts.back();
  parts.pop_back();
  const auto dir = TRY(make_dirs_in_root(rootfd, "/" + join(parts, "/"), dir_mode));
  // O_EXCL: a dangling link put there by the image is not followed.
  auto made =
      sys::openat(dir.get(), name, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDONLY | O_NOCTTY, file_mode);
  if (!made.ok() && made.error().sys_errno() != EEXIST) return made;
  return open_in_root(rootfd, path, O_PATH);
}

std::vector<std::string> components(std::string_view path) {
  std::vector<std::string> parts;
  for (const auto piece : split(path, '/'))
    if (!piece.empty() && piece != ".") parts.emplace_back(piece);
  return parts;
}

std::string fd_path(int fd) {
  return cat("/proc/self/fd/", fd);
}

}  // namespace wherry
