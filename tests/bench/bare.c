// The floor of the bench: the namespaces, mounts and devices of its bundle by the shortest way to
// the kernel, and nothing else: no cgroup, device program, seccomp, capabilities, records, start
// gate or error handling worth the name.
//
//   bare ROOT PROGRAM [ARG...]
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define SURE(call)                           \
  do {                                       \
    if ((call) < 0) perror(#call), _exit(1); \
  } while (0)

static void mount_new(const char* type, const char* at, unsigned long flags, const char* data) {
  mkdir(at, 0755);
  SURE(mount(type, at, type, flags, data));
}

static void devices(void) {
  static const struct {
    const char* name;
    unsigned major, minor;
  } all[] = {{"dev/null", 1, 3},   {"dev/zero", 1, 5},    {"dev/full", 1, 7},
             {"dev/random", 1, 8}, {"dev/urandom", 1, 9}, {"dev/tty", 5, 0}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
    SURE(mknod(all[i].name, S_IFCHR | 0666, makedev(all[i].major, all[i].minor)));
  SURE(symlink("/proc/self/fd", "dev/fd"));
  SURE(symlink("/proc/self/fd/0", "dev/stdin"));
  SURE(symlink("/proc/self/fd/1", "dev/stdout"));
  SURE(symlink("/proc/self/fd/2", "dev/stderr"));
  SURE(symlink("pts/ptmx", "dev/ptmx"));
}

static void hide(void) {
  static const char* const files[] = {"proc/kcore", "proc/keys", "proc/timer_list"};
  static const char* const dirs[] = {"proc/acpi", "sys/firmware"};
  static const char* const fixed[] = {"proc/bus", "proc/fs", "proc/irq", "proc/sys",
                                      "proc/sysrq-trigger"};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; ++i)
    if (access(files[i], F_OK) == 0) SURE(mount("dev/null", files[i], NULL, MS_BIND, NULL));
  for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; ++i)
    if (access(dirs[i], F_OK) == 0)
      SURE(mount("tmpfs", dirs[i], "tmpfs", MS_RDONLY, "nr_inodes=2"));
  for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; ++i) {
    if (access(fixed[i], F_OK) != 0) continue;
    SURE(mount(fixed[i], fixed[i], NULL, MS_BIND | MS_REC, NULL));
    SURE(mount(NULL, fixed[i], NULL,
               MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
  }
}

static void become(const char* root, char** argv) {
  const unsigned long strict = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  SURE(mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL));
  SURE(mount(root, root, NULL, MS_BIND | MS_REC, NULL));
  SURE(chdir(root));
  mount_new("proc", "proc", strict, NULL);
  mount_new("tmpfs", "dev", MS_NOSUID | MS_STRICTATIME, "mode=755,size=65536k");
  mount_new("devpts", "dev/pts", MS_NOSUID | MS_NOEXEC,
            "newinstance,ptmxmode=0666,mode=0620,gid=5");
  mount_new("tmpfs", "dev/shm", strict, "mode=1777,size=65536k");
  mount_new("mqueue", "dev/mqueue", strict, NULL);
  mount_new("sysfs", "sys", strict | MS_RDONLY, NULL);
  devices();
  hide();
  SURE(syscall(SYS_pivot_root, ".", "."));
  SURE(umount2(".", MNT_DETACH));
  SURE(chdir("/"));
  SURE(sethostname("bench", 5));
  execv(argv[0], argv);
  perror(argv[0]);
  _exit(127);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  struct clone_args args = {.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                                     CLONE_NEWUTS | CLONE_NEWCGROUP,
                            .exit_signal = SIGCHLD};
  const long pid = syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) {
    umask(0);
    become(argv[1], argv + 2);
  }
  int status = 0;
  if (pid < 0 || waitpid((pid_t)pid, &status, 0) < 0) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
