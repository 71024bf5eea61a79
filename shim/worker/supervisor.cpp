#include "shim/worker/supervisor.h"

#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/protocol/event_log.h"
#include "shim/protocol/failure.h"

namespace wherry::shim {
namespace {

constexpr Millis kDrainWait{2'000};
constexpr Millis kExecEndWait{2'000};

Millis now() {
  return std::chrono::duration_cast<Millis>(boot_time());
}

// The stop signal of an image stands behind the pod's own.
Result<pod::PodSpec> spec_with_images(const Context& context) {
  auto spec = TRY(pod::machine_spec(context.pod));
  for (auto& container : spec.containers) {
    const auto image = context.plan.images.find(container.name);
    const auto* wanted = context.container(container.name);
    if (image == context.plan.images.end() || wanted == nullptr || !wanted->stop_signal.empty())
      continue;
    if (image->second.config.stop_signal.empty()) continue;
    const auto signum = pod::signal_number(image->second.config.stop_signal);
    if (signum.ok()) container.stop_signal = signum.value();
  }
  return spec;
}

Result<Shims> identify_shims(const KeeperLink& keeper) {
  Shims shims;
  shims.worker = TRY(identify(::getpid()));
  shims.keeper = TRY(identify(keeper.keeper_pid()));
  shims.worker_starts = static_cast<unsigned>(keeper.runs());
  return shims;
}

}  // namespace

Supervisor::Supervisor(Context& context, pod::Machine machine, Shims shims)
    : context_{context},
      machine_{std::move(machine)},
      shims_{std::move(shims)},
      engine_{context},
      execs_{context} {}

Result<std::unique_ptr<Supervisor>> Supervisor::fresh(Context& context) {
  auto spec = TRY(spec_with_images(context));
  auto shims = TRY(identify_shims(context.keeper));
  std::unique_ptr<Supervisor> supervisor{
      new Supervisor{context, pod::Machine{std::move(spec)}, std::move(shims)}};
  supervisor->fresh_ = true;
  return supervisor;
}

Result<std::unique_ptr<Supervisor>> Supervisor::recovered(Context& context) {
  const auto saved = TRY(read_file_at(context.state_dir.get(), kMachineFile, 1024 * 1024));
  auto machine = TRY(pod::Machine::restore(TRY(spec_with_images(context)), saved));
  auto shims = TRY(identify_shims(context.keeper));
  std::unique_ptr<Supervisor> supervisor{
      new Supervisor{context, std::move(machine), std::move(shims)}};
  TRY(supervisor->engine_.rejoin());
  supervisor->recall_times();
  for (const auto& view : supervisor->machine_.containers())
    TRY_CTX(supervisor->recover_container(view), cat("recover container '", view.name, "'"));
  return supervisor;
}

void Supervisor::begin() {
  if (fresh_) {
    tell("pod.started", Json::object());
    return feed(pod::Asked{pod::Asked::What::kRun});
  }
  take_exits();
  work_off();  // what was found of each container
  resumed_ = machine_.resume(now());
  work_off();
  if (!machine_.finished() || ended_) return;
  // The worker before us died while it wound up. That its run is over may have been told or not.
  bool told = false;
  read_events(context_.root_dir.get(), [&](const Json& event) {
    const auto type = json_string_or(event, "type", "");
    if (type == "pod.started" || type == "pod.ended") told = type == "pod.ended";
  });
  if (!told) finish(pod::Finish{machine_.exit_code(), machine_.why()});
  ended_ = true;
  work_off();
}

// ---- the machine
// -------------------------------------------------------------------------------------------------

void Supervisor::feed(pod::Event event) {
  events_.push_back(std::move(event));
  work_off();
}

// Events that come up while an action is carried out wait for their turn: the machine sees one at a
// time, and its state is on disk before what follows from it is done.
void Supervisor::work_off() {
  if (working_) return;
  working_ = true;
  while (!events_.empty() || !resumed_.empty()) {
    std::vector<pod::Action> actions;
    if (!resumed_.empty()) {
      actions = std::exchange(resumed_, {});
    } else {
      const pod::Event event = std::move(events_.front());
      events_.pop_front();
      actions = machine_.on(event, now());
    }
    const auto saved = replace_file(context_.state_dir.get(), kMachineFile, machine_.save(), 0600);
    if (!saved.ok()) LOG(kWarning, saved.error().message());
    write_status();
    for (const auto& action : actions) carry_out(action);
  }
  working_ = false;
  write_status();
  answer_starter();
  tell_over_waiters();
}

void Supervisor::carry_out(const pod::Action& action) {
  if (const auto* it = std::get_if<pod::Create>(&action)) return create(*it);
  if (const auto* it = std::get_if<pod::Start>(&action)) return start(*it);
  if (const auto* it = std::get_if<pod::Destroy>(&action)) return destroy(*it);
  if (const auto* it = std::get_if<pod::Arm>(&action)) return arm(*it);
  if (const auto* it = std::get_if<pod::Disarm>(&action)) return disarm(it->name, it->timer);
  if (const auto* it = std::get_if<pod::Finish>(&action)) return finish(*it);
  if (std::holds_alternative<pod::Remove>(action)) {
    removed_ = true;
    return;
  }
  if (const auto* it = std::get_if<pod::Signal>(&action))
    engine_.signal(it->name, it->signum).ignore("it has ended: its exit is on the way");
  if (const auto* it = std::get_if<pod::Kill>(&action))
    engine_.kill(it->name).ignore("it has ended: its exit is on the way");
}

void Supervisor::failed(const std::string& name, const Error& error) {
  auto& notes = notes_[name];
  notes.finished = rfc3339_now();
  const std::string why = cat("container '", name, "': ", error.message());
  tell("container.failed", {{"container", name}, {"error", error_to_json(error)}});
  if (!first_failure_) {
    first_failure_ =
        Error::rebuilt(error.code(), error.sys_errno(), why).step(error.step()).hint(error.hint());
  }
  events_.push_back(pod::Failed{name, why, exit_code_of_failure(error)});
}

void Supervisor::create(const pod::Create& action) {
  auto& notes = notes_[action.name];
  notes.exit.reset();
  notes.started.clear();
  notes.finished.clear();
  auto made = engine_.create(action.name, action.attempt);
  if (!made.ok()) return failed(action.name, std::move(made).error().context("create"));
  auto* live = engine_.find(action.name);
  if (!context_.keeper.alive()) watch_init(*live);
  // `run` in the foreground is attached before the first byte.
  const bool primary =
      !context_.pod.containers.empty() && context_.pod.containers.front().name == action.name;
  if (auto client = primary ? context_.keeper.take(kAttachFd) : std::nullopt) {
    context_.keeper.store(cat("c/", action.name, "/client"), client->get());
    context_.keeper.drop(kAttachFd);
    const auto slow =
        context_.container(action.name)->tty ? ContainerIo::Slow::kDrop : ContainerIo::Slow::kWait;
    const auto attached = live->io->attach(std::move(*client), slow, ContainerIo::From::kKept);
    if (!attached.ok()) LOG(kWarning, "attach: ", attached.error().message());
  }
  tell("container.created",
       {{"container", action.name}, {"attempt", action.attempt}, {"pid", live->init.pid}});
  events_.push_back(pod::Created{action.name});
}

void Supervisor::start(const pod::Start& action) {
  auto started = engine_.start(action.name);
  if (!started.ok()) return failed(action.name, std::move(started).error().context("start"));
  auto& notes = notes_[action.name];
  notes.started = rfc3339_now();
  notes.started_once = true;
  tell("container.started", {{"container", action.name}});
  events_.push_back(pod::Started{action.name});
}

void Supervisor::destroy(const pod::Destroy& action) {
  if (auto* live = engine_.find(action.name); live != nullptr && live->io) {
    if (first_failure_ && !live->exited) live->io->fail(*first_failure_);
    if (live->io->has_clients()) ended_io_.push_back(std::move(live->io));
  }
  tell_unpublished_end(action.name);
  init_watches_.erase(action.name);
  auto gone = engine_.destroy(action.name);
  if (!gone.ok()) return failed(action.name, std::move(gone).error().context("destroy"));
  events_.push_back(pod::Destroyed{action.name});
}

// What was made and is taken away before it was let through the gate ends without an exit of its
// own; in the events it ends all the same. A failure has been told as `container.failed`.
void Supervisor::tell_unpublished_end(const std::string& name) {
  auto* live = engine_.find(name);
  const auto view = machine_.container(name);
  if (live == nullptr || live->exited || !view || view->has_ended) return;
  live->exited = true;
  tell("container.exited", {{"container", name}, {"reason", "it was not started"}});
}

void Supervisor::arm(const pod::Arm& action) {
  disarm(action.name, action.timer);
  timers_[{action.name, action.timer}] =
      context_.loop.after(action.after, [this, name = action.name, timer = action.timer] {
        timers_.erase({name, timer});
        feed(pod::TimerFired{name, timer});
      });
}

void Supervisor::disarm(const std::string& name, pod::Timer timer) {
  const auto found = timers_.find({name, timer});
  if (found == timers_.end()) return;
  context_.loop.cancel(found->second);
  timers_.erase(found);
}

void Supervisor::finish(const pod::Finish& action) {
  Json event = Json::object();
  if (action.exit_code) event["exitCode"] = *action.exit_code;
  if (!action.why.empty()) event["reason"] = action.why;
  tell("pod.ended", std::move(event));
  ended_ = true;
}

void Supervisor::stop(const std::string& container, std::optional<Millis> grace) {
  pod::Asked asked{pod::Asked::What::kStop};
  asked.container = container;
  asked.grace = grace;
  feed(asked);
}

void Supervisor::remove() {
  feed(pod::Asked{pod::Asked::What::kRemove});
}

// ---- exits
// -------------------------------------------------------------------------------------------------------

void Supervisor::on_keeper() {
  const auto alive = context_.keeper.receive();
  if (!alive.ok()) LOG(kError, alive.error().message());
  take_exits();
  if (alive.ok() && alive.value()) return;
  watch_without_keeper();
}

// An exit is acknowledged when it is on disk, or when it is nobody's: only then may the keeper
// forget it.
void Supervisor::take_exits() {
  while (const auto exit = context_.keeper.next_exit()) {
    if (auto* live = engine_.find_by_pid(*exit))
      init_exited(*live, &*exit);
    else
      execs_.exited(*exit);
    context_.keeper.acknowledge(exit->serial);
  }
}

void Supervisor::init_exited(LiveContainer& live, const ChildExit* exit) {
  const auto record = engine_.record_exit(live, exit);
  if (!record.ok()) LOG(kError, "container '", live.name, "': ", record.error().message());
  live.exited = true;
  auto& notes = notes_[live.name];
  notes.exit = record.ok() ? record.value() : ExitRecord{};
  execs_.kill_all_of(live.name);
  publish_when_quiet(live.name);
}

void Supervisor::publish_when_quiet(const std::string& name) {
  auto* live = engine_.find(name);
  // The exits of its execs come first (REL-06); one that cannot be killed is not waited for without
  // end.
  auto quiet = [this, name] {
    execs_.when_quiet(name, kExecEndWait, [this, name] { publish_exit(name); });
  };
  if (live != nullptr && live->io)
    live->io->drain(kDrainWait, quiet);
  else
    quiet();
}

void Supervisor::publish_exit(const std::string& name) {
  auto& notes = notes_[name];
  const auto record = notes.exit.value_or(ExitRecord{});
  const auto since_epoch = std::chrono::duration_cast<std::chrono::system_clock::duration>(
      std::chrono::nanoseconds{record.time_ns});
  notes.finished = rfc3339(std::chrono::system_clock::time_point{since_epoch});
  if (record.oom_killed) tell("container.oom", {{"container", name}});
  Json event{{"container", name}};
  if (record.code) event["exitCode"] = *record.code;
  if (record.signal != 0) event["signal"] = record.signal;
  tell("container.exited", std::move(event));

  if (auto* live = engine_.find(name); live != nullptr && live->io) {
    const bool last_run = context_.pod.restart == pod::Restart::kNever && live->io->has_clients();
    const bool primary =
        !context_.pod.containers.empty() && context_.pod.containers.front().name == name;
    if (last_run &&
        primary) {  // its client hears of it when the pod has been released: then nothing is left
      foreground_io_ = std::move(live->io);
      foreground_exit_ = record.code;
    } else {
      live->io->finish(record.code);
      if (live->io->has_clients()) ended_io_.push_back(std::move(live->io));
    }
  }
  feed(pod::Exited{name, record.code});
}

void Supervisor::release_foreground() {
  if (!foreground_io_) return;
  foreground_io_->finish(foreground_exit_);
  if (foreground_io_->has_clients()) ended_io_.push_back(std::move(foreground_io_));
  foreground_io_.reset();
}

bool Supervisor::has_clients() const {
  return std::any_of(ended_io_.begin(), ended_io_.end(),
                     [](const auto& io) { return io->has_clients(); });
}

bool Supervisor::has_waited_clients() const {
  return std::any_of(ended_io_.begin(), ended_io_.end(),
                     [](const auto& io) { return io->has_waited_clients(); });
}

void Supervisor::on_over(const std::string& container, ToldOver told) {
  over_waiters_.emplace_back(container, std::move(told));
  if (!working_) tell_over_waiters();
}

// After whatever the machine was told: a back-off that is called off, a container whose turn will
// not come and a run that is over end a wait as an exit does.
void Supervisor::tell_over_waiters() {
  for (auto at = over_waiters_.begin(); at != over_waiters_.end();) {
    const auto view = machine_.container(at->first);
    if (view && !view->over) {
      ++at;
      continue;
    }
    const auto told = std::move(at->second);
    at = over_waiters_.erase(at);
    if (view) told(status_of(*view));
  }
}

void Supervisor::on_end(std::function<void()> told) {
  if (ended_) return told();
  end_waiters_.push_back(std::move(told));
}

}  // namespace wherry::shim
