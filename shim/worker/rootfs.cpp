#include "shim/worker/rootfs.h"

#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include "mount/overlay.h"

namespace wherry::shim {
namespace {

// The upper directory is the root directory as the container sees it, so it gets owner and mode of
// the topmost layer's.
Result<> copy_owner_and_mode(const std::string& from, int to) {
  const auto st = TRY(sys::fstatat(AT_FDCWD, from));
  TRY(sys::fchown(to, st.st_uid, st.st_gid, "upper"));
  return sys::fchmod(to, st.st_mode & 07777, "upper");
}

}  // namespace

Result<UniqueFd> make_rootfs(const Context& context, const pod::Container& container) {
  const auto found = context.plan.images.find(container.name);
  if (found == context.plan.images.end())
    return Error::make(Code::kInvalid,
                       cat("the image of '", container.name, "' is not in the plan"));
  const auto all = TRY(make_dir_at(context.root_dir.get(), "rootfs", 0700));
  TRY(remove_tree(all.get(), container.name));
  const auto own = TRY(make_dir_at(all.get(), container.name, 0700));
  const auto upper = TRY(make_dir_at(own.get(), "upper", 0755));
  static_cast<void>(TRY(make_dir_at(own.get(), "work", 0700)));

  const std::string path = cat(context.root_path(), "/rootfs/", container.name);
  mount::Overlay overlay{found->second.layer_dirs, path + "/upper", path + "/work"};
  // The upper directory is made anew at each start, so nothing of it has to outlive the kernel; a
  // durable overlay would sync the whole file system of the store when it is unmounted.
  overlay.sync = mount::Overlay::Sync::kVolatile;
  if (overlay.lower.empty()) {  // an image without layers
    const auto empty = TRY(make_dir_at(own.get(), "empty", 0755));
    TRY(sys::fchmod(empty.get(), 0755, "empty"));  // whatever our umask is
    overlay.lower.push_back(path + "/empty");
  }
  TRY(copy_owner_and_mode(overlay.lower.back(), upper.get()));
  return TRY_CTX(mount::mount_overlay(overlay), "mount root");
}

}  // namespace wherry::shim
