// System calls under the kernel's own names: one to one, EINTR retried where the call may be
// repeated, errno turned into an Error at once. Every descriptor they make is close-on-exec.
// `subject` is only read for the error message.
#pragma once
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace wherry::sys {

// ---- files
// -------------------------------------------------------------------------------------------------------
Result<UniqueFd> openat(int dirfd, const std::string& path, int flags, mode_t mode = 0);
// EAGAIN (a rename raced with the walk, Linux 5.6) is retried up to 64 times.
Result<UniqueFd> openat2(int dirfd, const std::string& path, std::uint64_t flags,
                         std::uint64_t mode, std::uint64_t resolve);
Result<std::size_t> read(int fd, std::span<char> into, std::string_view subject = {});
Result<std::size_t> write(int fd, std::string_view data, std::string_view subject = {});
Result<> write_all(int fd, std::string_view data,
                   std::string_view subject = {});  // short writes continued
Result<std::string> read_to_end(int fd, std::size_t limit,
                                std::string_view subject = {});  // kInvalid over limit
Result<struct stat> fstat(int fd, std::string_view subject = {});
Result<struct stat> fstatat(int dirfd, const std::string& path, int flags = AT_SYMLINK_NOFOLLOW);
Result<> mkdirat(int dirfd, const std::string& path, mode_t mode);
Result<> mknodat(int dirfd, const std::string& path, mode_t mode, dev_t dev);
Result<> symlinkat(const std::string& target, int dirfd, const std::string& path);
Result<> linkat(int olddirfd, const std::string& oldpath, int newdirfd, const std::string& newpath,
                int flags);
Result<> unlinkat(int dirfd, const std::string& path, int flags);
Result<> renameat2(int olddirfd, const std::string& oldpath, int newdirfd,
                   const std::string& newpath, unsigned flags = 0);
Result<std::string> readlinkat(int dirfd, const std::string& path);
Result<> fchmod(int fd, mode_t mode, std::string_view subject = {});
Result<> fchown(int fd, uid_t uid, gid_t gid, std::string_view subject = {});
Result<> fchownat(int dirfd, const std::string& path, uid_t uid, gid_t gid, int flags);
Result<> ftruncate(int fd, off_t length, std::string_view subject = {});
Result<> fsync(int fd, std::string_view subject = {});
Result<> fdatasync(int fd, std::string_view subject = {});
Result<UniqueFd> dup(int fd);  // F_DUPFD_CLOEXEC, 3 or above
Result<> set_cloexec(int fd, bool on);
Result<> set_nonblock(int fd, bool on);
Result<std::pair<UniqueFd, UniqueFd>> pipe2(int flags);  // read end, write end; O_CLOEXEC is added
Result<UniqueFd> memfd_create(const std::string& name, unsigned flags);  // MFD_CLOEXEC is added
Result<> add_seals(int fd, int seals);
Result<int> get_seals(int fd);

// ---- mounts (Linux 5.2; mount_setattr 5.12)
// ----------------------------------------------------------------------
Result<UniqueFd> fsopen(const std::string& fstype);
Result<> fsconfig_string(int fs, const std::string& key,
                         const std::string& value);  // the fs's own log is in the error
Result<> fsconfig_flag(int fs, const std::string& key);
Result<> fsconfig_fd(int fs, const std::string& key, int fd);
Result<> fsconfig_create(int fs);
Result<UniqueFd> fsmount(int fs, unsigned attributes);  // MOUNT_ATTR_*
Result<UniqueFd> open_tree(int dirfd, const std::string& path,
                           unsigned flags);  // OPEN_TREE_CLOEXEC is added
Result<> move_mount(int from, const std::string& from_path, int to, const std::string& to_path,
                    unsigned flags);
Result<> mount_setattr(int dirfd, const std::string& path, unsigned flags,
                       const struct mount_attr& attributes);
Result<> umount2(const std::string& path, int flags);
Result<> pivot_root(const std::string& new_root, const std::string& put_old);
Result<> set_propagation(const std::string& path,
                         unsigned long flags);  // mount(2) with MS_PRIVATE and its kin only
Result<> fchdir(int fd, std::string_view subject = {});
Result<> chdir(const std::string& path);

// ---- processes and namespaces
// ------------------------------------------------------------------------------------
Result<> setns(int fd, int nstype, std::string_view subject = {});
Result<> unshare(int flags, std::string_view subject = {});
Result<UniqueFd> pidfd_open(pid_t pid, unsigned flags = 0);
Result<> pidfd_send_signal(int pidfd, int signum);  // kNotFound when it is gone
// Exit of a child by its pidfd. nullopt: still running when WNOHANG was given.
Result<std::optional<siginfo_t>> waitid_pidfd(int pidfd, int options);
Result<> close_range(unsigned first, unsigned last, unsigned flags = 0);
Result<> prctl(int option, unsigned long a = 0, unsigned long b = 0, unsigned long c = 0,
               unsigned long d = 0);

// ---- sockets and waiting
// -----------------------------------------------------------------------------------------
Result<std::pair<UniqueFd, UniqueFd>> socketpair(int type);  // AF_UNIX, SOCK_CLOEXEC
struct Received {
  std::size_t size = 0;  // 0: the peer has closed (of a stream or a seqpacket socket)
  bool truncated = false;
  std::vector<UniqueFd> fds;
};
Result<> sendmsg(int socket, std::string_view data, std::span<const int> fds = {}, int flags = 0);
Result<Received> recvmsg(int socket, std::span<char> into, int flags = 0);
// Whether `events` came before the deadline; revents, 0 at the deadline.
Result<short> poll_one(int fd, short events, Deadline deadline);

}  // namespace wherry::sys
