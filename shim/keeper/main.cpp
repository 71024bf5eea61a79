// wherry-keep: the parent of a pod's worker and of all its containers. It reaps, keeps what must
// not die with the worker (descriptors, exits), starts the worker again, and does nothing else.
// libc only; nothing is allocated.
//
// Argument 1 names the descriptors 3, 4, ... it was started with, separated by commas. The rest
// goes to the worker.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/keeper/table.h"

namespace wherry::keeper {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr std::int64_t kShortLife =
    10'000 * kNsPerMs;  // a worker that lived longer starts the back-off anew
constexpr std::int64_t kFirstDelay = 100 * kNsPerMs;
constexpr std::int64_t kLongestDelay = 5'000 * kNsPerMs;
constexpr int kVainRuns = 3;  // of workers of which none has ever said a word

Descriptors descriptors;
Exits exits;

std::int64_t now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

struct Worker {
  pid_t pid = -1;  // -1: none runs
  int socket = -1;
  bool said_bye = false;
  bool ever_heard = false;      // by any of them
  std::size_t handed_over = 0;  // how many descriptors it has got
  bool told_ready = false;
  int runs = 0;
  std::int64_t started = 0, start_at = 0;
  std::int64_t delay = 0;
};

// "comm" in proc(5) may hold anything, so fields are counted after the last ')'.
std::uint64_t start_ticks_of(pid_t pid) {
  char path[32] = "/proc/";
  char digits[12];
  int at = 0;
  for (pid_t rest = pid; rest > 0; rest /= 10) digits[at++] = static_cast<char>('0' + rest % 10);
  std::size_t end = ::strlen(path);
  while (at > 0) path[end++] = digits[--at];
  ::strcpy(path + end, "/stat");
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char line[1024];
  const ssize_t got = ::read(file, line, sizeof line - 1);
  ::close(file);
  if (got <= 0) return 0;
  line[got] = '\0';
  const char* field = ::strrchr(line, ')');
  constexpr int kBlanksBefore = 22 - 2;  // the first blank after ')' begins field 3
  for (int i = 0; i < kBlanksBefore; ++i) {
    if (field == nullptr) return 0;
    field = ::strchr(field + 1, ' ');
  }
  return field == nullptr ? 0 : ::strtoull(field + 1, nullptr, 10);
}

[[noreturn]] void exec_worker(int program, int socket, char** arguments) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int safe =
      ::fcntl(program, F_DUPFD_CLOEXEC, kWorkerSocket + 1);  // it may sit where the socket goes
  if (safe < 0 || ::dup2(socket, kWorkerSocket) < 0) ::_exit(125);
  if (socket == kWorkerSocket) ::fcntl(socket, F_SETFD, 0);
  ::syscall(SYS_execveat, safe, "", arguments, environ, AT_EMPTY_PATH);
  ::_exit(126);
}

void start_worker(Worker& worker, char** arguments) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) return;
  worker.started = now(CLOCK_BOOTTIME);
  ++worker.runs;
  if (worker.runs > 1) ::unsetenv("WHERRY_FAULT");  // what a test wants to happen happens once
  const pid_t pid = ::fork();
  if (pid == 0) exec_worker(descriptors.find(kProgramName), ends[1], arguments);
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return;
  }
  worker.pid = pid;
  worker.socket = ends[0];
  worker.handed_over = 0;
  worker.told_ready = false;
  exits.forget_sent();
}

// False when the socket is full (or gone): later.
bool send_message(int socket, const Message& message, int fd) {
  iovec piece{const_cast<Message*>(&message), sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    ::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  return ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof message);
}

// Sends what the worker has not heard yet. True when nothing is left.
bool tell_worker(Worker& worker) {
  while (worker.handed_over < descriptors.size() && !worker.told_ready) {
    const Descriptor& entry = descriptors.at(worker.handed_over);
    if (::strcmp(entry.name, kProgramName) != 0) {
      Message message;
      message.kind = Kind::kFd;
      ::memcpy(message.name, entry.name, kNameSize);
      if (!send_message(worker.socket, message, entry.fd)) return false;
    }
    ++worker.handed_over;
  }
  while (const Message* exit = exits.next_unsent()) {
    if (!send_message(worker.socket, *exit, -1)) return false;
    exits.mark_sent();
  }
  if (!worker.told_ready) {
    Message message;
    message.kind = Kind::kReady;
    message.pid = ::getpid();
    message.status = worker.runs;
    if (!send_message(worker.socket, message, -1)) return false;
    worker.told_ready = true;
  }
  return true;
}

