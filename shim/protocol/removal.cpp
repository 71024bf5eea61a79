#include "shim/protocol/removal.h"

#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include "cgroups/cgroups.h"

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
  TRY_CTX(remove_below(root, id), "remove from store");
  TRY_CTX(release_name(root, id, ns, name), "release name");
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
