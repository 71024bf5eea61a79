// Directories of one cgroup hierarchy by descriptor: what place.cpp is made of. Inside cgroups/
// only.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "cgroups/cgroups.h"

namespace wherry::cgroups {

enum class Version : std::uint8_t { kV1, kV2 };

// From the text of /proc/self/mountinfo; unified_controllers stays empty.
Result<Hierarchies> parse_mountinfo(std::string_view text);

// A removed directory answers ENOENT to names and ENODEV to files that are open still.
inline bool gone(const Error& error) {
  return error.sys_errno() == ENOENT || error.sys_errno() == ENODEV;
}

// The root directory of the hierarchy at `mount_point`; refused when no cgroup file system is
// there.
Result<UniqueFd> open_root(const std::string& mount_point, Version version);
// A directory below `dirfd` by a relative path, without links and other mounts (SEC-53).
Result<UniqueFd> open_directory(int dirfd, const std::string& path);
// A file that the kernel made, whole.
Result<std::string> read_file(int dirfd, const std::string& name);
// Pids of this one directory; those outside our pid namespace are 0.
Result<std::vector<pid_t>> processes_in(int dirfd);
// "pid 7 ('bash'), pid 9 ('make')": at most eight, then how many more.
std::string describe(const std::vector<pid_t>& pids);

// The directories directly below, not sorted.
Result<std::vector<std::string>> subdirectories(int dirfd);
// rmdir of `name` below `parent` and of all below it, deepest first, without recursion and with a
// bounded number of descriptors, whatever the depth (REL-51). EBUSY is retried until the deadline.
// `where` is the path of `name` for the error.
Result<> remove_tree_of(int parent, const std::string& name, const std::string& where,
                        Deadline deadline);

// While it lives, what is made gets its mode whole. The programs run with umask 077, but a
// container and its users may read their cgroup files: the kernel itself keeps secrets out of them.
class OpenUmask {
 public:
  OpenUmask();
  ~OpenUmask();
  OpenUmask(const OpenUmask&) = delete;
  OpenUmask& operator=(const OpenUmask&) = delete;

 private:
  mode_t before_;
};

// The number after "key " in a file of lines "key number".
std::optional<std::uint64_t> field(std::string_view text, std::string_view key);

}  // namespace wherry::cgroups
