// Runs a command under ptrace(2), and ends it or lets one system call fail at a chosen place.
//
//   stepper [-f] [-x] [-p PROCESS] [-o REPORT] count|kill CALL|inject CALL ERRNO -- PROGRAM
//   [ARGUMENT...]
//
//   count   only counts
//   kill    SIGKILL at the entry of the CALL-th system call (1 is the first after execve): it is
//   not made; with -x at
//           its exit: it was made
//   inject  the CALL-th system call is not made and gives ERRNO (a number); with -x it is made and
//   gives it all the
//           same. Calls that cannot fail are left alone.
//   -f      follow children up to their execve; without it they run free
//   -p      which process is meant: 0 the command itself (default), 1 its first child, ...; implies
//   -f -o      a line per followed process, "PROCESS CALLS HIT": its number, its system calls, and
//   the number of the
//           system call that was hit (-1: none)
//
// The exit status is that of the command, 128 and the signal when a signal ended it, and 125 for an
// error of ours.
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMostProcesses = 64, kSyscallStop = SIGTRAP | 0x80 };

struct process {
  pid_t pid;
  long calls, hit;
  bool inside, failing;
};

static struct process processes[kMostProcesses];
static int process_count;
static enum { kCount, kKill, kInject } mode;
static bool follow, at_exit;
static long wanted_call;
static int wanted_process, wanted_errno;

static void die(const char* what) {
  fprintf(stderr, "stepper: %s: %s\n", what, strerror(errno));
  exit(125);
}

static struct process* find(pid_t pid) {
  for (int i = 0; i < process_count; i++)
    if (processes[i].pid == pid) return &processes[i];
  if (process_count == kMostProcesses) {
    errno = E2BIG;
    die("processes");
  }
  processes[process_count] = (struct process){.pid = pid, .hit = -1};
  return &processes[process_count++];
}

// What has no errno, or never comes back.
static bool cannot_fail(long number) {
  switch (number) {
    case SYS_exit:
    case SYS_exit_group:
    case SYS_rt_sigreturn:
    case SYS_brk:
    case SYS_getpid:
    case SYS_gettid:
    case SYS_getppid:
    case SYS_getuid:
    case SYS_geteuid:
    case SYS_getgid:
    case SYS_getegid:
    case SYS_umask:
    case SYS_set_tid_address:
    case SYS_arch_prctl:
    case SYS_getrandom:  // not once there is entropy (Linux 3.17)
      return true;
    default:
      return false;
  }
}

static void on_syscall(struct process* process) {
  struct user_regs_struct regs;
  if (ptrace(PTRACE_GETREGS, process->pid, 0, &regs) != 0)
    return;  // it was killed by somebody else
  process->inside = !process->inside;
  const bool entry = process->inside;
  if (entry) process->calls++;
  if (process - processes != wanted_process || process->calls != wanted_call) return;
  const long number = (long)regs.orig_rax;
  if (mode == kKill && entry != at_exit) {
    process->hit = number;
    kill(process->pid, SIGKILL);
  } else if (mode == kInject && entry && !cannot_fail(number)) {
    process->hit = number;
    process->failing = true;
    if (at_exit) return;
    regs.orig_rax = (unsigned long long)-1;
    ptrace(PTRACE_SETREGS, process->pid, 0, &regs);
  } else if (mode == kInject && process->failing) {
    process->failing = false;
    regs.rax = (unsigned long long)-wanted_errno;
    ptrace(PTRACE_SETREGS, process->pid, 0, &regs);
  }
}

// A stop of a process; it goes on afterwards.
static void on_stop(pid_t pid, int status) {
  struct process* process = find(pid);
  const int event = status >> 16, signal = WSTOPSIG(status);
  int deliver = 0;
  if (signal == kSyscallStop) {
    on_syscall(process);
  } else if (event == PTRACE_EVENT_EXEC && process != processes) {
    ptrace(PTRACE_DETACH, pid, 0, 0);
    return;
  } else if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
    ptrace(PTRACE_LISTEN, pid, 0, 0);
    return;
  } else if (event == 0) {
    deliver = signal;
  }
  ptrace(PTRACE_SYSCALL, pid, 0, deliver);
}

static pid_t start(char** command) {
  int gate[2];
  if (pipe(gate) != 0) die("pipe");
  const pid_t pid = fork();
  if (pid < 0) die("fork");
  if (pid == 0) {
    char byte;
    close(gate[1]);
    if (read(gate[0], &byte, 1) != 1) _exit(125);
    close(gate[0]);
    execvp(command[0], command);
    die(command[0]);
  }
  long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC;
  if (follow)
    options |= PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
  else
    options |= PTRACE_O_EXITKILL;  // who is followed may outlive the command: a container does
  if (ptrace(PTRACE_SEIZE, pid, 0, options) != 0) die("PTRACE_SEIZE");
  if (write(gate[1], "", 1) != 1) die("write");
  close(gate[0]);
  close(gate[1]);
  int status;
  if (waitpid(pid, &status, __WALL) != pid) die("waitpid");
  if (!WIFSTOPPED(status) || status >> 16 != PTRACE_EVENT_EXEC) exit(125);
  find(pid)->inside = true;  // the next stop is the exit of execve
  ptrace(PTRACE_SYSCALL, pid, 0, 0);
  return pid;
}

static void report(const char* path) {
  FILE* file = path != NULL ? fopen(path, "we") : NULL;
  if (file == NULL) return;
  for (int i = 0; i < process_count; i++)
    fprintf(file, "%d %ld %ld\n", i, processes[i].calls, processes[i].hit);
  fclose(file);
}

static void usage(void) {
  fprintf(stderr,
          "usage: stepper [-f] [-x] [-p PROCESS] [-o REPORT] count|kill CALL|inject CALL ERRNO -- "
          "PROGRAM [ARGUMENT...]\n");
  exit(125);
}

int main(int argc, char** argv) {
  const char* path = NULL;
  int option;
  while ((option = getopt(argc, argv, "+fxp:o:")) != -1) {
    switch (option) {
      case 'f':
        follow = true;
        break;
      case 'x':
        at_exit = true;
        break;
      case 'p':
        follow = true;
        wanted_process = atoi(optarg);
        break;
      case 'o':
        path = optarg;
        break;
      default:
        usage();
    }
  }
  char** word = argv + optind;
  const int words = argc - optind;
  if (words >= 3 && strcmp(word[0], "count") == 0) {
    word += 1;
  } else if (words >= 4 && strcmp(word[0], "kill") == 0) {
    mode = kKill, wanted_call = atol(word[1]), word += 2;
  } else if (words >= 5 && strcmp(word[0], "inject") == 0) {
    mode = kInject, wanted_call = atol(word[1]), wanted_errno = atoi(word[2]), word += 3;
  } else {
    usage();
  }
  if (strcmp(word[0], "--") != 0) usage();
  const pid_t command = start(word + 1);
  for (;;) {
    int status;
    const pid_t pid = waitpid(-1, &status, __WALL);
    if (pid < 0) die("waitpid");
    if (WIFSTOPPED(status)) {
      on_stop(pid, status);
    } else if (pid == command) {
      report(path);
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }
}
