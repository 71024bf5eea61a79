#include "mount/copy_up.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <array>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"

namespace wherry::mount {
namespace {

Result<> copy_attributes(int from, int to, const struct stat& st, const std::string& name) {
  TRY(sys::fchown(to, st.st_uid, st.st_gid, name));
  TRY(sys::fchmod(to, st.st_mode & 07777, name));
  std::array<char, 65536> names{}, value{};
  const ssize_t size = ::flistxattr(from, names.data(), names.size());
  for (ssize_t at = 0; at < size;) {
    const std::string key = names.data() + at;
    at += static_cast<ssize_t>(key.size()) + 1;
    const ssize_t got = ::fgetxattr(from, key.c_str(), value.data(), value.size());
    // tmpfs has user.* since Linux 6.6 only; what it cannot keep it does not get.
    if (got >= 0 &&
        ::fsetxattr(to, key.c_str(), value.data(), static_cast<std::size_t>(got), 0) < 0 &&
        errno != EOPNOTSUPP && errno != EPERM)
      return Error::sys("fsetxattr", key);
  }
  const std::array times{st.st_atim, st.st_mtim};
  if (::futimens(to, times.data()) < 0) return Error::sys("futimens", name);
  return {};
}

// All of it from the descriptor: what the name stands for may be exchanged while we look.
Result<> copy_file(int parent, const std::string& name, int to, const std::string& to_name) {
  const auto in = TRY(sys::openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  const auto st = TRY(sys::fstat(in.get(), name));
  if (!S_ISREG(st.st_mode))
    return Error::make(Code::kInvalid, cat("'", name, "' is another file than a moment ago"));
  const auto out = TRY(sys::openat(to, to_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  std::array<char, 65536> chunk;
  while (true) {
    const auto got = TRY(sys::read(in.get(), chunk, name));
    if (got == 0) break;
    TRY(sys::write_all(out.get(), {chunk.data(), got}, name));
  }
  return copy_attributes(in.get(), out.get(), st, name);
}

Result<> copy_link(int parent, const std::string& name, int to, const std::string& to_name,
                   const struct stat& st) {
  TRY(sys::symlinkat(TRY(sys::readlinkat(parent, name)), to, to_name));
  return sys::fchownat(to, to_name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW);
}

}  // namespace

Result<> copy_up(int from, int to, Given given) {
  auto top = TRY(sys::fstat(from));
  const auto own = TRY(sys::fstat(to));
  if (given.uid) top.st_uid = own.st_uid;
  if (given.gid) top.st_gid = own.st_gid;
  if (given.mode) top.st_mode = own.st_mode;
  std::vector<std::string> directories;
  TRY(walk_tree(from,
                [&](int parent, const std::string& name, const std::string& path,
                    const struct stat& st) -> Result<> {
                  // `path` goes through directories that we have made in an empty file system of
                  // ours: no link is among them.
                  if (S_ISDIR(st.st_mode)) {
                    directories.push_back(path);
                    return {};
                  }
                  const auto slash = path.rfind('/');
                  const auto dir =
                      slash == std::string::npos ? std::string{"/"} : "/" + path.substr(0, slash);
                  const auto into = TRY(make_dirs_in_root(to, dir, 0700));
                  if (S_ISREG(st.st_mode)) return copy_file(parent, name, into.get(), name);
                  if (S_ISLNK(st.st_mode)) return copy_link(parent, name, into.get(), name, st);
                  if (!S_ISFIFO(st.st_mode)) return {};
                  TRY(sys::mknodat(into.get(), name, S_IFIFO | (st.st_mode & 07777), 0));
                  return sys::fchownat(into.get(), name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW);
                }));
  // Last, since their times change with what is put into them, and a mode may keep us out.
  for (const auto& path : directories) {
    TRY(make_dirs_in_root(to, "/" + path, 0700)).reset();
    const auto in = TRY(open_beneath(from, path, O_RDONLY | O_DIRECTORY));
    const auto out = TRY(open_beneath(to, path, O_RDONLY | O_DIRECTORY));
    TRY(copy_attributes(in.get(), out.get(), TRY(sys::fstat(in.get(), path)), path));
  }
  return copy_attributes(from, to, top, "its root");
}

}  // namespace wherry::mount
