// The life of the pod in the worker: what happens becomes events of the machine, what the machine
// wants is carried out by the engine, and what has changed is written down and told.
#pragma once
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "runtime/pod/machine.h"
#include "shim/protocol/pod_status.h"
#include "shim/worker/context.h"
#include "shim/worker/engine.h"
#include "shim/worker/exec_sessions.h"

namespace wherry::shim {

class Supervisor {
 public:
  // Both leave the machine ready; nothing is carried out before begin().
  static Result<std::unique_ptr<Supervisor>> fresh(Context& context);
  static Result<std::unique_ptr<Supervisor>> recovered(Context& context);  // after a worker died

  void begin();
  // Something came from the keeper, or the keeper is gone.
  void on_keeper();
  void stop(const std::string& container, std::optional<Millis> grace);  // container empty: the pod
  void remove();                                                         // kills first

  // `told` is called once: when the container, which is one of the pod's, will not run again,
  // whether or not a process ends for it; on_end(): when the pod has ended and is released. At once
  // if it is so already.
  using ToldOver = std::function<void(const ContainerStatus&)>;
  void on_over(const std::string& container, ToldOver told);
  void on_end(std::function<void()> told);

  bool ended() const { return ended_; }      // the run is over, everything is released
  bool removed() const { return removed_; }  // and nothing of the pod may stay
  PodStatus status() const;
  Shims shims() const { return shims_; }
  Engine& engine() { return engine_; }
  ExecSessions& execs() { return execs_; }
  Context& context() { return context_; }
  // The starter's answer when a container could not be started: after everything has been taken
  // back.
  bool failed_to_start() const { return ended_ && !answered_ && first_failure_.has_value(); }
  void answer_failure();
  void write_status();
  void tell_end_waiters();
  // The container that `run` in the foreground is attached to has ended: its clients hear it now.
  void release_foreground();
  bool has_foreground() const { return foreground_io_ && foreground_io_->has_clients(); }
  bool has_clients() const;
  bool has_waited_clients() const;  // those for which a container waits

 private:
  Supervisor(Context& context, pod::Machine machine, Shims shims);

  void feed(pod::Event event);
  void work_off();
  void carry_out(const pod::Action& action);
  void create(const pod::Create& action);
  void start(const pod::Start& action);
  void destroy(const pod::Destroy& action);
  void arm(const pod::Arm& action);
  void disarm(const std::string& name, pod::Timer timer);
  void failed(const std::string& name, const Error& error);
  void finish(const pod::Finish& action);

  void take_exits();
  void init_exited(LiveContainer& live, const ChildExit* exit);
  void publish_when_quiet(const std::string& name);
  void publish_exit(const std::string& name);
  void tell_over_waiters();
  void tell_unpublished_end(const std::string& name);
  void watch_without_keeper();
  void watch_init(const LiveContainer& live);

  Result<> recover_container(const pod::ContainerView& view);
  void recall_times();
  void answer_starter();
  void tell(const std::string& type, Json event);
  std::string sandbox() const;
  ContainerStatus status_of(const pod::ContainerView& view) const;

  struct Notes {  // what the machine does not keep of a container
    std::string started, finished;
    std::optional<ExitRecord> exit;
    bool started_once = false;
  };

  Context& context_;
  pod::Machine machine_;
  Shims shims_;
  Engine engine_;
  ExecSessions execs_;
  std::deque<pod::Event> events_;
  std::vector<pod::Action> resumed_;
  bool fresh_ = false, working_ = false, ended_ = false, removed_ = false, answered_ = false;
  bool keeper_gone_ = false;  // the pod lives on, and is not what was asked for any more
  std::map<std::string, Notes> notes_;
  std::map<std::pair<std::string, pod::Timer>, EventLoop::TimerId> timers_;
  std::map<std::string, std::unique_ptr<ExitWatch>> init_watches_;  // once there is no keeper
  std::optional<Error> first_failure_;
  std::list<std::pair<std::string, ToldOver>> over_waiters_;
  std::list<std::function<void()>> end_waiters_;
  std::string written_status_;
  // Streams of ended containers whose clients have not got everything yet.
  std::list<std::unique_ptr<ContainerIo>> ended_io_;
  std::unique_ptr<ContainerIo> foreground_io_;
  std::optional<int> foreground_exit_;
};

}  // namespace wherry::shim
