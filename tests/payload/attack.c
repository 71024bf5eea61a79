// What a hostile payload would try, one subcommand each. Static, no library but libc; prints what
// it achieved.
//   attack exe SECONDS        opens /proc/*/exe for writing, O_PATH and reopen, of every process it
//   sees attack trace SECONDS      seizes every new process, reads its fd, mem, root, cwd attack
//   swap A B SECONDS   exchanges two names for ever attack tiocsti            pushes a byte into
//   its terminal and its descriptors attack fds                lists the descriptors above 2, and
//   whether the cwd is inside attack open PATH FLAGS    opens (r, w) and says the errno attack
//   mknod TYPE MAJ MIN makes and opens a device node in /tmp attack escape             the known
//   ways out of a chroot attack bomb               forks for ever, and so do all its children; deaf
//   to SIGTERM
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int pids(int* list, int most) {
  DIR* proc = opendir("/proc");
  int count = 0;
  struct dirent* entry;
  while (proc && (entry = readdir(proc)) && count < most)
    if (atoi(entry->d_name) > 0) list[count++] = atoi(entry->d_name);
  if (proc) closedir(proc);
  return count;
}

static int attack_exe(double seconds) {
  const double end = now() + seconds;
  int list[512], written = 0, seen = 0;
  char path[64];
  while (now() < end) {
    for (int i = 0, n = pids(list, 512); i < n; ++i) {
      snprintf(path, sizeof path, "/proc/%d/exe", list[i]);
      char target[256] = "";
      if (readlink(path, target, sizeof target - 1) < 0 || !strstr(target, "memfd")) {
        // Not the runtime's sealed copy: only a host file of the runtime's would matter.
        if (!strstr(target, "wherry")) continue;
      }
      ++seen;
      int fd = open(path, O_RDWR | O_CLOEXEC);
      if (fd < 0) {
        const int held = open(path, O_PATH | O_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", held);
        for (int tries = 0; held >= 0 && fd < 0 && tries < 50; ++tries)
          fd = open(path, O_RDWR | O_CLOEXEC);
        if (held >= 0) close(held);
      }
      if (fd >= 0) {
        if (write(fd, "#!/bin/true\n", 12) > 0) ++written;
        close(fd);
      }
    }
  }
  printf("seen=%d written=%d\n", seen, written);
  return 0;
}

static int attack_trace(double seconds) {
  const double end = now() + seconds;
  int list[512], hits = 0, seen = 0;
  const int self = getpid();
  char path[64], buffer[64];
  while (now() < end) {
    for (int i = 0, n = pids(list, 512); i < n; ++i) {
      if (list[i] == self || list[i] == 1) continue;
      char comm[32] = "";
      snprintf(path, sizeof path, "/proc/%d/comm", list[i]);
      const int file = open(path, O_RDONLY | O_CLOEXEC);
      if (file < 0) continue;
      if (read(file, comm, sizeof comm - 1) < 0) comm[0] = 0;
      close(file);
      if (!strstr(comm, "wherry") && !strstr(comm, "3") && !strstr(comm, "memfd"))
        continue;  // the payload's own commands
      ++seen;
      if (ptrace(PTRACE_SEIZE, list[i], 0, 0) == 0) {
        ++hits;
        printf("seized %s", comm);
      }
      for (const char** name = (const char*[]){"root", "cwd", "exe", 0}; *name; ++name) {
        snprintf(path, sizeof path, "/proc/%d/%s", list[i], *name);
        if (readlink(path, buffer, sizeof buffer) > 0) {
          ++hits;
          printf("%s of %s", *name, comm);
        }
      }
      snprintf(path, sizeof path, "/proc/%d/mem", list[i]);
      const int mem = open(path, O_RDWR | O_CLOEXEC);
      if (mem >= 0) {
        ++hits;
        printf("mem of %s", comm);
        close(mem);
      }
    }
  }
  printf("seen=%d hits=%d\n", seen, hits);
  return 0;
}

// Whether a process that appears leads to `file`, which only the host has, or holds a descriptor
// that the payload does not get.
static int attack_host(const char* file, double seconds) {
  const double end = now() + seconds;
  int list[512], hits = 0, seen = 0, fds = 0;
  const int self = getpid();
  char path[64], target[256];
  while (now() < end) {
    for (int i = 0, n = pids(list, 512); i < n; ++i) {
      if (list[i] == self || list[i] == 1) continue;
      ++seen;
      snprintf(path, sizeof path, "/proc/%d/root", list[i]);
      const int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
      if (root >= 0 && faccessat(root, file[0] == '/' ? file + 1 : file, F_OK, 0) == 0) ++hits;
      if (root >= 0) close(root);
      for (int fd = 3; fd < 40; ++fd) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", list[i], fd);
        const ssize_t size = readlink(path, target, sizeof target - 1);
        if (size > 0 && target[0] == '/' && strncmp(target, "/proc", 5) &&
            strncmp(target, "/dev/", 5))
          ++fds;
      }
    }
  }
  printf("seen=%d hits=%d fds=%d\n", seen, hits, fds);
  return 0;
}

