// run_command: a helper program of the host's, bounded in time and output.
#include <signal.h>
#include <sys/stat.h>
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
  list.reserve(words.size() + 1);
  for (const auto& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

[[noreturn]] void exec_child(const Pipes& pipes, const Command& command, char* const* argv,
                             char* const* env) {
  ::setpgid(0, 0);
  if (!command.cwd.empty() && ::chdir(command.cwd.c_str()) < 0) ::_exit(126);
  if (command.umask) ::umask(*command.umask);
  if (::dup2(pipes.in.first.get(), 0) < 0 || ::dup2(pipes.out.second.get(), 1) < 0 ||
      ::dup2(pipes.err.second.get(), 2) < 0)
    ::_exit(125);
  sys::close_range(3, ~0U).ignore("close-on-exec covers what is ours");
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signum = 1; signum < NSIG; ++signum) ::signal(signum, SIG_DFL);
  ::execve(command.program.empty() ? argv[0] : command.program.c_str(), argv, env);
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

// What has been written until now, without waiting for more.
void drain_rest(UniqueFd& end, std::string& into, std::size_t limit) {
  if (!end || !sys::set_nonblock(end.get(), true).ok()) return;
  pollfd ready{end.get(), POLLIN, 0};
  while (::poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0 &&
         drain(end.get(), into, limit)) {
  }
}

// Until it has ended. Not until its output has: a process that it leaves behind may keep that open.
Result<> converse(Pipes& pipes, int pidfd, const Command& command, CommandResult& result,
                  Deadline deadline) {
  std::string_view input = command.input;
  if (input.empty()) pipes.in.second.reset();
  for (bool ended = false; !ended;) {
    std::array<pollfd, 4> ends{{{pipes.out.first.get(), POLLIN, 0},
                                {pipes.err.first.get(), POLLIN, 0},
                                {pipes.in.second.get(), POLLOUT, 0},
                                {pidfd, POLLIN, 0}}};
    const int ready = ::poll(ends.data(), ends.size(), deadline.poll_timeout_ms());
    if (ready < 0 && errno != EINTR) return Error::sys("poll");
    if (ready <= 0) {
      if (deadline.expired()) return Error::make(Code::kTimeout, "it did not end in time");
      continue;
    }
    if (ends[0].revents != 0 && !drain(ends[0].fd, result.out, command.output_limit))
      pipes.out.first.reset();
    if (ends[1].revents != 0 && !drain(ends[1].fd, result.err, command.output_limit))
      pipes.err.first.reset();
    if (ends[2].revents != 0) {
      const ssize_t put = ::write(ends[2].fd, input.data(), input.size());
      if (put > 0) input.remove_prefix(static_cast<std::size_t>(put));
      if (input.empty() || (put < 0 && errno != EAGAIN && errno != EINTR)) pipes.in.second.reset();
    }
    ended = ends[3].revents != 0;
  }
  drain_rest(pipes.out.first, result.out, command.output_limit);
  drain_rest(pipes.err.first, result.err, command.output_limit);
  return {};
}

}  // namespace

Result<CommandResult> run_command(const Command& command, Deadline deadline) {
  CHECK(!command.argv.empty(), "a command has a name");
  Pipes pipes;
  for (auto* pipe : {&pipes.in, &pipes.out, &pipes.err}) *pipe = TRY(sys::pipe2(0));
  const auto argv = pointers(command.argv);
  const auto env = pointers(command.env);
  auto child = TRY(clone_process({}));
  if (child.pid == 0) exec_child(pipes, command, argv.data(), env.data());
  ::setpgid(child.pid, child.pid);
  pipes.in.first.reset();
  pipes.out.second.reset();
  pipes.err.second.reset();
  TRY(sys::set_nonblock(pipes.in.second.get(), true));
  CommandResult result;
  auto talked = converse(pipes, child.pidfd.get(), command, result, deadline);
  if (!talked.ok()) ::kill(-child.pid, SIGKILL);  // the group is ours: the leader is not reaped yet
  const auto info = TRY(sys::waitid_pidfd(child.pidfd.get(), WEXITED));
  if (!talked.ok()) return std::move(talked).error().context(command.argv[0]);
  result.exit_status = info->si_code == CLD_EXITED ? info->si_status : 128 + info->si_status;
  return result;
}

}  // namespace wherry
