// Opening things below a directory that somebody hostile may be changing. Paths are resolved once,
// by the kernel, against a directory descriptor; what comes back is a descriptor, never a checked
// string (CVE-2021-30465).
#pragma once
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "base/sys.h"

namespace wherry {

// `path` as a process chrooted to `rootfd` would see it: absolute links and '..' stay inside. Magic
// links are refused.
Result<UniqueFd> open_in_root(int rootfd, const std::string& path, int flags, mode_t mode = 0);
// `path` may not leave `dirfd` by '..', link or absolute path: ENOENT, EXDEV or ELOOP instead.
Result<UniqueFd> open_beneath(int dirfd, const std::string& path, int flags, mode_t mode = 0);
// As open_beneath and with no symbolic link and no mount crossed at all: for trees of the kernel's
// (cgroupfs, procfs).
Result<UniqueFd> open_plain(int dirfd, const std::string& path, int flags, mode_t mode = 0);

// Makes each missing directory of `path` inside the root, one component after another by descriptor
// (CVE-2024-45310), and gives the last one (O_PATH). Links on the way are followed inside the root.
Result<UniqueFd> make_dirs_in_root(int rootfd, const std::string& path, mode_t mode);
// The same for an empty regular file at `path`. What is there already is opened as it is, whatever
// its type.
Result<UniqueFd> make_file_in_root(int rootfd, const std::string& path, mode_t dir_mode,
                                   mode_t file_mode);

// "a//./b/" -> {"a","b"}; '..' is kept as it is.
std::vector<std::string> components(std::string_view path);
std::string fd_path(int fd);  // "/proc/self/fd/N": only for calls that have no descriptor form

}  // namespace wherry
