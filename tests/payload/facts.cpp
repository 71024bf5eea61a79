// What a process inside of a container can see of itself and its surroundings, as one JSON object
// on stdout. It judges and normalises nothing: that is for the one who compares.
//
//   facts [OP...]     OP is one of
//     read:PATH       how much of the file can be read, and its text when it is short
//     write:PATH      the errno of opening it for writing (0: it could be opened; nothing is
//     written) create:PATH     the errno of making a file there (it is removed again) mknod:T:MA:MI
//     the errno of making that device in the working directory open:PATH       the errno of opening
//     a device for reading and writing exit:N          exit with N in place of printing anything;
//     signal:N: die of it; pause: wait for SIGTERM
#include <dirent.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Text = std::array<char, 65536>;

void print_string(const char* text, std::size_t size) {
  std::putchar('"');
  for (std::size_t i = 0; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '"' || byte == '\\')
      std::printf("\\%c", byte);
    else if (byte < 0x20 || byte >= 0x7f)
      std::printf("\\u%04x", static_cast<unsigned>(byte));
    else
      std::putchar(byte);
  }
  std::putchar('"');
}

void print_string(const char* text) {
  print_string(text, std::strlen(text));
}

// A member of the object that is being printed.
void key(const char* name) {
  static bool first = true;
  std::fputs(first ? "{\n" : ",\n", stdout);
  first = false;
  print_string(name);
  std::putchar(':');
}

// Reads up to the size of `text`; -errno when it cannot.
ssize_t slurp(const char* path, Text& text) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return -errno;
  ssize_t size = 0;
  while (size < static_cast<ssize_t>(text.size())) {
    const ssize_t got =
        ::read(fd, text.data() + size, text.size() - static_cast<std::size_t>(size));
    if (got < 0 && size == 0) size = -errno;
    if (got <= 0) break;
    size += got;
  }
  ::close(fd);
  return size;
}

void print_file(const char* name, const char* path) {
  static Text text;
  key(name);
  const ssize_t size = slurp(path, text);
  if (size < 0)
    std::printf("%zd", size);
  else
    print_string(text.data(), static_cast<std::size_t>(size));
}

void print_link(const char* path) {
  std::array<char, 4096> target{};
  const ssize_t size = ::readlink(path, target.data(), target.size());
  if (size < 0)
    std::printf("%d", -errno);
  else
    print_string(target.data(), static_cast<std::size_t>(size));
}

void print_words(const char* name, char** words) {
  key(name);
  std::putchar('[');
  for (int i = 0; words[i] != nullptr; ++i) {
    if (i > 0) std::putchar(',');
    print_string(words[i]);
  }
  std::putchar(']');
}

void print_namespaces() {
  key("namespaces");
  const char* before = "{";
  for (const char* type : {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"}) {
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/self/ns/%s", type);
    std::printf("%s\"%s\":", before, type);
    print_link(path.data());
    before = ",";
  }
  std::putchar('}');
}

void print_limits() {
  key("rlimits");
  std::putchar('[');
  for (int i = 0; i < 16; ++i) {
    rlimit limit{};
    ::getrlimit(static_cast<__rlimit_resource>(i), &limit);
    std::printf("%s[%llu,%llu]", i > 0 ? "," : "", static_cast<unsigned long long>(limit.rlim_cur),
                static_cast<unsigned long long>(limit.rlim_max));
  }
  std::putchar(']');
}

// The numbers of all open descriptors but the one that lists them.
void print_descriptors() {
  key("descriptors");
  const char* before = "{";
  struct stat st {};
  for (int fd = 0; fd < 1024; ++fd) {
    if (::fstat(fd, &st) < 0) continue;
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", fd);
    std::printf("%s\"%d\":{\"type\":%u,\"uid\":%u,\"flags\":%d,\"cloexec\":%d,\"target\":", before,
                fd, st.st_mode & S_IFMT, st.st_uid, ::fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK),
                ::fcntl(fd, F_GETFD));
    print_link(path.data());
    std::putchar('}');
    before = ",";
  }
  std::putchar('}');
}

void print_stat(const char* name, const struct stat& st) {
  print_string(name);
  std::printf(":{\"mode\":\"%o\",\"uid\":%u,\"gid\":%u", st.st_mode, st.st_uid, st.st_gid);
  if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
    std::printf(",\"device\":\"%u:%u\"", major(st.st_rdev), minor(st.st_rdev));
}

