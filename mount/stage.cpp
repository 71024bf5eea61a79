#include "mount/stage.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry::mount {
namespace {

Result<UniqueFd> new_place(const std::string& at) {
  const auto fs = TRY(sys::fsopen("tmpfs"));
  TRY(sys::fsconfig_string(fs.get(), "source", "tmpfs"));
  TRY(sys::fsconfig_string(fs.get(), "mode", "700"));
  TRY(sys::fsconfig_create(fs.get()));
  auto place = TRY(sys::fsmount(fs.get(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  TRY(sys::move_mount(place.get(), "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH));
  return place;
}

Result<> put(int place, const std::string& name, int tree) {
  if (S_ISDIR(TRY(sys::fstat(tree, name)).st_mode))
    TRY(sys::mkdirat(place, name, 0700));
  else
    TRY(sys::mknodat(place, name, S_IFREG | 0600, 0));
  return sys::move_mount(tree, "", place, name, MOVE_MOUNT_F_EMPTY_PATH);
}

}  // namespace

Result<> stage(const std::string& at, const std::vector<UniqueFd*>& trees) {
  TRY(sys::unshare(CLONE_NEWNS, "mount namespace"));
  // Nothing of this reaches the host, and what the host mounts still arrives.
  TRY(sys::set_propagation("/", MS_SLAVE | MS_REC));
  const auto place = TRY(new_place(at));
  for (std::size_t i = 0; i < trees.size(); ++i) {
    if (!*trees[i]) continue;
    TRY(put(place.get(), cat(i), trees[i]->get()));
    trees[i]->reset();
  }
  return {};
}

Result<> take_staged(const std::string& at, const std::vector<UniqueFd*>& trees) {
  const auto place = TRY(sys::openat(AT_FDCWD, at, O_PATH | O_DIRECTORY));
  for (std::size_t i = 0; i < trees.size(); ++i) {
    auto tree = sys::open_tree(place.get(), cat(i), OPEN_TREE_CLONE | AT_RECURSIVE);
    if (tree.ok())
      *trees[i] = std::move(tree).value();
    else if (tree.error().sys_errno() != ENOENT)
      return std::move(tree).error();
  }
  return {};
}

}  // namespace wherry::mount
