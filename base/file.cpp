#include "base/file.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/id.h"
#include "base/path.h"
#include "base/text.h"

namespace wherry {
namespace {

enum class Durability { kNone, kSynced };

Result<> replace(int dirfd, const std::string& name, std::string_view data, mode_t mode,
                 Durability durability) {
  const std::string temporary = cat(".", name, ".", random_hex(4));
  auto file = TRY(sys::openat(dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
  auto write = [&]() -> Result<> {
    TRY(sys::write_all(file.get(), data, name));
    if (durability == Durability::kSynced) TRY(sys::fsync(file.get(), name));
    return sys::renameat2(dirfd, temporary, dirfd, name);
  };
  if (auto written = write(); !written.ok()) {
    sys::unlinkat(dirfd, temporary, 0).ignore("the first error is the one to tell");
    return written;
  }
  if (durability == Durability::kSynced) {
    const auto dir = TRY(sys::openat(dirfd, ".", O_RDONLY | O_DIRECTORY));
    TRY(sys::fsync(dir.get(), name));
  }
  return {};
}

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

Result<> remove_below(int dirfd, const std::string& name, int depth) {
  constexpr int kDeepest = 4096;
  if (depth > kDeepest) return Error::sys("remove", name, ELOOP);
  auto gone = sys::unlinkat(dirfd, name, 0);
  if (gone.ok() || gone.error().sys_errno() == ENOENT) return {};
  if (gone.error().sys_errno() != EISDIR && gone.error().sys_errno() != EPERM) return gone;
  {
    const auto dir = TRY(sys::openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    for (const auto& entry : TRY(list_dir(dir.get())))
      TRY(remove_below(dir.get(), entry, depth + 1));
  }
  gone = sys::unlinkat(dirfd, name, AT_REMOVEDIR);
  if (!gone.ok() && gone.error().sys_errno() == ENOENT) return {};
  return gone;
}

Result<> walk_below(int dirfd, const std::string& prefix,
                    const std::function<Result<>(int, const std::string&, const std::string&,
                                                 const struct stat&)>& visit) {
  for (const auto& name : TRY(list_dir(dirfd))) {
    auto st = sys::fstatat(dirfd, name);
    if (!st.ok()) {
      if (st.error().sys_errno() == ENOENT) continue;
      return std::move(st).error();
    }
    const auto path = prefix.empty() ? name : cat(prefix, "/", name);
    TRY(visit(dirfd, name, path, *st));
    if (!S_ISDIR(st->st_mode)) continue;
    const auto dir = TRY(sys::openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    TRY(walk_below(dir.get(), path, visit));
  }
  return {};
}

Result<> lock_open_file(int fd, const std::string& name, LockKind kind, Deadline deadline) {
  struct flock lock {};
  lock.l_type = kind == LockKind::kShared ? F_RDLCK : F_WRLCK;
  lock.l_whence = SEEK_SET;
  // F_OFD_SETLKW has no time-out and a signal handler would be a second way to wait, so the wait is
  // made of short naps.
  for (Millis nap{1}; ::fcntl(fd, F_OFD_SETLK, &lock) < 0; nap = std::min(nap * 2, Millis{20})) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR)
      return Error::sys("fcntl(F_OFD_SETLK)", name);
    if (deadline.expired())
      return Error::make(Code::kBusy, cat("'", name, "' is locked by another process"));
    ::poll(nullptr, 0, static_cast<int>(std::min(nap, deadline.left()).count()));
  }
  return {};
}

}  // namespace

Result<std::string> read_file_at(int dirfd, const std::string& name, std::size_t limit) {
  const auto file = TRY(sys::openat(dirfd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  return sys::read_to_end(file.get(), limit, name);
}

Result<> write_file_atomic(int dirfd, const std::string& name, std::string_view data, mode_t mode) {
  return replace(dirfd, name, data, mode, Durability::kSynced);
}

Result<> replace_file(int dirfd, const std::string& name, std::string_view data, mode_t mode) {
  return replace(dirfd, name, data, mode, Durability::kNone);
}

Result<> write_kernel_file(int dirfd, const std::string& name, std::string_view value) {
  const auto file = TRY(open_plain(dirfd, name, O_WRONLY));
  return sys::write_all(file.get(), value, cat(name, " = ", trim(value)));
}

Result<UniqueFd> open_private_dir(const std::string& path, mode_t mode) {
  if (path.empty() || path.front() != '/')
    return Error::make(Code::kInvalid, cat("'", path, "' is not an absolute path"));
  auto at = TRY(sys::openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY));
  const auto parts = components(path);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const mode_t part_mode = i + 1 == parts.size() ? mode : 0755;
    if (auto made = sys::mkdirat(at.get(), parts[i], part_mode);
        !made.ok() && made.error().sys_errno() != EEXIST)
      return std::move(made).error().context(path);
    at = TRY_CTX(sys::openat(at.get(), parts[i], O_RDONLY | O_DIRECTORY), path);
  }
  const auto st = TRY(sys::fstat(at.get(), path));
  if (st.st_uid != ::geteuid() || (st.st_mode & 0022) != 0)
    return Error::make(Code::kDenied, cat("'", path, "' must be owned by uid ", ::geteuid(),
                                          " and writable by nobody else"))
        .hint(cat("chown ", ::geteuid(), " ", path, " && chmod 0700 ", path));
  return at;
}

Result<UniqueFd> open_dir_at(int dirfd, const std::string& name) {
  return sys::openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Result<UniqueFd> make_dir_at(int dirfd, const std::string& name, mode_t mode) {
  if (auto made = sys::mkdirat(dirfd, name, mode); !made.ok() && made.error().sys_errno() != EEXIST)
    return std::move(made).error();
  return open_dir_at(dirfd, name);
}

Result<std::vector<std::string>> list_dir(int dirfd) {
  auto own = TRY(sys::openat(dirfd, ".", O_RDONLY | O_DIRECTORY));
  const std::unique_ptr<DIR, CloseDir> dir{::fdopendir(own.get())};
  if (!dir) return Error::sys("fdopendir");
  own.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return Error::sys("readdir");
  std::sort(names.begin(), names.end());
  return names;
}

Result<> remove_tree(int dirfd, const std::string& name) {
  const std::string away = cat(".gone.", random_hex(8));
  if (auto moved = sys::renameat2(dirfd, name, dirfd, away, RENAME_NOREPLACE); !moved.ok()) {
    if (moved.error().sys_errno() == ENOENT) return {};
    return remove_below(dirfd, name, 0);  // a full disk or a mount point cannot be renamed
  }
  return remove_below(dirfd, away, 0);
}

Result<> walk_tree(int dirfd,
                   const std::function<Result<>(int, const std::string&, const std::string&,
                                                const struct stat&)>& visit) {
  return walk_below(dirfd, "", visit);
}

Result<bool> is_entry(int dirfd, const std::string& name, int fd) {
  auto entry = sys::fstatat(dirfd, name);
  if (!entry.ok() && entry.error().code() == Code::kNotFound) return false;
  if (!entry.ok()) return std::move(entry).error();
  const auto ours = TRY(sys::fstat(fd, name));
  return entry.value().st_dev == ours.st_dev && entry.value().st_ino == ours.st_ino;
}

Result<UniqueFd> lock_file_at(int dirfd, const std::string& name, LockKind kind,
                              Deadline deadline) {
  while (true) {
    auto file = TRY(sys::openat(dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    TRY(lock_open_file(file.get(), name, kind, deadline));
    // Whoever held it may have removed it, and somebody else have locked a new one of that name.
    if (TRY(is_entry(dirfd, name, file.get()))) return file;
    if (deadline.expired())
      return Error::make(Code::kBusy, cat("'", name, "' is replaced all the time"));
  }
}

Result<bool> is_locked_at(int dirfd, const std::string& name) {
  auto file = sys::openat(dirfd, name, O_RDWR | O_NOFOLLOW);
  if (!file.ok()) {
    if (file.error().code() == Code::kNotFound) return false;
    return std::move(file).error();
  }
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(file->get(), F_OFD_GETLK, &lock) < 0) return Error::sys("fcntl(F_OFD_GETLK)", name);
  return lock.l_type != F_UNLCK;
}

}  // namespace wherry
