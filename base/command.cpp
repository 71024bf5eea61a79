// run_command: a helper program of the host's, bounded in time and output.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry {
namespace {

struct Pipes {
  std::pair<UniqueFd, UniqueFd> in, out, err;
};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const auto& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

[[noreturn]] void exec_child(const Pipes& pipes, char* const* argv, char* const* env) {
  ::setpgid(0, 0);
  if (::dup2(pipes.in.first.get(), 0) < 0 || ::dup2(pipes.out.second.get(), 1) < 0 ||
      ::dup2(pipes.err.second.get(), 2) < 0)
    ::_exit(125);
  sys::close_range(3, ~0U).ignore("close-on-exec covers what is ours");
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signum = 1; signum < NSIG; ++signum) ::signal(signum, SIG_DFL);
  ::execve(argv[0], argv, env);
  ::_exit(errno == ENOENT ? 127 : 126);
}

// One ready end: moves what there is. False when this end is finished.
bool drain(int fd, std::string& into, std::size_t limit) {
  std::array<char, 16384> chunk;
  const ssize_t got = ::read(fd, chunk.data(), chunk.size());
  if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
  into.append(chunk.data(),
              std::min(static_cast<std::size_t>(got), limit - std::min(limit, into.size())));
  return true;
}

Result<> converse(Pipes& pipes, const Command& command, CommandResult& result, Deadline deadline) {
  std::string_view input = command.input;
  if (input.empty()) pipes.in.second.reset();
  while (pipes.out.first || pipes.err.first) {
    std::array<pollfd, 3> ends{{{pipes.out.first.get(), POLLIN, 0},
                                {pipes.err.first.get(), POLLIN, 0},
                                {pipes.in.second.get(), POLLOUT, 0}}};
    const int ready = ::poll(ends.data(), ends.size(), deadline.poll_timeout_ms());
    if (ready < 0 && errno != EINTR) return Error::sys("poll");
    if (ready == 0 && deadline.expired())
      return Error::make(Code::kTimeout, "it did not end in time");
    if (ends[0].revents != 0 && !drain(ends[0].fd, result.out, command.output_limit))
      pipes.out.first.reset();
    if (ends[1].revents != 0 && !drain(ends[1].fd, result.err, command.output_limit))
      pipes.err.first.reset();
    if (ends[2].revents != 0) {
      const ssize_t put = ::write(ends[2].fd, input.data(), input.size());
      if (put > 0) input.remove_prefix(static_cast<std::size_t>(put));
      if (input.empty() || (put < 0 && errno != EAGAIN && errno != EINTR)) pipes.in.second.reset();
    }
  }
  return {};
}

}  // namespace

Result<CommandResult> run_command(const Command& command, Deadline deadline) {
  CHECK(!command.argv.empty(), "a command has a path");
  Pipes pipes;
  for (auto* pipe : {&pipes.in, &pipes.out, &pipes.err}) *pipe = TRY(sys::pipe2(0));
  const auto argv = pointers(command.argv);
  const auto env = pointers(command.env);
  auto child = TRY(clone_process({}));
  if (child.pid == 0) exec_child(pipes, argv.data(), env.data());
  ::setpgid(child.pid, child.pid);
  pipes.in.first.reset();
  pipes.out.second.reset();
  pipes.err.second.reset();
  TRY(sys::set_nonblock(pipes.in.second.get(), true));
  CommandResult result;
  auto talked = converse(pipes, command, result, deadline);
  if (talked.ok() && TRY(sys::poll_one(child.pidfd.get(), POLLIN, deadline)) == 0)
    talked = Error::make(Code::kTimeout, "it did not end in time");
  if (!talked.ok()) ::kill(-child.pid, SIGKILL);  // the group is ours: the leader is not reaped yet
  const auto info = TRY(sys::waitid_pidfd(child.pidfd.get(), WEXITED));
  if (!talked.ok()) return std::move(talked).error().context(command.argv[0]);
  result.exit_status = info->si_code == CLD_EXITED ? info->si_status : 128 + info->si_status;
  return result;
}

}  // namespace wherry