void print_directory(const char* name, const char* path) {
  key(name);
  std::putchar('{');
  DIR* dir = ::opendir(path);
  bool first = true;
  while (dir != nullptr) {
    const dirent* entry = ::readdir(dir);
    if (entry == nullptr) break;
    struct stat st {};
    if (entry->d_name[0] == '.' ||
        ::fstatat(::dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
      continue;
    if (!first) std::putchar(',');
    first = false;
    print_stat(entry->d_name, st);
    std::array<char, 512> full{};
    std::snprintf(full.data(), full.size(), "%s/%s", path, entry->d_name);
    if (S_ISLNK(st.st_mode)) std::printf(",\"link\":"), print_link(full.data());
    std::putchar('}');
  }
  if (dir != nullptr) ::closedir(dir);
  std::putchar('}');
}

// Mode and owner of each place where something is mounted (fifth word of a line of mountinfo,
// proc(5)).
void print_mount_points() {
  static Text text;
  const ssize_t size = slurp("/proc/self/mountinfo", text);
  key("mount_points");
  std::putchar('{');
  bool first = true;
  text[static_cast<std::size_t>(
      std::clamp<ssize_t>(size, 0, static_cast<ssize_t>(text.size()) - 1))] = '\0';
  char* rest = nullptr;
  for (char* line = ::strtok_r(text.data(), "\n", &rest); line != nullptr;
       line = ::strtok_r(nullptr, "\n", &rest)) {
    std::array<char, 4096> path{};
    struct stat st {};
    if (std::sscanf(line, "%*s %*s %*s %*s %4095s", path.data()) != 1 ||
        ::stat(path.data(), &st) < 0)
      continue;
    if (!first) std::putchar(',');
    first = false;
    print_stat(path.data(), st);
    std::putchar('}');
  }
  std::putchar('}');
}

void print_session() {
  key("session");
  const int tty = ::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  const int tty_errno = tty < 0 ? errno : 0;
  if (tty >= 0) ::close(tty);
  std::printf(
      "{\"pid\":%d,\"ppid\":%d,\"sid\":%d,\"pgid\":%d,\"tty_errno\":%d,\"isatty\":[%d,%d,%d]}",
      ::getpid(), ::getppid(), ::getsid(0), ::getpgrp(), tty_errno, ::isatty(0), ::isatty(1),
      ::isatty(2));
  std::array<char, 256> keyring{};
  const long size = ::syscall(SYS_keyctl, KEYCTL_DESCRIBE, -3 /* KEY_SPEC_SESSION_KEYRING */,
                              keyring.data(), keyring.size() - 1, 0);
  key("keyring");
  if (size < 0)
    std::printf("%d", -errno);
  else
    print_string(keyring.data());
}

void print_network() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  const bool known = fd >= 0 && ::ioctl(fd, SIOCGIFFLAGS, &request) == 0;
  key("loopback");
  std::printf("%d", known ? request.ifr_flags & (IFF_UP | IFF_RUNNING) : -errno);
  if (fd >= 0) ::close(fd);
}

void probe(const char* op) {
  static Text text;
  const char* colon = std::strchr(op, ':');
  const char* rest = colon == nullptr ? "" : colon + 1;
  const auto is = [&](const char* name) { return std::strncmp(op, name, std::strlen(name)) == 0; };
  key(op);
  if (is("read:")) {
    const ssize_t size = slurp(rest, text);
    if (size >= 0 && size < 256)
      print_string(text.data(), static_cast<std::size_t>(size));
    else
      std::printf("%d", size < 0 ? static_cast<int>(size) : 256);
    return;
  }
  int fd = -1, err = 0;
  unsigned ma = 0, mi = 0;
  if (is("mknod:") && std::sscanf(rest + 2, "%u:%u", &ma, &mi) == 2) {
    const bool made =
        ::mknod("facts.node", (rest[0] == 'b' ? S_IFBLK : S_IFCHR) | 0600U, makedev(ma, mi)) == 0;
    err = made ? 0 : errno;
    if (made) ::unlink("facts.node");
  } else {
    const int flags = is("create:")  ? O_WRONLY | O_CREAT | O_EXCL
                      : is("write:") ? O_WRONLY
                                     : O_RDWR;
    fd = ::open(rest, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    err = fd < 0 ? errno : 0;
    if (fd >= 0) ::close(fd);
    if (fd >= 0 && is("create:")) ::unlink(rest);
  }
  std::printf("%d", err);
}

void act(const char* op) {
  if (std::strncmp(op, "exit:", 5) == 0) ::_exit(std::atoi(op + 5));
  if (std::strncmp(op, "signal:", 7) == 0) {
    // The first process of a PID namespace gets no signal from itself that would kill it: its end
    // is asked of a fault, which the kernel forces on anybody (force_sig), or of SIGKILL by the
    // creator.
    ::signal(std::atoi(op + 7), SIG_DFL);
    ::raise(std::atoi(op + 7));
    __builtin_trap();
  }
  if (std::strcmp(op, "pause") == 0) {
    ::signal(SIGTERM, [](int) { ::_exit(0); });
    for (;;) ::pause();
  }
}

}  // namespace

int main(int argc, char** argv, char** env) {
  if (argc > 1) act(argv[1]);
  // Before anything of ours is opened.
  print_descriptors();
  print_words("args", argv);
  print_words("env", env);
  print_namespaces();
  print_file("mountinfo", "/proc/self/mountinfo");
  print_file("status", "/proc/self/status");
  print_file("cgroup", "/proc/self/cgroup");
  print_file("uid_map", "/proc/self/uid_map");
  print_file("oom_score_adj", "/proc/self/oom_score_adj");
  print_file("timerslack", "/proc/self/timerslack_ns");
  print_file("core_filter", "/proc/self/coredump_filter");
  print_limits();
  std::array<char, 4096> cwd{};
  key("cwd");
  print_string(::getcwd(cwd.data(), cwd.size()) == nullptr ? "" : cwd.data());
  utsname names{};
  ::uname(&names);
  key("hostname"), print_string(names.nodename);
  key("domainname"), print_string(names.domainname);
  print_session();
  print_directory("dev", "/dev");
  print_directory("root", "/");
  print_mount_points();
  print_network();
  for (const char* op :
       {"open:/dev/null", "open:/dev/zero", "open:/dev/full", "open:/dev/ptmx", "open:/dev/kmsg",
        "mknod:c:1:3", "mknod:c:10:229", "mknod:b:7:0", "create:/facts.probe"})
    probe(op);
  for (int i = 1; i < argc; ++i)
    if (std::strchr(argv[i], ':') != nullptr) probe(argv[i]);
  std::fputs("\n}\n", stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}
