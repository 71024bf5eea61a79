#include "mount/root.h"

#include <linux/mount.h>
#include <sys/mount.h>

#include "base/path.h"
#include "base/text.h"

namespace wherry::mount {

Result<UniqueFd> clone_root(const std::string& path) {
  auto tree = sys::open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | AT_RECURSIVE);
  if (!tree.ok()) return std::move(tree).error().context("root");
  const auto st = TRY(sys::fstat(tree->get(), path));
  if (!S_ISDIR(st.st_mode)) return Error::sys("root", path, ENOTDIR);
  // A root that is shared with the host would send every mount made in it back to the host.
  mount_attr attributes{};
  attributes.propagation = MS_PRIVATE;
  TRY(sys::mount_setattr(tree->get(), "", AT_EMPTY_PATH | AT_RECURSIVE, attributes));
  return tree;
}

Result<> isolate(unsigned long propagation) {
  // Slave when the spec wants host mounts to arrive later, private otherwise; shared would let ours
  // out.
  const unsigned long kind =
      propagation == MS_SLAVE || propagation == MS_SHARED ? MS_SLAVE : MS_PRIVATE;
  return sys::set_propagation("/", kind | MS_REC);
}

Result<> attach_root(int root, int at) {
  if (at >= 0)
    return sys::move_mount(root, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  // No path of the host is needed, and nothing is left on one (REL-21).
  return sys::move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH);
}

Result<> enter_root(int root) {
  TRY(sys::fchdir(root, "container root"));
  // With both names the same the old root is mounted over the new one, where "." still finds it
  // (pivot_root(2)).
  TRY(sys::pivot_root(".", "."));
  TRY(sys::umount2(".", MNT_DETACH));
  return sys::chdir("/");
}

Result<> set_root_propagation(unsigned long propagation, bool recursive) {
  if (propagation == 0) return {};
  return sys::set_propagation("/",
                              propagation | (recursive ? static_cast<unsigned long>(MS_REC) : 0UL));
}

Result<> make_root_read_only(int root) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  return sys::mount_setattr(root, "", AT_EMPTY_PATH, attributes);
}

}  // namespace wherry::mount
