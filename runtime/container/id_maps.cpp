#include "runtime/container/id_maps.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry::container {
namespace {

Result<> write_of(pid_t pid, const std::string& file, const std::string& text) {
  const auto process = TRY(sys::openat(AT_FDCWD, cat("/proc/", pid), O_PATH | O_DIRECTORY));
  return write_kernel_file(process.get(), file, text);
}

Result<> write_map(pid_t pid, const char* file, const char* field,
                   const std::vector<oci::IdMapping>& maps) {
  constexpr std::size_t kMostLines = 340;  // user_namespaces(7), Linux 4.15
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::string text;
  for (const auto& map : maps) text += cat(map.container_id, " ", map.host_id, " ", map.size, "\n");
  if (maps.size() > kMostLines || text.size() >= page)
    return Error::make(Code::kUnsupported, cat(field, ": ", maps.size(), " lines of ", text.size(),
                                               " bytes; the kernel takes at most ", kMostLines,
                                               " that fit into one page"));
  TRY_CTX(write_of(pid, file, text), field);
  return {};
}

// A process in a user namespace with these maps, whose only purpose is that it can be named.
Result<UniqueFd> new_user_namespace(const std::vector<oci::IdMapping>& uids,
                                    const std::vector<oci::IdMapping>& gids) {
  auto [ours, theirs] = TRY(sys::pipe2(0));
  CloneArgs args;
  args.flags = CLONE_NEWUSER;
  const auto child = TRY(clone_process(args));
  if (child.pid == 0) {
    // Ends with its creator at the latest.
    theirs.reset();
    char byte = 0;
    sys::read(ours.get(), {&byte, 1}).ignore("the end is the message");
    ::_exit(0);
  }
  auto open = [&]() -> Result<UniqueFd> {
    TRY(write_id_maps(child.pid, uids, gids));
    return sys::openat(AT_FDCWD, cat("/proc/", child.pid, "/ns/user"), O_RDONLY);
  };
  auto opened = open();
  theirs.reset();
  TRY(sys::waitid_pidfd(child.pidfd.get(), WEXITED));
  return opened;
}

}  // namespace

Result<> write_id_maps(pid_t pid, const std::vector<oci::IdMapping>& uids,
                       const std::vector<oci::IdMapping>& gids) {
  if (!uids.empty()) TRY(write_map(pid, "uid_map", "linux.uidMappings", uids));
  if (!gids.empty()) TRY(write_map(pid, "gid_map", "linux.gidMappings", gids));
  return {};
}

Result<> write_time_offsets(pid_t pid, const std::map<std::string, oci::TimeOffset>& offsets) {
  if (offsets.empty()) return {};
  std::string text;
  for (const auto& [clock, offset] : offsets)
    text += cat(clock, " ", offset.secs, " ", offset.nanosecs, "\n");
  TRY_CTX(write_of(pid, "timens_offsets", text), "linux.timeOffsets");
  return {};
}

Result<UniqueFd> mount_id_maps(const oci::Spec& spec, const UniqueFd& joined,
                               const std::vector<oci::IdMapping>& uids,
                               const std::vector<oci::IdMapping>& gids) {
  if (!uids.empty()) return new_user_namespace(uids, gids);
  if (joined) return sys::dup(joined.get());
  if (spec.linux_->uid_mappings.empty())
    return Error::make(Code::kInvalid,
                       "option 'idmap' needs 'uidMappings' and 'gidMappings', of the mount or of "
                       "the container's user namespace");
  return new_user_namespace(spec.linux_->uid_mappings, spec.linux_->gid_mappings);
}

}  // namespace wherry::container
