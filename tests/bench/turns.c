// Times commands in turns: each round runs every command once, from fork to the end of the process,
// and each round begins with another one, so that what the machine does beside hits all alike.
//
//   turns ROUNDS [@NAMESPACE] COMMAND [ARG...] [-- [@NAMESPACE] COMMAND [ARG...]]...
//
// @NAMESPACE is the file of a mount namespace that the child enters first. stdin and stdout are
// /dev/null. Prints two lines per command, both in microseconds: how long each round took, and how
// much processor time it and what it has waited for had, which says more when the machine is busy.
// A command that fails ends it all: its time says nothing.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kMostCommands = 16 };

struct command {
  int mount_namespace;
  char** argv;
  double *took, *used;
};

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

static void die(const char* what) {
  perror(what);
  exit(1);
}

static double microseconds(struct timeval at) {
  return (double)at.tv_sec * 1e6 + (double)at.tv_usec;
}

static void run(const struct command* command, int null, double* took, double* used) {
  const double began = now();
  const pid_t pid = fork();
  if (pid < 0) die("fork");
  if (pid == 0) {
    if (command->mount_namespace >= 0 && setns(command->mount_namespace, CLONE_NEWNS) < 0)
      die("setns");
    dup2(null, 0);
    dup2(null, 1);
    execv(command->argv[0], command->argv);
    die(command->argv[0]);
  }
  int status = 0;
  struct rusage usage;
  if (wait4(pid, &status, 0, &usage) < 0) die("wait4");
  *took = now() - began;
  *used = microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
  if (status != 0) {
    fprintf(stderr, "turns: '%s' ended with wait status %d\n", command->argv[0], status);
    exit(1);
  }
}

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? atoi(argv[1]) : 0;
  if (rounds < 1 || rounds > 100000) return 2;
  struct command commands[kMostCommands];
  int count = 0;
  for (int i = 2; i < argc && count < kMostCommands; ++i) {
    struct command* command = &commands[count++];
    command->mount_namespace = -1;
    if (argv[i][0] == '@') {
      command->mount_namespace = open(argv[i] + 1, O_RDONLY | O_CLOEXEC);
      if (command->mount_namespace < 0) die(argv[i]);
      ++i;
    }
    command->argv = &argv[i];
    command->took = calloc((size_t)rounds, sizeof(double));
    command->used = calloc((size_t)rounds, sizeof(double));
    while (i < argc && strcmp(argv[i], "--") != 0) ++i;
    argv[i] = NULL;  // argv[argc] is NULL already
  }
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) die("/dev/null");
  for (int i = 0; i < count; ++i)
    run(&commands[i], null, commands[i].took, commands[i].used);  // warms the caches
  for (int round = 0; round < rounds; ++round)
    for (int i = 0; i < count; ++i) {
      const int which = (i + round) % count;
      run(&commands[which], null, &commands[which].took[round], &commands[which].used[round]);
    }
  for (int i = 0; i < count; ++i) {
    for (int round = 0; round < rounds; ++round)
      printf("%.1f%c", commands[i].took[round], round + 1 < rounds ? ' ' : '\n');
    for (int round = 0; round < rounds; ++round)
      printf("%.1f%c", commands[i].used[round], round + 1 < rounds ? ' ' : '\n');
  }
  return 0;
}
