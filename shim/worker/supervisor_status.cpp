// What the worker writes down and tells of its pod.
#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/protocol/event_log.h"
#include "shim/worker/supervisor.h"

namespace wherry::shim {
namespace {
constexpr char kBackOff[] = "CrashLoopBackOff";  // as the machine calls it of a container
}

std::string Supervisor::sandbox() const {
  return ended_ || keeper_gone_ ? "NOTREADY" : "READY";
}

ContainerStatus Supervisor::status_of(const pod::ContainerView& view) const {
  ContainerStatus status;
  status.name = view.name;
  status.state = view.state();
  status.reason = view.reason;
  status.message = view.message;
  status.init = view.kind != pod::ContainerSpec::Kind::kMain;
  status.ready = view.step == pod::Step::kRunning;
  status.restarts = view.restarts;
  status.log_path = engine_.log_path(view.name, view.restarts);
  if (const auto* wanted = context_.container(view.name)) status.image = wanted->image;
  if (const auto image = context_.plan.images.find(view.name); image != context_.plan.images.end())
    status.image_digest = image->second.digest;
  const auto live = engine_.all().find(view.name);
  if (live != engine_.all().end() && !live->second.exited) status.pid = live->second.init.pid;
  if (view.has_ended) status.exit_code = view.exit_code;
  if (const auto found = notes_.find(view.name); found != notes_.end()) {
    const auto& notes = found->second;
    status.started = notes.started;
    status.finished = notes.finished;
    if (notes.exit) {
      status.oom_killed = notes.exit->oom_killed;
      if (notes.exit->signal != 0) status.signal = notes.exit->signal;
      if (status.oom_killed && status.state == "exited") status.reason = "OOMKilled";
    }
  }
  return status;
}

PodStatus Supervisor::status() const {
  const auto& pod = context_.pod;
  PodStatus status;
  status.id = pod.id;
  status.name = pod.name;
  status.ns = pod.ns;
  status.uid = pod.uid;
  status.created = pod.created;
  status.phase = pod::to_string(machine_.phase());
  status.sandbox = sandbox();
  status.reason = machine_.why();
  status.keeper_pid = ended_ || keeper_gone_ ? 0 : shims_.keeper.pid;
  status.shim_pid = ended_ ? 0 : shims_.worker.pid;
  status.ready = machine_.ready() && !keeper_gone_;
  if (keeper_gone_ && !ended_) status.reason = "its keeper is gone";
  if (machine_.finished()) status.exit_code = machine_.exit_code();
  for (const auto& view : machine_.containers()) {
    status.containers.push_back(status_of(view));
    status.oom_killed |= status.containers.back().oom_killed;
  }
  if (status.reason.empty() && std::any_of(status.containers.begin(), status.containers.end(),
                                           [](const auto& one) { return one.reason == kBackOff; }))
    status.reason = kBackOff;
  status.labels = pod.labels;
  status.annotations = pod.annotations;
  return status;
}

void Supervisor::write_status() {
  Json json = to_json(status());
  json["shims"] = to_json(shims_);
  auto text = dump_json(json);
  if (text == written_status_) return;
  const auto written = replace_file(context_.state_dir.get(), kStatusFile, text, 0600);
  if (!written.ok()) LOG(kWarning, written.error().message());
  // An ended pod is still told of after a reboot has emptied the state directory.
  if (ended_ && !context_.pod.remove_when_done)
    replace_file(context_.root_dir.get(), kStatusFile, text, 0600)
        .ignore("the one in the state directory is the first to be read");
  written_status_ = std::move(text);
}

void Supervisor::tell(const std::string& type, Json event) {
  Json line{{"type", type},
            {"pod", context_.pod.id},
            {"name", context_.pod.name},
            {"namespace", context_.pod.ns}};
  line.update(event);
  const auto own = append_event(context_.root_dir.get(), line);
  if (own.ok()) line["podSeq"] = own.value();
  const auto host = sys::openat(AT_FDCWD, context_.plan.root, O_RDONLY | O_DIRECTORY);
  const auto told =
      host.ok() ? append_event(host.value().get(), line) : Result<std::uint64_t>{std::uint64_t{0}};
  if (!host.ok() || !told.ok()) LOG(kWarning, "events: the host's log cannot be written");
}

// The starter waits for one line: {} or the error of the first container that could not be started.
void Supervisor::answer_starter() {
  if (answered_ || !context_.keeper.has(kReadyFd)) return;
  bool all_started = true;
  for (const auto& container : context_.pod.containers) {
    const auto notes = notes_.find(container.name);
    all_started &= notes != notes_.end() && notes->second.started_once;
  }
  if (!all_started && !ended_) return;
  if (ended_ && first_failure_) return;  // answered when everything is taken back
  answered_ = true;
  const auto ready = context_.keeper.take(kReadyFd);
  const Json answer{{"status", to_json(status())}, {"shims", to_json(shims_)}};
  sys::write_all(ready->get(), dump_json(answer) + "\n", "ready")
      .ignore("a starter that has gone away started a pod all the same");
  context_.keeper.drop(kReadyFd);
}

void Supervisor::answer_failure() {
  if (!failed_to_start()) return;
  answered_ = true;
  const auto ready = context_.keeper.take(kReadyFd);
  if (!ready) return;
  sys::write_all(ready->get(), dump_json({{"error", error_to_json(*first_failure_)}}) + "\n",
                 "ready")
      .ignore("a starter that has gone away sees nothing of it in the store either");
  context_.keeper.drop(kReadyFd);
}

void Supervisor::tell_end_waiters() {
  auto waiters = std::move(end_waiters_);
  end_waiters_.clear();
  for (const auto& told : waiters) told();
}

}  // namespace wherry::shim
