#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

#include "base/sys.h"
#include "base/text.h"

namespace wherry::sys {
namespace {

template <class Call>
auto retry(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

Result<> done(long result, std::string_view call, std::string_view subject) {
  if (result < 0) return Error::sys(call, subject);
  return {};
}

}  // namespace

Result<UniqueFd> openat(int dirfd, const std::string& path, int flags, mode_t mode) {
  const int fd = retry([&] { return ::openat(dirfd, path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd < 0) return Error::sys("openat", path);
  return UniqueFd{fd};
}

Result<UniqueFd> openat2(int dirfd, const std::string& path, std::uint64_t flags,
                         std::uint64_t mode, std::uint64_t resolve) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.mode = mode;
  how.resolve = resolve;
  constexpr int kMostTries = 64;  // a hostile renamer could keep us here for ever
  for (int tries = 0;; ++tries) {
    const long fd =
        retry([&] { return ::syscall(SYS_openat2, dirfd, path.c_str(), &how, sizeof how); });
    if (fd >= 0) return UniqueFd{static_cast<int>(fd)};
    if (errno != EAGAIN || tries == kMostTries) return Error::sys("openat2", path);
  }
}

Result<std::size_t> read(int fd, std::span<char> into, std::string_view subject) {
  const ssize_t got = retry([&] { return ::read(fd, into.data(), into.size()); });
  if (got < 0) return Error::sys("read", subject);
  return static_cast<std::size_t>(got);
}

Result<std::size_t> write(int fd, std::string_view data, std::string_view subject) {
  const ssize_t put = retry([&] { return ::write(fd, data.data(), data.size()); });
  if (put < 0) return Error::sys("write", subject);
  return static_cast<std::size_t>(put);
}

Result<> write_all(int fd, std::string_view data, std::string_view subject) {
  while (!data.empty()) {
    const auto put = TRY(write(fd, data, subject));
    if (put == 0) return Error::sys("write", subject, EIO);
    data.remove_prefix(put);
  }
  return {};
}

Result<std::string> read_to_end(int fd, std::size_t limit, std::string_view subject) {
  std::string data;
  std::size_t room = 4096;
  while (true) {
    const auto used = data.size();
    data.resize(used + room);
    const auto got = TRY(read(fd, {data.data() + used, room}, subject));
    data.resize(used + got);
    if (got == 0) return data;
    if (data.size() > limit)
      return Error::make(Code::kInvalid, cat("'", subject, "' is larger than ", limit, " bytes"));
    room = room < 65536 ? room * 2 : room;
  }
}

Result<struct stat> fstat(int fd, std::string_view subject) {
  struct stat st {};
  if (::fstat(fd, &st) < 0) return Error::sys("fstat", subject);
  return st;
}

Result<struct stat> fstatat(int dirfd, const std::string& path, int flags) {
  struct stat st {};
  if (::fstatat(dirfd, path.c_str(), &st, flags) < 0) return Error::sys("fstatat", path);
  return st;
}

Result<> mkdirat(int dirfd, const std::string& path, mode_t mode) {
  return done(::mkdirat(dirfd, path.c_str(), mode), "mkdirat", path);
}
Result<> mknodat(int dirfd, const std::string& path, mode_t mode, dev_t dev) {
  return done(::mknodat(dirfd, path.c_str(), mode, dev), "mknodat", path);
}
Result<> symlinkat(const std::string& target, int dirfd, const std::string& path) {
  return done(::symlinkat(target.c_str(), dirfd, path.c_str()), "symlinkat", path);
}
Result<> linkat(int olddirfd, const std::string& oldpath, int newdirfd, const std::string& newpath,
                int flags) {
  return done(::linkat(olddirfd, oldpath.c_str(), newdirfd, newpath.c_str(), flags), "linkat",
              newpath);
}
Result<> unlinkat(int dirfd, const std::string& path, int flags) {
  return done(::unlinkat(dirfd, path.c_str(), flags), "unlinkat", path);
}
Result<> renameat2(int olddirfd, const std::string& oldpath, int newdirfd,
                   const std::string& newpath, unsigned flags) {
  return done(::syscall(SYS_renameat2, olddirfd, oldpath.c_str(), newdirfd, newpath.c_str(), flags),
              "renameat2", newpath);
}

Result<std::string> readlinkat(int dirfd, const std::string& path) {
  std::string target(256, '\0');
  while (true) {
    const ssize_t size = ::readlinkat(dirfd, path.c_str(), target.data(), target.size());
    if (size < 0) return Error::sys("readlinkat", path);
    if (static_cast<std::size_t>(size) < target.size()) {
      target.resize(static_cast<std::size_t>(size));
      return target;
    }
    target.resize(target.size() * 2);
  }
}

Result<> fchmod(int fd, mode_t mode, std::string_view subject) {
  return done(::fchmod(fd, mode), "fchmod", subject);
}
Result<> fchown(int fd, uid_t uid, gid_t gid, std::string_view subject) {
  return done(::fchown(fd, uid, gid), "fchown", subject);
}
Result<> fchownat(int dirfd, const std::string& path, uid_t uid, gid_t gid, int flags) {
  return done(::fchownat(dirfd, path.c_str(), uid, gid, flags), "fchownat", path);
}
Result<> ftruncate(int fd, off_t length, std::string_view subject) {
  return done(retry([&] { return ::ftruncate(fd, length); }), "ftruncate", subject);
}
Result<> fsync(int fd, std::string_view subject) {
  return done(retry([&] { return ::fsync(fd); }), "fsync", subject);
}
Result<> fdatasync(int fd, std::string_view subject) {
  return done(retry([&] { return ::fdatasync(fd); }), "fdatasync", subject);
}

Result<UniqueFd> dup(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return Error::sys("fcntl(F_DUPFD_CLOEXEC)", cat("fd ", fd));
  return UniqueFd{copy};
}

Result<> set_cloexec(int fd, bool on) {
  return done(::fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0), "fcntl(F_SETFD)", cat("fd ", fd));
}

Result<> set_nonblock(int fd, bool on) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return Error::sys("fcntl(F_GETFL)", cat("fd ", fd));
  return done(::fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK), "fcntl(F_SETFL)",
              cat("fd ", fd));
}

Result<std::pair<UniqueFd, UniqueFd>> pipe2(int flags) {
  int ends[2];
  if (::pipe2(ends, flags | O_CLOEXEC) < 0) return Error::sys("pipe2");
  return std::pair{UniqueFd{ends[0]}, UniqueFd{ends[1]}};
}

Result<UniqueFd> memfd_create(const std::string& name, unsigned flags) {
  const int fd = ::memfd_create(name.c_str(), flags | MFD_CLOEXEC);
  if (fd < 0) return Error::sys("memfd_create", name);
  return UniqueFd{fd};
}

Result<> add_seals(int fd, int seals) {
  return done(::fcntl(fd, F_ADD_SEALS, seals), "fcntl(F_ADD_SEALS)", cat("fd ", fd));
}

Result<int> get_seals(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return Error::sys("fcntl(F_GET_SEALS)", cat("fd ", fd));
  return seals;
}

}  // namespace wherry::sys
