// Masked and read-only paths.
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/path.h"
#include "base/text.h"
#include "mount/root.h"

namespace wherry::mount {
namespace {

Result<> attach(int mount, int target) {
  return sys::move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

// The path as the container will see it, or nothing when it does not exist.
Result<UniqueFd> find(int root, const std::string& path) {
  auto found = open_in_root(root, path, O_PATH);
  if (!found.ok() && (found.error().sys_errno() == ENOENT || found.error().sys_errno() == ENOTDIR))
    return UniqueFd{};
  return found;
}

// What hides files and directories: made here and never attached by a name, so nobody can swap it
// (CVE-2025-31133).
class Covers {
 public:
  // The first directory gets the file system itself and the others copies of that mount, since only
  // Linux 6.15 and later copy a mount that is not attached yet.
  Result<> cover_directory(int target) {
    if (directory_) return attach(TRY(copy_of(directory_.get())).get(), target);
    const auto fs = TRY(sys::fsopen("tmpfs"));
    TRY(sys::fsconfig_string(fs.get(), "source", "tmpfs"));
    TRY(sys::fsconfig_string(fs.get(), "mode", "755"));
    TRY(sys::fsconfig_string(fs.get(), "nr_inodes", "2"));
    TRY(sys::fsconfig_create(fs.get()));
    directory_ = TRY(sys::fsmount(fs.get(), MOUNT_ATTR_RDONLY));
    return attach(directory_.get(), target);
  }
  // A bind of the null device of the container's own /dev, looked at after it is opened.
  Result<> cover_file(int root, int target) {
    if (!file_) {
      file_ = TRY(sys::openat2(root, "dev/null", O_PATH, 0, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS));
      const auto st = TRY(sys::fstat(file_.get(), "/dev/null"));
      if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
        return Error::make(Code::kInvalid, "'/dev/null' of the root is not the null device");
    }
    return attach(TRY(copy_of(file_.get())).get(), target);
  }

 private:
  static Result<UniqueFd> copy_of(int tree) {
    return sys::open_tree(tree, "", OPEN_TREE_CLONE | AT_EMPTY_PATH);
  }
  UniqueFd directory_, file_;
};

}  // namespace

Result<> mask_paths(int root, const std::vector<std::string>& paths) {
  Covers covers;
  for (const auto& path : paths) {
    const auto target = TRY_CTX(find(root, path), cat("mask '", path, "'"));
    if (!target) continue;
    const auto st = TRY(sys::fstat(target.get(), path));
    TRY_CTX(S_ISDIR(st.st_mode) ? covers.cover_directory(target.get())
                                : covers.cover_file(root, target.get()),
            cat("mask '", path, "'"));
  }
  return {};
}

Result<> make_read_only(int root, const std::vector<std::string>& paths) {
  for (const auto& path : paths) {
    const auto context = cat("make '", path, "' read-only");
    const auto target = TRY_CTX(find(root, path), context);
    if (!target) continue;
    const auto tree = TRY_CTX(
        sys::open_tree(target.get(), "", OPEN_TREE_CLONE | AT_EMPTY_PATH | AT_RECURSIVE), context);
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_RDONLY;
    TRY_CTX(sys::mount_setattr(tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, attributes), context);
    TRY_CTX(attach(tree.get(), target.get()), context);
  }
  return {};
}

}  // namespace wherry::mount