void obey(Worker& worker, const Message& message, int fd) {
  if (message.version != kVersion || message.name[kNameSize - 1] != '\0') {
    if (fd >= 0) ::close(fd);
    return;
  }
  worker.ever_heard = true;
  if (message.kind == Kind::kStore && fd >= 0) {
    descriptors.store(message.name, fd);
    return;
  }
  if (fd >= 0) ::close(fd);
  if (message.kind == Kind::kDrop) descriptors.drop(message.name);
  if (message.kind == Kind::kAck) exits.acknowledge(message.serial);
  if (message.kind == Kind::kBye) worker.said_bye = true;
}

void hear_worker(Worker& worker) {
  while (worker.socket >= 0) {
    Message message;
    iovec piece{&message, sizeof message};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(worker.socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      ::close(worker.socket);
      worker.socket = -1;
      return;
    }
    int fd = -1;
    const cmsghdr* rights = CMSG_FIRSTHDR(&header);
    if (rights != nullptr && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
      ::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    if (got == static_cast<ssize_t>(sizeof message))
      obey(worker, message, fd);
    else if (fd >= 0)
      ::close(fd);
  }
}

// Whatever the dead worker had still sent counts: a descriptor in its last packet is held like any
// other.
void bury_worker(Worker& worker) {
  hear_worker(worker);
  if (worker.socket >= 0) ::close(worker.socket);
  worker.socket = -1;
  worker.pid = -1;
  const std::int64_t time = now(CLOCK_BOOTTIME);
  if (time - worker.started > kShortLife) worker.delay = 0;
  worker.start_at = time + worker.delay;
  const std::int64_t doubled = worker.delay * 2;
  worker.delay =
      worker.delay == 0 ? kFirstDelay : (doubled < kLongestDelay ? doubled : kLongestDelay);
}

void reap(Worker& worker) {
  int status = 0;
  if (worker.pid > 0 && ::waitpid(worker.pid, &status, WNOHANG) == worker.pid) bury_worker(worker);
  while (!exits.full()) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 || info.si_pid == 0)
      return;
    // Before the reap: after it the number may be another process's.
    Message exit;
    exit.kind = Kind::kExit;
    exit.pid = info.si_pid;
    exit.start_ticks = start_ticks_of(info.si_pid);
    if (::waitpid(info.si_pid, &status, __WALL | WNOHANG) != info.si_pid) return;
    exit.status = status;
    exit.time_ns = now(CLOCK_REALTIME);
    if (info.si_pid == worker.pid)
      bury_worker(worker);
    else
      exits.add(exit);
  }
}

bool adopt(char* names) {
  int fd = kFirstFd;
  for (char* rest = names; char* name = ::strsep(&rest, ",");) {
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) return false;
    if (!descriptors.store(name, fd++)) return false;
  }
  return descriptors.find(kProgramName) >= 0;
}

int keep(char** arguments) {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const int signals = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0 || ::prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) return 1;

  Worker worker;
  while (true) {
    if (worker.pid < 0 && worker.said_bye) return 0;
    // Each container begins with a descriptor to keep. So there is none, the program cannot run,
    // and the starter, which waits for our end of its pipe, takes the pod back.
    if (worker.pid < 0 && !worker.ever_heard && worker.runs >= kVainRuns) return 1;
    if (worker.pid < 0 && now(CLOCK_BOOTTIME) >= worker.start_at) {
      start_worker(worker, arguments);
      if (worker.pid < 0) bury_worker(worker);  // no process to be had: later
    }
    const bool all_told = worker.socket < 0 || tell_worker(worker);
    int timeout = -1;
    if (worker.pid < 0) {
      const std::int64_t left = worker.start_at - now(CLOCK_BOOTTIME);
      timeout = left <= 0 ? 0 : static_cast<int>(left / kNsPerMs) + 1;
    }
    pollfd ends[2] = {{signals, POLLIN, 0},
                      {worker.socket, static_cast<short>(all_told ? POLLIN : POLLIN | POLLOUT), 0}};
    ::poll(ends, 2, timeout);
    signalfd_siginfo ignored;
    while (::read(signals, &ignored, sizeof ignored) > 0) {
    }
    hear_worker(worker);
    reap(worker);
  }
}

}  // namespace
}  // namespace wherry::keeper

int main(int argc, char** argv) {
  ::umask(077);
  if (argc < 2 || !wherry::keeper::adopt(argv[1])) return 1;
  if (::chdir("/") < 0) return 1;
  static char worker_name[] = "wherry-shim";
  argv[1] = worker_name;
  return wherry::keeper::keep(argv + 1);
}
