#include "runtime/pod/machine.h"

#include <algorithm>

#include "base/text.h"

namespace wherry::pod {
namespace {

constexpr Millis kDestroyAgainFirst{1000};
constexpr unsigned kDestroyAgainMaxShift = 6;  // 64 s

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace

Machine::Machine(PodSpec spec) : spec_{std::move(spec)}, items_(spec_.containers.size()) {}

std::vector<Action> Machine::on(const Event& event, Millis boot_time) {
  if (removed_) return {};
  now_ = boot_time;
  out_.clear();
  const auto with = [this](const std::string& name, auto&& handle) {
    if (const auto index = find(name); index && begun_ && !finished()) handle(*index);
  };
  std::visit(Overloaded{
                 [&](const Asked& e) { asked(e); },
                 [&](const Created& e) { with(e.name, [&](auto i) { created(i); }); },
                 [&](const Started& e) { with(e.name, [&](auto i) { started(i); }); },
                 [&](const Exited& e) { with(e.name, [&](auto i) { exited(i, e.status); }); },
                 [&](const Failed& e) { with(e.name, [&](auto i) { failed(i, e); }); },
                 [&](const Destroyed& e) { with(e.name, [&](auto i) { destroyed(i); }); },
                 [&](const TimerFired& e) { fired(e); },
             },
             event);
  advance();
  return std::exchange(out_, {});
}

void Machine::asked(const Asked& event) {
  switch (event.what) {
    case Asked::What::kRun:
      if (!begun_ || finished()) run();
      return;
    case Asked::What::kStop: {
      if (!begun_ || finished()) return;
      const auto grace = std::max(event.grace.value_or(spec_.grace), Millis{0});
      if (event.container.empty()) return begin_stopping(grace);
      if (const auto index = find(event.container)) stop_container(*index, grace);
      return;
    }
    case Asked::What::kRemove:
      remove_asked_ = true;
      if (begun_ && !finished()) return begin_stopping(Millis{0});
      removed_ = true;
      out_.push_back(Remove{});
      return;
  }
}

void Machine::run() {
  items_.assign(spec_.containers.size(), Item{});
  phase_ = Phase::kPending;
  begun_ = true;
  failure_code_.reset();
  why_.clear();
  grace_ends_.reset();
}

void Machine::stop_container(std::size_t index, Millis grace) {
  auto& item = items_[index];
  ask_to_stop(index);
  if (item.step == Step::kBackOff) return settle(index);
  if (!living(index) || item.step == Step::kEnding) return;
  if (item.kill_at && *item.kill_at <= now_ + grace) return;
  item.kill_at = now_ + grace;
  if (grace == Millis{0}) return kill(index);
  arm(index, Timer::kGrace, *item.kill_at);
}

// ---- what containers report
// ------------------------------------------------------------------------------------

void Machine::created(std::size_t index) {
  auto& item = items_[index];
  if (item.step != Step::kCreating) return;
  if (item.stop_asked || phase_ == Phase::kStopping) {  // nothing has run in it: nobody to ask
    item.stopped_by_request = true;
    return end(index);
  }
  item.step = Step::kStarting;
  out_.push_back(Start{spec_.containers[index].name});
}

void Machine::started(std::size_t index) {
  auto& item = items_[index];
  if (item.step != Step::kCreating && item.step != Step::kStarting) return;
  item.step = Step::kRunning;
  item.started_once = true;
  item.started_at = now_;
  if (!item.stop_asked) return;
  if (grace_over(index)) return kill(index);
  ask_to_stop(index);
}

void Machine::exited(std::size_t index, std::optional<int> status) {
  auto& item = items_[index];
  if (item.step == Step::kCreating) {  // whoever made it died half-way, and so did it: once more
    item.again = !item.stop_asked;
    return end(index);
  }
  if (item.step != Step::kStarting && item.step != Step::kRunning) return;
  item.started_once = true;
  item.has_ended = true;
  item.exit_code = status;
  item.stopped_by_request = item.stop_asked;
  if (item.step == Step::kRunning && now_ - *item.started_at >= spec_.backoff_reset)
    item.backoff.reset();
  end(index);
}

void Machine::failed(std::size_t index, const Failed& event) {
  auto& item = items_[index];
  if (item.step == Step::kEnding) {
    item.message = event.why;
    item.due =
        now_ + kDestroyAgainFirst * (1U << std::min(item.destroy_failures, kDestroyAgainMaxShift));
    ++item.destroy_failures;
    return arm(index, Timer::kDestroyAgain, *item.due);
  }
  if (item.step != Step::kCreating && item.step != Step::kStarting) return;
  item.has_ended = item.start_failed = true;
  item.exit_code = event.exit_code;
  item.message = event.why;
  item.stopped_by_request = item.stop_asked;
  end(index);
  // The first start of a container is the caller's, who is waiting for its error: what runs already
  // is taken back.
  if (!item.started_once && !item.stop_asked && phase_ != Phase::kStopping)
    fail_pod(event.why, event.exit_code, Millis{0});
}

void Machine::destroyed(std::size_t index) {
  auto& item = items_[index];
  if (item.step != Step::kEnding) return;
  if (item.destroy_failures > 0) {
    out_.push_back(Disarm{spec_.containers[index].name, Timer::kDestroyAgain});
    item.destroy_failures = 0;
    if (!item.start_failed) item.message.clear();
  }
  item.due.reset();
  if (std::exchange(item.again, false) && !item.stop_asked && phase_ != Phase::kStopping)
    return create(index);
  if (wants_restart(index)) return back_off(index);
  settle(index);
}

void Machine::fired(const TimerFired& event) {
  if (!begun_ || finished()) return;
  if (event.name.empty()) return fired_pod_grace();
  const auto index = find(event.name);
  if (!index) return;
  auto& item = items_[*index];
  const auto& at = event.timer == Timer::kGrace ? item.kill_at : item.due;
  const Step wanted = event.timer == Timer::kBackOff ? Step::kBackOff : Step::kEnding;
  if (!at || (event.timer != Timer::kGrace && item.step != wanted)) return;
  if (now_ < *at) return arm(*index, event.timer, *at);
  switch (event.timer) {
    case Timer::kGrace:
      return kill(*index);
    case Timer::kBackOff:
      return restart(*index);
    case Timer::kDestroyAgain:
      item.due.reset();
      out_.push_back(Destroy{event.name});
      return;
  }
}

void Machine::fired_pod_grace() {
  if (!grace_ends_) return;
  if (now_ < *grace_ends_) {
    out_.push_back(Arm{{}, Timer::kGrace, *grace_ends_ - now_});
    return;
  }
  for (std::size_t i = 0; i < items_.size(); ++i) kill(i);
}

// ---- steps of one container
// ------------------------------------------------------------------------------------

void Machine::create(std::size_t index) {
  auto& item = items_[index];
  item.step = Step::kCreating;
  item.signalled = item.killed = item.start_failed = item.stopped_by_request = false;
  item.due.reset();
  item.message.clear();
  out_.push_back(Create{spec_.containers[index].name, item.restarts});
}

void Machine::restart(std::size_t index) {
  ++items_[index].restarts;
  create(index);
}

// Whatever ended it: what is left is cleared away at once, so that nothing of it goes on beside its
// successor.
void Machine::end(std::size_t index) {
  auto& item = items_[index];
  const auto& name = spec_.containers[index].name;
  item.step = Step::kEnding;
  item.ended_at = now_;
  if (item.kill_at) out_.push_back(Disarm{name, Timer::kGrace});
  item.kill_at.reset();
  out_.push_back(Destroy{name});
}

void Machine::settle(std::size_t index) {
  auto& item = items_[index];
  if (item.step == Step::kBackOff)
    out_.push_back(Disarm{spec_.containers[index].name, Timer::kBackOff});
  item.step = Step::kExited;
  item.due.reset();
}

void Machine::ask_to_stop(std::size_t index) {
  auto& item = items_[index];
  item.stop_asked = true;
  if (item.step != Step::kRunning || item.signalled || item.killed) return;
  item.signalled = true;
  out_.push_back(Signal{spec_.containers[index].name, spec_.containers[index].stop_signal});
}

void Machine::kill(std::size_t index) {
  auto& item = items_[index];
  item.stop_asked = true;
  if ((item.step != Step::kStarting && item.step != Step::kRunning) || item.killed) return;
  item.killed = true;
  out_.push_back(Kill{spec_.containers[index].name});
}

void Machine::back_off(std::size_t index) {
  auto& item = items_[index];
  const auto wait = item.backoff;
  item.backoff = wait ? std::min(*wait * 2, spec_.backoff_max) : spec_.backoff_first;
  if (!wait) return restart(index);
  item.step = Step::kBackOff;
  item.due = now_ + *wait;
  arm(index, Timer::kBackOff, *item.due);
}

void Machine::arm(std::size_t index, Timer timer, Millis at) {
  out_.push_back(Arm{spec_.containers[index].name, timer, std::max(at - now_, Millis{0})});
}

bool Machine::wants_restart(std::size_t index) const {
  const auto& item = items_[index];
  if (item.stop_asked || phase_ == Phase::kStopping) return false;
  const bool well = item.has_ended && item.exit_code == 0;
  switch (spec_.containers[index].restart) {
    case Restart::kNever:
      return false;
    case Restart::kOnFailure:
      return !well;
    case Restart::kAlways:
      return !well || spec_.containers[index].kind != ContainerSpec::Kind::kInit;
  }
  return false;
}

bool Machine::grace_over(std::size_t index) const {
  const auto over = [this](const std::optional<Millis>& at) { return at && *at <= now_; };
  return over(grace_ends_) || over(items_[index].kill_at);
}

bool Machine::over(std::size_t index) const {
  const auto& item = items_[index];
  if (finished()) return true;
  switch (item.step) {
    case Step::kWaiting:
      return item.stop_asked || phase_ == Phase::kStopping;
    case Step::kEnding:
      return !item.again && !wants_restart(index);
    case Step::kExited:
      return true;
    case Step::kCreating:
    case Step::kStarting:
    case Step::kRunning:
    case Step::kBackOff:
      return false;
  }
  return false;
}

// ---- the pod
// ---------------------------------------------------------------------------------------------------

void Machine::fail_pod(std::string why, std::optional<int> code, Millis grace) {
  why_ = std::move(why);
  failure_code_ = code;
  begin_stopping(grace);
}

void Machine::begin_stopping(Millis grace) {
  phase_ = Phase::kStopping;
  bool any = false;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].step == Step::kBackOff) settle(i);
    items_[i].again = false;
    any |= living(i);
    // Sidecars serve the others until the last of them is gone: advance_stop() asks them.
    if (spec_.containers[i].kind != ContainerSpec::Kind::kSidecar && living(i)) ask_to_stop(i);
  }
  if (!any || (grace_ends_ && *grace_ends_ <= now_ + grace)) return;
  grace_ends_ = now_ + grace;
  if (grace == Millis{0}) return fired_pod_grace();
  out_.push_back(Arm{{}, Timer::kGrace, grace});
}

