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

Result<> write_map(int process, const char* file, const char* field,
                   const std::vector<oci::IdMapping>& maps) {
  constexpr std::size_t kMostLines = 340;  // user_namespaces(7), Linux 4.15
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::string text;
  for (const auto& map : maps) text += cat(map.container_id, " ", map.host_id, " ", map.size, "\n");
  if (maps.size() > kMostLines || text.size() >= page)
    return Error::make(Code::kUnsupported, cat(field, ": ", maps.size(), " lines of ", text.size(),
                                               " bytes; the kernel takes at most ", kMostLines,
                                               " that fit into one page"));
  TRY_CTX(write_kernel_file(process, file, text), field);
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
    const auto process = TRY(open_process(child.pid, child.pidfd));
    TRY(write_id_maps(process.get(), uids, gids));
    return sys::openat(process.get(), "ns/user", O_RDONLY);
  };
  auto opened = open();
  theirs.reset();
  TRY(sys::waitid_pidfd(child.pidfd.get(), WEXITED));
  return opened;
}

}  // namespace

Result<UniqueFd> open_process(pid_t pid, const UniqueFd& pidfd) {
  auto process = TRY(sys::openat(AT_FDCWD, cat("/proc/", pid), O_PATH | O_DIRECTORY));
  // As long as it lives its number is nobody else's.
  TRY(sys::pidfd_send_signal(pidfd.get(), 0));
  return process;
}

Result<> write_id_maps(int process, const std::vector<oci::IdMapping>& uids,
                       const std::vector<oci::IdMapping>& gids) {
  if (!uids.empty()) TRY(write_map(process, "uid_map", "linux.uidMappings", uids));
  if (!gids.empty()) TRY(write_map(process, "gid_map", "linux.gidMappings", gids));
  return {};
}

Result<std::optional<uid_t>> outside_uid(int process, uid_t uid) {
  const auto text = TRY(read_file_at(process, "uid_map", 65536));
  for (const auto line : split(text, '\n')) {
    std::vector<std::uint64_t> numbers;
    for (const auto word : split(line, ' '))
      if (const auto number = parse_int<std::uint64_t>(word)) numbers.push_back(*number);
    if (numbers.size() == 3 && uid >= numbers[0] && uid - numbers[0] < numbers[2])
      return std::optional{static_cast<uid_t>(numbers[1] + (uid - numbers[0]))};
  }
  return std::optional<uid_t>{};
}

Result<> write_time_offsets(int process, const std::map<std::string, oci::TimeOffset>& offsets) {
  if (offsets.empty()) return {};
  std::string text;
  for (const auto& [clock, offset] : offsets)
    text += cat(clock, " ", offset.secs, " ", offset.nanosecs, "\n");
  TRY_CTX(write_kernel_file(process, "timens_offsets", text), "linux.timeOffsets");
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