static int attack_swap(const char* a, const char* b, double seconds) {
  const double end = now() + seconds;
  unsigned long swaps = 0;
  while (now() < end)
    for (int i = 0; i < 1000; ++i)
      swaps += renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0;
  printf("swaps=%lu\n", swaps);
  return 0;
}

static int attack_tiocsti(void) {
  int pushed = 0;
  const char* command = "X";
  const int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
  const int fds[] = {0, 1, 2, tty};
  for (int i = 0; i < 4; ++i)
    if (fds[i] >= 0 && ioctl(fds[i], TIOCSTI, command) == 0) ++pushed;
  printf("tty=%d pushed=%d sid=%d pid=%d\n", tty >= 0, pushed, (int)getsid(0), (int)getpid());
  return 0;
}

static int attack_fds(void) {
  DIR* dir = opendir("/proc/self/fd");
  struct dirent* entry;
  int found = 0;
  while (dir && (entry = readdir(dir))) {
    const int fd = atoi(entry->d_name);
    if (entry->d_name[0] == '.' || fd < 3 || fd == dirfd(dir)) continue;
    char path[64], target[256] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink(path, target, sizeof target - 1) < 0) strcpy(target, "?");
    printf("fd %d -> %s\n", fd, target);
    ++found;
  }
  char cwd[4096] = "";
  printf("more=%d cwd=%s\n", found, getcwd(cwd, sizeof cwd) ? cwd : strerror(errno));
  return 0;
}

static int attack_open(const char* path, const char* flags) {
  const int fd = open(path, (strchr(flags, 'w') ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  printf("%s\n", fd >= 0 ? "ok" : strerrorname_np(errno));
  return 0;
}

static int attack_mknod(const char* type, const char* major_text, const char* minor_text) {
  const dev_t dev = makedev((unsigned)atoi(major_text), (unsigned)atoi(minor_text));
  const char* node = "/tmp/attack-node";
  unlink(node);
  if (mknod(node, (type[0] == 'b' ? S_IFBLK : S_IFCHR) | 0666, dev) < 0) {
    printf("mknod %s\n", strerrorname_np(errno));
    return 0;
  }
  const int fd = open(node, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  printf("mknod ok open %s\n", fd >= 0 ? "ok" : strerrorname_np(errno));
  unlink(node);
  return 0;
}

// Prints "inside" when / is still the container's root, which has the file /marker.
static int attack_escape(void) {
  const int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < 64; ++i)
    if (chdir("..") < 0) break;
  int inside = access("marker", F_OK) == 0;
  mkdir("/tmp/jail", 0755);
  if (chroot("/tmp/jail") == 0) {
    if (fchdir(root) < 0) return 1;
    for (int i = 0; i < 64; ++i)
      if (chdir("..") < 0) break;
    if (chroot(".") < 0) return 1;
    inside = inside && access("/marker", F_OK) == 0;
  }
  struct stat st;
  inside = inside && fstatat(root, "../../../../marker", &st, 0) == 0;
  printf("%s\n", inside ? "inside" : "escaped");
  return 0;
}

// A short rest, so that a limit is probed all the time and the machine still does other work.
static int attack_bomb(void) {
  signal(SIGTERM, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
  for (;;)
    if (fork() < 0) usleep(200000);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "exe") && argc > 2) return attack_exe(atof(argv[2]));
  if (!strcmp(what, "trace") && argc > 2) return attack_trace(atof(argv[2]));
  if (!strcmp(what, "host") && argc > 3) return attack_host(argv[2], atof(argv[3]));
  if (!strcmp(what, "swap") && argc > 4) return attack_swap(argv[2], argv[3], atof(argv[4]));
  if (!strcmp(what, "tiocsti")) return attack_tiocsti();
  if (!strcmp(what, "fds")) return attack_fds();
  if (!strcmp(what, "open") && argc > 3) return attack_open(argv[2], argv[3]);
  if (!strcmp(what, "mknod") && argc > 4) return attack_mknod(argv[2], argv[3], argv[4]);
  if (!strcmp(what, "escape")) return attack_escape();
  if (!strcmp(what, "bomb")) return attack_bomb();
  fprintf(stderr, "attack: unknown words\n");
  return 2;
}