void Machine::advance() {
  if (!begun_ || finished()) return;
  if (phase_ != Phase::kStopping && advance_start()) begin_stopping(spec_.grace);
  if (phase_ == Phase::kStopping) advance_stop();
}

// Starts what is next in turn. True: every main container has ended for good.
bool Machine::advance_start() {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (!start_next(i)) return false;
  }
  phase_ = Phase::kRunning;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (spec_.containers[i].kind == ContainerSpec::Kind::kMain && items_[i].step != Step::kExited)
      return false;
  }
  return true;
}

// Whether the turn of the one behind it has come.
bool Machine::start_next(std::size_t index) {
  auto& item = items_[index];
  const bool init = spec_.containers[index].kind == ContainerSpec::Kind::kInit;
  if (item.step == Step::kWaiting) {
    if (!item.stop_asked) {
      create(index);
      return false;
    }
    item.step = Step::kExited;
    item.stopped_by_request = true;
  }
  if (!init) return item.started_once || item.step == Step::kExited;
  if (item.step != Step::kExited) return false;
  if (item.has_ended && item.exit_code == 0) return true;
  init_ended(index);
  return false;
}

void Machine::init_ended(std::size_t index) {
  const auto& item = items_[index];
  std::string how = "ended with an unknown status";
  if (item.stopped_by_request)
    how = "was stopped";
  else if (item.start_failed)
    how = item.message;
  else if (item.exit_code)
    how = cat("ended with status ", *item.exit_code);
  fail_pod(cat("init container '", spec_.containers[index].name, "' ", how),
           item.has_ended ? item.exit_code : std::nullopt, spec_.grace);
}

