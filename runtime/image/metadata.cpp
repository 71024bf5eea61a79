#include "runtime/image/metadata.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <array>

#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry::image {

XattrRule xattr_rule(std::string_view name) {
  for (const std::string_view prefix : {"trusted.overlay.", "user.overlay."})
    if (name.starts_with(prefix)) return XattrRule::kRefuse;
  for (const std::string_view prefix : {"user.", "trusted.", "system.posix_acl_"})
    if (name.starts_with(prefix)) return XattrRule::kKeep;
  return name == "security.capability" ? XattrRule::kKeep : XattrRule::kDrop;
}

Result<> set_mtime(int fd, const timespec& mtime, const std::string& subject) {
  const std::array<timespec, 2> times{mtime, mtime};
  if (::utimensat(AT_FDCWD, fd_path(fd).c_str(), times.data(), 0) < 0)
    return Error::sys("utimensat", subject);
  return {};
}

Result<> set_metadata(int fd, const TarEntry& entry) {
  const auto own_path = fd_path(fd);  // the calls below have no descriptor form that takes O_PATH
  TRY(sys::fchownat(fd, "", entry.uid, entry.gid, AT_EMPTY_PATH));
  // After the owner: chown(2) takes set-user-ID and security.capability away.
  if (!S_ISLNK(entry.mode) && ::chmod(own_path.c_str(), entry.mode & 07777) < 0)
    return Error::sys("chmod", entry.path);
  for (const auto& [name, value] : entry.xattrs) {
    const auto rule = xattr_rule(name);
    if (rule == XattrRule::kRefuse)
      return Error::make(Code::kInvalid,
                         cat("archive entry ", in_quotes(entry.path), " has the attribute ",
                             in_quotes(name), ", which is overlayfs's own"));
    if (rule == XattrRule::kDrop) continue;
    if (::setxattr(own_path.c_str(), name.c_str(), value.data(), value.size(), 0) < 0)
      return Error::sys(cat("setxattr ", in_quotes(name)), entry.path);
  }
  return set_mtime(fd, entry.mtime, entry.path);
}

Result<TarEntry> metadata_of(int fd, const std::string& path) {
  const auto st = TRY(sys::fstat(fd, path));
  TarEntry entry;
  entry.path = path;
  entry.mode = st.st_mode;
  entry.uid = st.st_uid;
  entry.gid = st.st_gid;
  entry.size = static_cast<std::uint64_t>(st.st_size);
  entry.mtime = st.st_mtim;
  entry.rdev = st.st_rdev;
  std::array<char, XATTR_LIST_MAX> names{};
  const auto size = ::flistxattr(fd, names.data(), names.size());
  if (size < 0 && errno != ENOTSUP) return Error::sys("flistxattr", path);
  const std::string_view listed{names.data(), static_cast<std::size_t>(size < 0 ? 0 : size)};
  for (const auto piece : split(listed, '\0')) {
    const std::string name{piece};
    if (name.empty() || xattr_rule(name) != XattrRule::kKeep) continue;
    std::string value(XATTR_SIZE_MAX, '\0');
    const auto got = ::fgetxattr(fd, name.c_str(), value.data(), value.size());
    if (got < 0) return Error::sys(cat("fgetxattr ", in_quotes(name)), path);
    value.resize(static_cast<std::size_t>(got));
    entry.xattrs.emplace_back(name, std::move(value));
  }
  return entry;
}

}  // namespace wherry::image
