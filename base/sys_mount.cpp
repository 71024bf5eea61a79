#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "base/sys.h"
#include "base/text.h"

namespace wherry::sys {
namespace {

Result<> done(long result, std::string_view call, std::string_view subject) {
  if (result < 0) return Error::sys(call, subject);
  return {};
}

// The file system's own words ("e overlay: lowerdir is too long"), read from the context descriptor
// (fsopen(2)).
std::string fs_log(int fs) {
  std::string text;
  std::array<char, 512> line{};
  for (int lines = 0; lines < 16; ++lines) {
    const ssize_t got = ::read(fs, line.data(), line.size());
    if (got <= 2) break;
    if (!text.empty()) text += "; ";
    text += trim({line.data() + 2, static_cast<std::size_t>(got) - 2});
  }
  return text;
}

Result<> fsconfig(int fs, unsigned command, const char* key, const void* value, int aux,
                  std::string_view subject) {
  if (::syscall(SYS_fsconfig, fs, command, key, value, aux) >= 0) return {};
  const int err = errno;
  auto error = Error::sys("fsconfig", subject, err);
  if (const auto log = fs_log(fs); !log.empty()) return std::move(error).hint(log).context(log);
  return error;
}

}  // namespace

Result<UniqueFd> fsopen(const std::string& fstype) {
  const long fd = ::syscall(SYS_fsopen, fstype.c_str(), FSOPEN_CLOEXEC);
  if (fd < 0) return Error::sys("fsopen", fstype);
  return UniqueFd{static_cast<int>(fd)};
}

Result<> fsconfig_string(int fs, const std::string& key, const std::string& value) {
  return fsconfig(fs, FSCONFIG_SET_STRING, key.c_str(), value.c_str(), 0, cat(key, "=", value));
}
Result<> fsconfig_flag(int fs, const std::string& key) {
  return fsconfig(fs, FSCONFIG_SET_FLAG, key.c_str(), nullptr, 0, key);
}
Result<> fsconfig_fd(int fs, const std::string& key, int fd) {
  return fsconfig(fs, FSCONFIG_SET_FD, key.c_str(), nullptr, fd, key);
}
Result<> fsconfig_create(int fs) {
  return fsconfig(fs, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0, "create");
}

Result<UniqueFd> fsmount(int fs, unsigned attributes) {
  const long fd = ::syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attributes);
  if (fd < 0) return Error::sys("fsmount");
  return UniqueFd{static_cast<int>(fd)};
}

Result<UniqueFd> open_tree(int dirfd, const std::string& path, unsigned flags) {
  const long fd = ::syscall(SYS_open_tree, dirfd, path.c_str(), flags | OPEN_TREE_CLOEXEC);
  if (fd < 0) return Error::sys("open_tree", path);
  return UniqueFd{static_cast<int>(fd)};
}

Result<> move_mount(int from, const std::string& from_path, int to, const std::string& to_path,
                    unsigned flags) {
  return done(::syscall(SYS_move_mount, from, from_path.c_str(), to, to_path.c_str(), flags),
              "move_mount", to_path);
}

Result<> mount_setattr(int dirfd, const std::string& path, unsigned flags,
                       const struct mount_attr& attributes) {
  return done(
      ::syscall(SYS_mount_setattr, dirfd, path.c_str(), flags, &attributes, sizeof attributes),
      "mount_setattr", path);
}

Result<> umount2(const std::string& path, int flags) {
  return done(::umount2(path.c_str(), flags), "umount2", path);
}

Result<> pivot_root(const std::string& new_root, const std::string& put_old) {
  return done(::syscall(SYS_pivot_root, new_root.c_str(), put_old.c_str()), "pivot_root", new_root);
}

Result<> set_propagation(const std::string& path, unsigned long flags) {
  return done(::mount(nullptr, path.c_str(), nullptr, flags, nullptr), "mount(propagation)", path);
}

Result<> fchdir(int fd, std::string_view subject) {
  return done(::fchdir(fd), "fchdir", subject);
}
Result<> chdir(const std::string& path) {
  return done(::chdir(path.c_str()), "chdir", path);
}

}  // namespace wherry::sys
