// /dev and the console of a container, whatever its image put there.
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/path.h"
#include "base/text.h"
#include "mount/root.h"

namespace wherry::mount {
namespace {

struct DefaultDevice {
  const char* name;
  unsigned major, minor;
};
// config-linux.md, "Default Devices"; /dev/console comes with a terminal, /dev/ptmx is a link.
constexpr std::array kDefaultDevices = {
    DefaultDevice{"null", 1, 3},   DefaultDevice{"zero", 1, 5},    DefaultDevice{"full", 1, 7},
    DefaultDevice{"random", 1, 8}, DefaultDevice{"urandom", 1, 9}, DefaultDevice{"tty", 5, 0}};

struct DefaultLink {
  const char* name;
  const char* target;
};
constexpr std::array kDefaultLinks = {
    DefaultLink{"fd", "/proc/self/fd"}, DefaultLink{"stdin", "/proc/self/fd/0"},
    DefaultLink{"stdout", "/proc/self/fd/1"}, DefaultLink{"stderr", "/proc/self/fd/2"},
    DefaultLink{"ptmx", "pts/ptmx"}};

Result<mode_t> type_bits(const oci::Device& device) {
  if (device.type == "c" || device.type == "u") return static_cast<mode_t>(S_IFCHR);
  if (device.type == "b") return static_cast<mode_t>(S_IFBLK);
  if (device.type == "p") return static_cast<mode_t>(S_IFIFO);
  return Error::make(Code::kInvalid, cat("device type '", device.type, "' is none of c, b, u, p"));
}

Result<> make_node(int dir, const std::string& name, mode_t type, dev_t number, mode_t mode,
                   uid_t uid, gid_t gid) {
  auto made = sys::mknodat(dir, name, type | (mode & 07777), number);
  if (!made.ok() && made.error().sys_errno() != EEXIST) return made;
  // Looked at through the descriptor of the object itself: a link put there meanwhile is not
  // followed.
  const auto node = TRY(sys::openat(dir, name, O_PATH | O_NOFOLLOW));
  const auto st = TRY(sys::fstat(node.get(), name));
  if ((st.st_mode & S_IFMT) != type || (type != S_IFIFO && st.st_rdev != number))
    return Error::make(Code::kInvalid,
                       cat("'/dev/", name, "' of the root is there already and is not device ",
                           major(number), ":", minor(number)))
        .hint("let the spec mount a tmpfs on /dev, or take the file out of the image");
  if (!made.ok()) return {};  // the image's own node of the right kind: its owner and mode stay
  if (uid == 0 && gid == 0) return {};
  return sys::fchownat(node.get(), "", uid, gid, AT_EMPTY_PATH);
}

Result<> make_link(int dir, const DefaultLink& link) {
  auto made = sys::symlinkat(link.target, dir, link.name);
  // Some images ship these links, or a node in their place: that is theirs to decide, and nothing
  // of ours follows them.
  if (!made.ok() && made.error().sys_errno() != EEXIST) return made;
  return {};
}

Result<UniqueFd> open_dev(int root) {
  auto dev =
      sys::openat2(root, "dev", O_PATH | O_DIRECTORY, 0, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
  if (dev.ok() || dev.error().sys_errno() != ENOENT) return dev;
  TRY(sys::mkdirat(root, "dev", 0755));
  return sys::openat2(root, "dev", O_PATH | O_DIRECTORY, 0, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
}

Result<> make_spec_device(int root, const oci::Device& device) {
  auto parts = components(device.path);
  if (parts.empty()) return Error::make(Code::kInvalid, "a device needs a path");
  const auto name = parts.back();
  parts.pop_back();
  const auto dir = TRY(make_dirs_in_root(root, "/" + join(parts, "/"), 0755));
  const auto number =
      makedev(static_cast<unsigned>(device.major), static_cast<unsigned>(device.minor));
  return make_node(dir.get(), name, TRY(type_bits(device)), number, device.file_mode.value_or(0666),
                   device.uid.value_or(0), device.gid.value_or(0));
}

Result<> check_devpts(int fd) {
  struct statfs fs {};
  if (::fstatfs(fd, &fs) < 0) return Error::sys("fstatfs", "/dev/pts");
  if (fs.f_type != DEVPTS_SUPER_MAGIC)
    return Error::make(Code::kInvalid,
                       "'/dev/pts' of the root is not a devpts, which a terminal needs")
        .hint("add a mount of type devpts on /dev/pts to the spec");
  return {};
}

}  // namespace

Result<> make_devices(int root, const std::vector<oci::Device>& devices) {
  const auto dev = TRY_CTX(open_dev(root), "'/dev' of the root");
  for (const auto& device : kDefaultDevices) {
    const auto wanted = [&](const oci::Device& d) {
      return components(d.path) == std::vector<std::string>{"dev", device.name};
    };
    if (std::any_of(devices.begin(), devices.end(), wanted)) continue;  // the spec's own wins
    TRY_CTX(
        make_node(dev.get(), device.name, S_IFCHR, makedev(device.major, device.minor), 0666, 0, 0),
        "default device");
  }
  for (const auto& device : devices)
    TRY_CTX(make_spec_device(root, device), cat("device '", device.path, "'"));
  for (const auto& link : kDefaultLinks) TRY(make_link(dev.get(), link));
  return {};
}

namespace {

// A file to mount on, in a directory of the container's.
Result<UniqueFd> device_target(int dir, const std::string& name) {
  auto made = sys::mknodat(dir, name, S_IFREG | 0666, 0);
  if (!made.ok() && made.error().sys_errno() != EEXIST) return std::move(made).error();
  auto target = TRY(sys::openat(dir, name, O_PATH | O_NOFOLLOW));
  const auto st = TRY(sys::fstat(target.get(), name));
  if (S_ISLNK(st.st_mode)) return Error::make(Code::kInvalid, "it is a link of the root's");
  if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
    return Error::make(Code::kInvalid, "it is neither a file nor a device of the root's");
  return target;
}

// By the same way as make_node(): /dev itself is never a link.
Result<> bind_device(int root, const DeviceBind& bind) {
  auto parts = components(bind.path);
  if (parts.empty()) return Error::make(Code::kInvalid, "a device needs a path");
  const auto name = parts.back();
  parts.pop_back();
  const auto dir = TRY(make_dirs_in_root(root, "/" + join(parts, "/"), 0755));
  const auto target = TRY(device_target(dir.get(), name));
  return sys::move_mount(bind.tree.get(), "", target.get(), "",
                         MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

Result<DeviceBind> plan_bind(const std::string& path, mode_t type, dev_t number,
                             const oci::Device& wanted) {
  const auto mode = static_cast<mode_t>(wanted.file_mode.value_or(0666));
  DeviceBind bind;
  bind.path = path;
  auto tree = sys::open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | AT_SYMLINK_NOFOLLOW);
  const auto no = [&](std::string_view why) {
    return Error::make(Code::kUnsupported,
                       cat("device '", path, "' ", major(number), ":", minor(number),
                           ": in a user namespace it can only be the host's own, ", why));
  };
  if (!tree.ok()) return no("which cannot be had: " + tree.error().message());
  bind.tree = std::move(tree).value();
  const auto st = TRY(sys::fstat(bind.tree.get(), path));
  if ((st.st_mode & S_IFMT) != type || st.st_rdev != number) return no("which is another one");
  if ((st.st_mode & 0777 & ~mode) != 0) return no("whose mode allows more than was asked for");
  if (wanted.uid.value_or(st.st_uid) != st.st_uid || wanted.gid.value_or(st.st_gid) != st.st_gid)
    return no(cat("which belongs to ", st.st_uid, ":", st.st_gid));
  return bind;
}

}  // namespace

Result<std::vector<DeviceBind>> plan_device_binds(const std::vector<oci::Device>& devices) {
  std::vector<DeviceBind> binds;
  for (const auto& device : kDefaultDevices) {
    const auto path = cat("/dev/", device.name);
    const auto wanted = [&](const oci::Device& d) {
      return components(d.path) == components(path);
    };
    if (std::any_of(devices.begin(), devices.end(), wanted)) continue;
    binds.push_back(TRY(plan_bind(path, S_IFCHR, makedev(device.major, device.minor), {})));
  }
  for (const auto& device : devices) {
    if (device.type == "p") continue;
    const auto number =
        makedev(static_cast<unsigned>(device.major), static_cast<unsigned>(device.minor));
    binds.push_back(TRY(plan_bind(device.path, TRY(type_bits(device)), number, device)));
  }
  return binds;
}

Result<> bind_devices(int root, const std::vector<oci::Device>& devices,
                      std::vector<DeviceBind>& binds) {
  const auto dev = TRY_CTX(open_dev(root), "'/dev' of the root");
  for (auto& bind : binds) {
    TRY_CTX(bind_device(root, bind), cat("device '", bind.path, "'"));
    bind.tree.reset();
  }
  for (const auto& device : devices)
    if (device.type == "p")
      TRY_CTX(make_spec_device(root, device), cat("device '", device.path, "'"));
  for (const auto& link : kDefaultLinks) TRY(make_link(dev.get(), link));
  return {};
}

Result<Console> open_terminal(int root, const oci::Box& size, uid_t owner) {
  const auto pts = TRY_CTX(
      sys::openat2(root, "dev/pts", O_PATH | O_DIRECTORY, 0, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS),
      "terminal");
  TRY(check_devpts(pts.get()));
  Console console;
  console.master = TRY(sys::openat2(pts.get(), "ptmx", O_RDWR | O_NOCTTY, 0,
                                    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV));
  TRY(check_devpts(console.master.get()));
  int unlock = 0;
  if (::ioctl(console.master.get(), TIOCSPTLCK, &unlock) < 0)
    return Error::sys("ioctl(TIOCSPTLCK)");
  console.slave =
      UniqueFd{::ioctl(console.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)};
  if (!console.slave) return Error::sys("ioctl(TIOCGPTPEER)");
  if (size.height != 0 || size.width != 0) {
    winsize window{};
    window.ws_row = static_cast<unsigned short>(size.height);
    window.ws_col = static_cast<unsigned short>(size.width);
    if (::ioctl(console.master.get(), TIOCSWINSZ, &window) < 0)
      return Error::sys("ioctl(TIOCSWINSZ)");
  }
  TRY(sys::fchown(console.slave.get(), owner, static_cast<gid_t>(-1), "terminal"));
  return console;
}

Result<Console> make_console(int root, const oci::Box& size, uid_t owner) {
  auto console = TRY(open_terminal(root, size, owner));
  const auto target = TRY(make_file_in_root(root, "/dev/console", 0755, 0600));
  const auto st = TRY(sys::fstat(target.get(), "/dev/console"));
  if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
    return Error::make(Code::kInvalid, "'/dev/console' of the root is neither a file nor a device");
  const auto tree = TRY(sys::open_tree(console.slave.get(), "", OPEN_TREE_CLONE | AT_EMPTY_PATH));
  TRY_CTX(sys::move_mount(tree.get(), "", target.get(), "",
                          MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH),
          "'/dev/console'");
  return console;
}

}  // namespace wherry::mount
