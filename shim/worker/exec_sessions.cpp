#include "shim/worker/exec_sessions.h"

#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/protocol/relay.h"

namespace wherry::shim {
namespace {

constexpr Millis kExecWait{30'000};
constexpr Millis kLeafWait{2'000};
// From when the container sees the new process it can stop it: others are not to wait for that.
constexpr Millis kOutcomeWait{300};

// A directory or O_PATH descriptor in a container would be a way out of it: /proc/self/fd/N/.. is
// the host's tree.
Result<> refuse_ways_out(const std::vector<UniqueFd>& fds) {
  for (const auto& fd : fds) {
    const auto st = TRY(sys::fstat(fd.get(), "passed descriptor"));
    const int flags = ::fcntl(fd.get(), F_GETFL);
    if (flags < 0) return Error::sys("fcntl(F_GETFL)", "passed descriptor");
    if (S_ISDIR(st.st_mode) || (flags & O_PATH) != 0)
      return Error::make(Code::kDenied,
                         "a directory or O_PATH descriptor may not be passed into a container");
  }
  return {};
}

}  // namespace

Result<oci::Process> ExecSessions::process_for(const LiveContainer& container,
                                               const ExecWanted& wanted) const {
  if (!container.spec.process) return Error::make(Code::kState, "its config.json is not there");
  oci::Process process = *container.spec.process;
  process.args = wanted.argv;
  process.terminal = wanted.tty;
  process.console_size.reset();
  if (wanted.tty && wanted.rows != 0) process.console_size = oci::Box{wanted.rows, wanted.columns};
  for (const auto& entry : wanted.env) {
    const auto name = entry.substr(0, entry.find('=') + 1);
    process.env.erase(std::remove_if(process.env.begin(), process.env.end(),
                                     [&](const auto& old) { return old.rfind(name, 0) == 0; }),
                      process.env.end());
    process.env.push_back(entry);
  }
  if (!wanted.cwd.empty()) process.cwd = wanted.cwd;
  if (!wanted.user.empty()) {
    // The container's own view of its root; the pidfd says that the number is still its init's.
    const auto root = TRY(
        sys::openat(AT_FDCWD, cat("/proc/", container.init.pid, "/root"), O_PATH | O_DIRECTORY));
    static_cast<void>(TRY(open_pidfd(container.init)));
    const auto user = TRY(container::resolve_user(root.get(), wanted.user));
    process.user.uid = user.uid;
    process.user.gid = user.gid;
    process.user.additional_gids = user.additional_gids;
  }
  return process;
}

Result<pid_t> ExecSessions::start(LiveContainer& container, ExecWanted wanted, Ended ended) {
  if (container.exited) return Error::make(Code::kState, "it has exited");
  if (wanted.argv.empty()) return Error::make(Code::kInvalid, "a command is missing");
  const std::size_t fds = wanted.tty ? 1 : 3;
  if (wanted.fds.size() != fds)
    return Error::make(Code::kInvalid,
                       cat("it takes ", fds, " descriptors, ", wanted.fds.size(), " were passed"));
  if (!wanted.tty) TRY(refuse_ways_out(wanted.fds));
  if (wanted.tty) TRY(check_relay(wanted.fds[0].get()));

  container::ExecOptions options;
  options.process = TRY(process_for(container, wanted));
  if (!wanted.tty) options.stdio = {wanted.fds[0].get(), wanted.fds[1].get(), wanted.fds[2].get()};
  options.clone_parent = context_.keeper.alive();
  options.seccomp_cache = context_.plan.root + "/seccomp";
  auto done = TRY(container::exec(container.record_dir.get(), container.spec, std::move(options),
                                  Deadline::in(kExecWait)));
  auto accepted = accept(container, wanted, done, std::move(ended));
  if (accepted.ok()) return accepted;
  container::finish_exec(container.record_dir.get(), done.leaf_path, Deadline::in(kLeafWait))
      .ignore("the first error is the one to tell");
  return accepted;
}

Result<pid_t> ExecSessions::accept(const LiveContainer& container, ExecWanted& wanted,
                                   container::Executed& done, Ended ended) {
  auto outcome = done.outcome(Deadline::in(kOutcomeWait));
  if (!outcome.ok() && outcome.error().code() != Code::kTimeout) return std::move(outcome).error();

  Session session;
  session.container = container.name;
  session.record_dir = TRY(sys::dup(container.record_dir.get()));
  session.process = done.process;
  session.pidfd = std::move(done.pidfd);
  session.leaf_path = std::move(done.leaf_path);
  session.ended = std::move(ended);
  if (wanted.tty)
    session.relay =
        TRY(TtyRelay::create(context_.loop, std::move(done.console), std::move(wanted.fds[0])));
  sessions_.push_back(std::move(session));
  if (!context_.keeper.alive()) watch(std::prev(sessions_.end()));
  return sessions_.back().process.pid;
}

bool ExecSessions::exited(const ChildExit& exit) {
  const auto found = std::find_if(sessions_.begin(), sessions_.end(), [&](const Session& session) {
    return !session.ending && session.process.pid == exit.pid &&
           (exit.start_ticks == 0 || exit.start_ticks == session.process.start_ticks);
  });
  if (found == sessions_.end()) return false;
  end(found, exit_code_of(exit.wait_status));
  return true;
}

void ExecSessions::end(Place session, std::optional<int> exit_code) {
  session->ending = true;
  // Children of its own that it left behind go with its leaf.
  const auto finished = container::finish_exec(session->record_dir.get(), session->leaf_path,
                                               Deadline::in(kLeafWait));
  if (!finished.ok()) LOG(kWarning, "exec: ", finished.error().message());
  if (!session->relay) return forget(session, exit_code);
  session->relay->finish(exit_code, [this, session, exit_code] { forget(session, exit_code); });
}

void ExecSessions::forget(Place session, std::optional<int> exit_code) {
  const auto ended = std::move(session->ended);
  const std::string container = session->container;
  sessions_.erase(session);
  if (ended) ended(exit_code);
  tell_quiet(container);
}

bool ExecSessions::any_of(const std::string& container) const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [&](const auto& session) { return session.container == container; });
}

void ExecSessions::watch_without_keeper() {
  for (auto session = sessions_.begin(); session != sessions_.end(); ++session)
    if (!session->ending) watch(session);
}

void ExecSessions::watch(Place session) {
  session->watch =
      ExitWatch::start(context_.loop, session->pidfd.get(), [this, session](auto status) {
        end(session, status ? std::optional{exit_code_of(*status)} : std::nullopt);
      });
}

void ExecSessions::kill_all_of(const std::string& container) {
  for (const auto& session : sessions_)
    if (session.container == container && !session.ending)
      sys::pidfd_send_signal(session.pidfd.get(), SIGKILL).ignore("it has ended already");
}

void ExecSessions::when_quiet(const std::string& container, Millis most,
                              std::function<void()> quiet) {
  if (!any_of(container)) return quiet();
  waiting_[container] = {std::move(quiet),
                         context_.loop.after(most, [this, container] { give_up(container); })};
}

void ExecSessions::give_up(const std::string& container) {
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    const auto session = at++;
    if (session->container == container) forget(session, std::nullopt);
  }
}

void ExecSessions::tell_quiet(const std::string& container) {
  if (any_of(container)) return;
  auto waiting = waiting_.extract(container);
  if (waiting.empty()) return;
  context_.loop.cancel(waiting.mapped().timer);
  context_.loop.after(Millis{0}, std::move(waiting.mapped().quiet));
}

}  // namespace wherry::shim
