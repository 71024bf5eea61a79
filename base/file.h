// Whole files, durable files and whole trees, by directory descriptor.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/sys.h"

namespace wherry {

// Up to `limit` bytes, from a regular file or a kernel file; FIFOs are not waited for.
Result<std::string> read_file_at(int dirfd, const std::string& name, std::size_t limit);
// All or nothing, also through a power cut: temporary file, fsync, rename, fsync of the directory.
Result<> write_file_atomic(int dirfd, const std::string& name, std::string_view data, mode_t mode);
// The same without the two fsyncs: for state below /run, which does not outlive the kernel anyhow.
Result<> replace_file(int dirfd, const std::string& name, std::string_view data, mode_t mode);
// One write(2) to a file of the kernel's (cgroup, sysctl, uid_map): the value is in the error.
Result<> write_kernel_file(int dirfd, const std::string& name, std::string_view value);

// The directory at an absolute path of the administrator's choice (state, store), made with its
// parents when missing. The last component gets `mode` when made; one that is there must be a
// directory of our uid and not writable by others: SEC-62.
Result<UniqueFd> open_private_dir(const std::string& path, mode_t mode = 0700);
Result<UniqueFd> open_dir_at(int dirfd, const std::string& name);               // no link followed
Result<UniqueFd> make_dir_at(int dirfd, const std::string& name, mode_t mode);  // made or there

// Whether `name` in `dirfd` is the very file or directory that `fd` is open on (no link followed).
// A name that is missing is not; an error is one, lest what is ours be taken for another's.
Result<bool> is_entry(int dirfd, const std::string& name, int fd);
// The names in a directory, without '.' and '..', sorted.
Result<std::vector<std::string>> list_dir(int dirfd);
// Renamed away first, so that the name is free at once; then removed without crossing mounts.
// Missing is success.
Result<> remove_tree(int dirfd, const std::string& name);
// Visits a tree depth first, by descriptor, without following links. `path` is relative to `dirfd`.
Result<> walk_tree(
    int dirfd,
    const std::function<Result<>(int parent, const std::string& name, const std::string& path,
                                 const struct stat& st)>& visit);

// A lock on an open file that falls when the last descriptor of it closes, also by kill -9 (an OFD
// lock, fcntl(2)). The file that is locked has that name at the moment of the lock: one that was
// removed or replaced meanwhile is not taken for it. kNotFound when `dirfd` itself is removed.
enum class LockKind { kShared, kExclusive };
Result<UniqueFd> lock_file_at(int dirfd, const std::string& name, LockKind kind,
                              Deadline deadline);  // kBusy at deadline
Result<bool> is_locked_at(
    int dirfd, const std::string& name);  // by somebody, exclusively; false when there is no file

}  // namespace wherry
