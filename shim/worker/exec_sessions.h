// Processes that were started in running containers by `exec`.
#pragma once
#include <array>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "shim/worker/context.h"
#include "shim/worker/engine.h"
#include "shim/worker/pidfd_exit.h"
#include "shim/worker/tty_relay.h"

namespace wherry::shim {

struct ExecWanted {
  std::vector<std::string> argv, env;
  std::string user, cwd;
  bool tty = false;
  unsigned rows = 0, columns = 0;
  std::vector<UniqueFd> fds;  // stdin, stdout, stderr; with a terminal: the relay
};

class ExecSessions {
 public:
  using Ended = std::function<void(std::optional<int> exit_code)>;

  explicit ExecSessions(Context& context) : context_{context} {}
  // kState when the container does not run. `ended` is called once, with the exit code or unknown.
  Result<pid_t> start(LiveContainer& container, ExecWanted wanted, Ended ended);
  // Whether the exit was of one of ours.
  bool exited(const ChildExit& exit);
  // The keeper, which told of exits, is gone.
  void watch_without_keeper();
  // Init has ended: what did not end with it is killed.
  void kill_all_of(const std::string& container);
  // Calls back, now or from the loop, when the container has no session any more. What does not end
  // within `most` is given up and told as unknown.
  void when_quiet(const std::string& container, Millis most, std::function<void()> quiet);

 private:
  struct Session {
    std::string container;
    UniqueFd record_dir;
    ProcessIdentity process;
    UniqueFd pidfd;
    std::unique_ptr<ExitWatch> watch;  // once there is no keeper
    std::string leaf_path;
    std::unique_ptr<TtyRelay> relay;
    Ended ended;
    bool ending = false;  // its exit is known; its terminal is being emptied
  };
  Result<oci::Process> process_for(const LiveContainer& container, const ExecWanted& wanted) const;
  // After container::exec: a session of it, once it is known (or takes too long to know) that the
  // payload runs.
  Result<pid_t> accept(const LiveContainer& container, ExecWanted& wanted,
                       container::Executed& done, Ended ended);
  using Place = std::list<Session>::iterator;
  void end(Place session, std::optional<int> exit_code);
  void forget(Place session, std::optional<int> exit_code);
  void watch(Place session);
  bool any_of(const std::string& container) const;
  void give_up(const std::string& container);
  void tell_quiet(const std::string& container);

  struct Waiting {
    std::function<void()> quiet;
    EventLoop::TimerId timer = 0;
  };
  Context& context_;
  std::list<Session> sessions_;
  std::map<std::string, Waiting> waiting_;  // by container
};

}  // namespace wherry::shim
