#include "mount/overlay.h"

#include <linux/mount.h>

#include <optional>

#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry::mount {
namespace {

constexpr std::size_t kLongestValue = 255;  // fsconfig(2) takes 256 bytes with the NUL

// A directory as overlayfs is told of it. Held open until the mount exists.
struct Named {
  UniqueFd dir;
  std::string name;
};

// The path itself when it can be said in a mount option, so that mountinfo stays readable; else its
// descriptor.
Result<Named> named(const std::string& path) {
  if (path.empty() || path.front() != '/')
    return Error::make(Code::kInvalid,
                       cat("overlay directory ", in_quotes(path), " is not absolute"));
  Named result;
  result.dir = TRY(sys::openat(AT_FDCWD, path, O_PATH | O_DIRECTORY));
  const bool plain =
      path.size() <= kLongestValue && path.find_first_of(":,\\") == std::string::npos;
  result.name = plain ? path : fd_path(result.dir.get());
  return result;
}

Result<std::vector<Named>> name_all(const std::vector<std::string>& paths) {
  std::vector<Named> result;
  for (const auto& path : paths) result.push_back(TRY(named(path)));
  return result;
}

// Before Linux 6.7 all lower directories must fit into one string. When their paths do not, they
// are called by the shortest names there are: numbers in our own /proc/self/fd, which is the
// working directory while overlayfs looks them up.
class ShortNames {
 public:
  static Result<ShortNames> enter() {
    ShortNames names;
    names.before_ = TRY(sys::openat(AT_FDCWD, ".", O_PATH | O_DIRECTORY));
    const auto fds = TRY(sys::openat(AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY));
    TRY(sys::fchdir(fds.get(), "/proc/self/fd"));
    return names;
  }
  ShortNames(ShortNames&&) = default;
  ShortNames& operator=(ShortNames&&) = delete;
  ~ShortNames() {
    if (before_) sys::fchdir(before_.get()).ignore("the directory was ours a moment ago");
  }

 private:
  ShortNames() = default;
  UniqueFd before_;
};

// `cwd` is entered when the names need it.
Result<> set_lower_at_once(int fs, const std::vector<Named>& lower,
                           std::optional<ShortNames>& cwd) {
  const auto joined = [&](const auto& name_of) {
    std::string names;
    for (auto layer = lower.rbegin(); layer != lower.rend(); ++layer) {
      if (!names.empty()) names += ':';
      names += name_of(*layer);
    }
    return names;
  };
  auto names = joined([](const Named& layer) { return layer.name; });
  if (names.size() > kLongestValue) {
    cwd.emplace(TRY(ShortNames::enter()));
    names = joined([](const Named& layer) { return std::to_string(layer.dir.get()); });
  }
  if (names.size() > kLongestValue)
    return Error::make(Code::kUnsupported,
                       cat(lower.size(),
                           " layers do not fit into a mount option of this kernel; "
                           "Linux 6.7 takes them one by one"));
  return sys::fsconfig_string(fs, "lowerdir", names);
}

// Whether the option was there to be used. Topmost first: each call goes below the one before.
Result<bool> set_lower_one_by_one(int fs, const std::vector<Named>& lower) {
  // overlayfs before Linux 6.5 takes any word now and refuses all of it in the end.
  if (sys::fsconfig_flag(fs, "wherry-asks-whether-options-are-looked-at").ok()) return false;
  for (auto layer = lower.rbegin(); layer != lower.rend(); ++layer) {
    auto set = sys::fsconfig_string(fs, "lowerdir+", layer->name);
    // 6.5 and 6.6 do not know it: EINVAL, to the first one already.
    if (!set.ok() && layer == lower.rbegin() && set.error().sys_errno() == EINVAL) return false;
    if (!set.ok()) return std::move(set).error();
  }
  return true;
}

Result<> set_options(int fs, const Overlay& overlay, const Named& upper, const Named& work) {
  // What a kernel's configuration may have switched on by default, and layers of images must not
  // get: renamed directories and metadata-only copies as pointers (trusted.overlay.redirect,
  // .metacopy) make an upper directory that cannot be read as a layer; the index ties an upper
  // directory to one set of lower ones.
  for (const auto* key : {"redirect_dir", "metacopy", "index"})
    TRY(sys::fsconfig_string(fs, key, "off"));
  if (!overlay.upper.empty()) {
    TRY(sys::fsconfig_string(fs, "upperdir", upper.name));
    TRY(sys::fsconfig_string(fs, "workdir", work.name));
    if (overlay.sync == Overlay::Sync::kVolatile) TRY(sys::fsconfig_flag(fs, "volatile"));
  }
  return {};
}

Result<UniqueFd> mount_with(const Overlay& overlay, const std::vector<Named>& lower,
                            bool& at_once) {
  const auto fs = TRY(sys::fsopen("overlay"));
  TRY(sys::fsconfig_string(fs.get(), "source", "overlay"));
  Named upper, work;
  if (!overlay.upper.empty()) {
    upper = TRY(named(overlay.upper));
    work = TRY(named(overlay.work));
  }
  if (!at_once && !TRY(set_lower_one_by_one(fs.get(), lower))) {
    at_once = true;
    return UniqueFd{};
  }
  std::optional<ShortNames> cwd;
  if (at_once) TRY(set_lower_at_once(fs.get(), lower, cwd));
  TRY(set_options(fs.get(), overlay, upper, work));
  TRY(sys::fsconfig_create(fs.get()));
  return sys::fsmount(fs.get(), overlay.upper.empty() ? MOUNT_ATTR_RDONLY : 0);
}

}  // namespace

Result<UniqueFd> mount_overlay(const Overlay& overlay) {
  if (overlay.lower.empty())
    return Error::make(Code::kInvalid, "an overlay needs a lower directory");
  if (overlay.upper.empty() != overlay.work.empty())
    return Error::make(Code::kInvalid, "an overlay has an upper and a work directory, or neither");
  // Without an upper directory overlayfs wants two layers; one layer is shown as it is.
  if (overlay.upper.empty() && overlay.lower.size() == 1) {
    auto tree = TRY(sys::open_tree(AT_FDCWD, overlay.lower.front(), OPEN_TREE_CLONE));
    struct mount_attr attributes {};
    attributes.attr_set = MOUNT_ATTR_RDONLY;
    TRY(sys::mount_setattr(tree.get(), "", AT_EMPTY_PATH, attributes));
    return tree;
  }
  const auto lower = TRY(name_all(overlay.lower));
  bool at_once = false;
  auto mounted = mount_with(overlay, lower, at_once);
  // A context that has seen a failure is of no more use (fsopen(2)): start again.
  if (mounted.ok() && at_once) mounted = mount_with(overlay, lower, at_once);
  if (!mounted.ok()) {
    auto error = std::move(mounted).error().context("mount overlay");
    // The kernel says why in its log only.
    if (!overlay.work.empty() &&
        sys::fstatat(AT_FDCWD, overlay.work + "/work/incompat/volatile").ok())
      return std::move(error).hint(
          "the upper directory was mounted volatile before and may have lost writes");
    return error;
  }
  return mounted;
}

}  // namespace wherry::mount
