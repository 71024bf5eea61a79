// After the death of a worker: each container that was there is exactly one of waiting at the gate,
// alive, gone with a valid exit record, gone with an exit that the keeper has kept, or gone
// without; and the machine is told.
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/worker/pidfd_exit.h"
#include "shim/worker/supervisor.h"

namespace wherry::shim {
void Supervisor::recall_times() {
  const auto text = read_file_at(context_.state_dir.get(), kStatusFile, 1024 * 1024);
  if (!text.ok()) return;
  const auto json = parse_json(text.value(), kStatusFile);
  if (!json.ok()) return;
  const auto status = pod_status_from_json(json.value());
  if (!status.ok()) return;
  for (const auto& container : status.value().containers) {
    auto& notes = notes_[container.name];
    notes.started = container.started;
    notes.finished = container.finished;
    notes.started_once = !container.started.empty();
    if (container.state == "exited")
      notes.exit =
          ExitRecord{container.exit_code, container.signal.value_or(0), container.oom_killed, 0};
  }
}

Result<> Supervisor::recover_container(const pod::ContainerView& view) {
  using What = Engine::Found::What;
  if (view.step == pod::Step::kWaiting || view.step == pod::Step::kExited ||
      view.step == pod::Step::kBackOff)
    return {};
  const auto found = TRY(engine_.adopt(view.name, view.restarts));
  switch (found.what) {
    case What::kNothing:
      return {};
    case What::kAtGate:
      events_.push_back(pod::Created{view.name});
      return {};
    case What::kAlive:
      events_.push_back(pod::Started{view.name});
      return {};
    case What::kGone:
      // Its start was asked for, and a process behind the gate ends only by going through it or by
      // force: a second start would take the true exit for a start that failed.
      if (view.step == pod::Step::kStarting) events_.push_back(pod::Started{view.name});
      break;
  }
  if (found.exit) {
    notes_[view.name].exit = found.exit;
    publish_when_quiet(view.name);
    return {};
  }
  // begin() hands out what the keeper has kept; what is still without an exit after it has none.
  context_.loop.after(Millis{0}, [this, name = view.name] {
    if (auto* live = engine_.find(name); live != nullptr && !live->exited)
      init_exited(*live, nullptr);
  });
  return {};
}

// The keeper is gone and somebody else reaps our containers: the pidfds still tell that they have
// ended, and on Linux 6.15 and later how.
void Supervisor::watch_without_keeper() {
  LOG(kError, "the keeper is gone; exits may stay unknown from here on");
  keeper_gone_ = true;
  write_status();
  for (const auto& [name, live] : engine_.all())
    if (!live.exited && live.pidfd) watch_init(live);
  execs_.watch_without_keeper();
}

void Supervisor::watch_init(const LiveContainer& live) {
  init_watches_[live.name] =
      ExitWatch::start(context_.loop, live.pidfd.get(), [this, name = live.name](auto status) {
        const auto watch = init_watches_.extract(name);  // held until we return
        auto* ended = engine_.find(name);
        if (ended == nullptr || ended->exited) return;
        ChildExit exit;
        exit.pid = ended->init.pid;
        exit.wait_status = status.value_or(0);
        exit.time_ns =
            std::chrono::nanoseconds{std::chrono::system_clock::now().time_since_epoch()}.count();
        init_exited(*ended, status ? &exit : nullptr);
      });
}

}  // namespace wherry::shim
