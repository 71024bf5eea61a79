// Processes that cannot be confused with a later one of the same number, and the one clone site.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace wherry {

struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat: clock ticks after boot (proc(5))
  std::string boot_id;            // /proc/sys/kernel/random/boot_id
};
Result<std::string> boot_id();
Result<ProcessIdentity> identify(
    pid_t pid);  // kNotFound when there is none; a zombie is identified
Result<UniqueFd> open_pidfd(
    const ProcessIdentity& who);        // kNotFound if it is gone, a zombie, or another one
Result<char> process_state(pid_t pid);  // 'R', 'S', 'D', 'Z', ... (proc(5))
bool single_threaded();

struct CloneArgs {
  std::uint64_t flags = 0;  // CLONE_NEW* and CLONE_PARENT; CLONE_PIDFD and SIGCHLD are added
  int cgroup_fd = -1;       // v2 directory to be born in (CLONE_INTO_CGROUP, Linux 5.7)
};
struct Cloned {
  pid_t pid = 0;   // 0: this is the child
  UniqueFd pidfd;  // in the parent
};
// The only place where the project makes a process. The caller must be single-threaded. The child
// must end in a
// [[noreturn]] function: it owns a copy of everything, including the caller's buffers.
Result<Cloned> clone_process(const CloneArgs& args);

// A helper program, run to its end: fixed environment, descriptors 0-2 only, own process group,
// killed at the deadline. Output over `output_limit` bytes is discarded, and so is what comes after
// its end from a process that it has left behind.
struct Command {
  std::vector<std::string> argv;
  std::string program;  // the path that is executed; empty: argv[0]
  std::vector<std::string> env;
  std::string cwd;              // empty: the caller's
  std::optional<mode_t> umask;  // absent: the caller's
  std::string input;
  std::size_t output_limit = 65536;
};
struct CommandResult {
  int exit_status = 0;  // 0-255, or 128 + signal
  std::string out, err;
};
Result<CommandResult> run_command(const Command& command, Deadline deadline);

// 0-255 or 128 + signal, from the status word of wait(2).
int exit_code_of(int wait_status);

}  // namespace wherry
