#include "shim/protocol/removal.h"

#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include "cgroups/cgroups.h"
#include "shim/protocol/event_log.h"

namespace wherry::shim {
namespace {

constexpr Millis kLedgerWait{10'000};

Result<> remove_below(const std::string& top, const std::string& id) {
  auto pods = sys::openat(AT_FDCWD, cat(top, "/", kPodsDir), O_RDONLY | O_DIRECTORY);
  if (!pods.ok()) {
    if (pods.error().code() == Code::kNotFound) return {};
    return std::move(pods).error();
  }
  return remove_tree(pods.value().get(), id);
}

Result<> release_name(const std::string& root, const std::string& id, const std::string& ns,
                      const std::string& name) {
  if (name.empty()) return {};
  const auto ledger =
      TRY(sys::openat(AT_FDCWD, cat(root, "/", kLedgerDir), O_RDONLY | O_DIRECTORY));
  const auto lock =
      TRY(lock_file_at(ledger.get(), kLedgerLock, LockKind::kExclusive, Deadline::in(kLedgerWait)));
  const auto entry = cat(kNamesDir, "/", ns, "/", name);
  const auto holder = read_file_at(ledger.get(), entry, 128);
  if (!holder.ok() || trim(holder.value()) != id) return {};
  return sys::unlinkat(ledger.get(), entry, 0);
}

}  // namespace

Result<> remove_pod_files(const std::string& root, const std::string& state, const std::string& id,
                          const std::string& ns, const std::string& name) {
  // With its event log still there nobody has begun to remove it.
  const bool first =
      sys::fstatat(AT_FDCWD, cat(root, "/", kPodsDir, "/", id, "/", kEventFile)).ok();
  TRY_CTX(remove_below(root, id), "remove from store");
  TRY_CTX(release_name(root, id, ns, name), "release name");
  // Between the two: whoever dies here leaves either a state directory, which says that the removal
  // is to be finished, or an event.
  if (const auto store = sys::openat(AT_FDCWD, root, O_RDONLY | O_DIRECTORY); store.ok())
    (first ? tell_removed : tell_removed_once)(store.value().get(), id, ns, name)
        .ignore("the pod is gone all the same");
  TRY_CTX(remove_below(state, id), "remove state");
  return {};
}

Result<> remove_pod_cgroups(const std::string& cgroup, Deadline deadline) {
  const auto hierarchies = TRY(cgroups::discover());
  const auto place = cgroups::Place::open(hierarchies, cgroup);
  if (!place.ok() && place.error().code() == Code::kNotFound) return {};
  if (!place.ok())
    return Error::rebuilt(place.error().code(), place.error().sys_errno(), place.error().message());
  return place.value().remove(deadline);
}

Result<> leave_pod_cgroup(int pid) {
  const auto hierarchies = TRY(cgroups::discover());
  const auto root = TRY(sys::openat(AT_FDCWD, hierarchies.unified, O_RDONLY | O_DIRECTORY));
  return write_kernel_file(root.get(), "cgroup.procs", std::to_string(pid));
}

}  // namespace wherry::shim