void Machine::advance_stop() {
  const auto sidecar = [this](std::size_t i) {
    return spec_.containers[i].kind == ContainerSpec::Kind::kSidecar;
  };
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (!sidecar(i) && living(i)) return;
  }
  for (std::size_t i = items_.size(); i-- > 0;) {
    if (!living(i)) continue;
    ask_to_stop(i);
    return;
  }
  finish();
}

void Machine::finish() {
  bool well = why_.empty();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const auto& item = items_[i];
    if (spec_.containers[i].kind != ContainerSpec::Kind::kMain) continue;
    // One that never ran has not succeeded either.
    if (!item.has_ended || item.exit_code != 0) well = false;
  }
  phase_ = well ? Phase::kSucceeded : Phase::kFailed;
  if (grace_ends_) out_.push_back(Disarm{{}, Timer::kGrace});
  grace_ends_.reset();
  out_.push_back(Finish{exit_code(), why_});
  if (!remove_asked_ && !spec_.remove_when_done) return;
  removed_ = true;
  out_.push_back(Remove{});
}

std::vector<Action> Machine::resume(Millis boot_time) {
  now_ = boot_time;
  out_.clear();
  if (removed_) return {Remove{}};
  if (!begun_ || finished()) return {};
  if (grace_ends_) out_.push_back(Arm{{}, Timer::kGrace, std::max(*grace_ends_ - now_, Millis{0})});
  for (std::size_t i = 0; i < items_.size(); ++i) {
    auto& item = items_[i];
    const auto& name = spec_.containers[i].name;
    if (item.step == Step::kCreating) {
      item.again = !item.stop_asked && phase_ != Phase::kStopping;
      end(i);
    } else if (item.step == Step::kStarting && item.stop_asked) {
      item.stopped_by_request = true;
      end(i);
    } else if (item.step == Step::kStarting) {
      out_.push_back(Start{name});
    } else if (item.step == Step::kRunning && item.killed) {
      // A stop signal is not sent twice: programs take a second one for impatience. The grace
      // period ends anyhow.
      out_.push_back(Kill{name});
    } else if (item.step == Step::kEnding) {
      item.due.reset();
      out_.push_back(Destroy{name});
    } else if (item.step == Step::kBackOff) {
      arm(i, Timer::kBackOff, item.due.value_or(now_));
    }
    if (item.kill_at && !item.killed) arm(i, Timer::kGrace, *item.kill_at);
  }
  advance();
  return std::exchange(out_, {});
}

std::optional<std::size_t> Machine::find(std::string_view name) const {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (spec_.containers[i].name == name) return i;
  }
  return std::nullopt;
}

// Whether something of it exists or may exist.
bool Machine::living(std::size_t index) const {
  const auto step = items_[index].step;
  return step != Step::kWaiting && step != Step::kBackOff && step != Step::kExited;
}

}  // namespace wherry::pod
