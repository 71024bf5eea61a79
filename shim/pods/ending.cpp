#include "shim/pods/ending.h"

#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "cgroups/cgroups.h"
#include "runtime/container/container.h"
#include "shim/protocol/boot_plan.h"
#include "shim/protocol/event_log.h"
#include "shim/protocol/exit_record.h"
#include "shim/protocol/removal.h"

namespace wherry::shim {
namespace {

Result<UniqueFd> open_state(const Places& places, const std::string& id) {
  return sys::openat(AT_FDCWD, pod_path(places.state, id), O_RDONLY | O_DIRECTORY);
}

Result<Shims> shims_in(int state) {
  const auto json =
      TRY(parse_json(TRY(read_file_at(state, kStatusFile, 1024 * 1024)), kStatusFile));
  const auto found = json.find("shims");
  return found == json.end() ? Shims{} : shims_from_json(*found);
}

// What the pod's own events have open, when nobody is left who knows more: containers that were
// made and have not ended, and the run.
void tell_ends(const Places& places, const std::string& id, const std::string& ns,
               const std::string& name) {
  const auto own = sys::openat(AT_FDCWD, pod_path(places.root, id), O_RDONLY | O_DIRECTORY);
  const auto host = sys::openat(AT_FDCWD, places.root, O_RDONLY | O_DIRECTORY);
  if (!own.ok() || !host.ok()) return;
  std::vector<std::string> open;
  bool runs = false;
  read_events(own.value().get(), [&](const Json& event) {
    const auto type = json_string_or(event, "type", "");
    const auto container = json_string_or(event, "container", "");
    if (type == "pod.started") runs = true;
    if (type == "pod.ended") runs = false;
    if (type == "container.created") open.push_back(container);
    if (type == "container.exited" || type == "container.failed") std::erase(open, container);
  });
  const auto tell = [&](const char* type, const std::string& container) {
    Json line{{"type", type},
              {"pod", id},
              {"name", name},
              {"namespace", ns},
              {"reason", "it was ended from outside: its shim could not tell how"}};
    if (!container.empty()) line["container"] = container;
    const auto told = append_event(own.value().get(), line);
    if (told.ok()) line["podSeq"] = told.value();
    append_event(host.value().get(), line).ignore("it has ended all the same");
  };
  for (const auto& container : open) tell("container.exited", container);
  if (runs) tell("pod.ended", "");
}

// The keeper's death is seen at once by its pidfd; the lock then says whether that was all.
void await_process(const ProcessIdentity& who, Deadline deadline) {
  const auto pidfd = open_pidfd(who);
  if (pidfd.ok()) sys::poll_one(pidfd.value().get(), POLLIN, deadline).ignore("the lock decides");
}

}  // namespace

Result<> await_release(const Places& places, const std::string& id, Deadline deadline) {
  const auto state = open_state(places, id);
  if (!state.ok()) return {};  // nothing is there to be kept
  if (!TRY(is_locked_at(state.value().get(), kLockFile))) return {};
  const auto shims = shims_in(state.value().get());
  if (shims.ok()) {
    await_process(shims.value().worker, deadline);
    await_process(shims.value().keeper, deadline);
  }
  const auto lock = lock_file_at(state.value().get(), kLockFile, LockKind::kExclusive, deadline);
  if (lock.ok() || lock.error().code() == Code::kNotFound) return {};
  return Error::make(Code::kTimeout,
                     cat("the shim of pod ", id.substr(0, 12), " does not end: keeper ",
                         shims.ok() ? shims.value().keeper.pid : 0, ", worker ",
                         shims.ok() ? shims.value().worker.pid : 0));
}

Result<> kill_everything(const Places& places, const std::string& id, Deadline deadline) {
  const auto hierarchies = TRY(cgroups::discover());
  const auto place = cgroups::Place::open(hierarchies, pod_cgroup(places, id));
  if (place.ok()) {
    TRY(place.value().kill());
    TRY(place.value().wait_empty(deadline));
  }
  // A shim that has left the cgroup is in its last steps; one that hangs there is named by its
  // identity.
  if (const auto state = open_state(places, id); state.ok()) {
    if (const auto shims = shims_in(state.value().get()); shims.ok())
      for (const auto& who : {shims.value().keeper, shims.value().worker})
        if (const auto pidfd = open_pidfd(who); pidfd.ok())
          sys::pidfd_send_signal(pidfd.value().get(), SIGKILL).ignore("it has ended by itself");
  }
  return await_release(places, id, deadline);
}

Result<> destroy_remains(const Places& places, const std::string& id, Deadline deadline) {
  const auto state = open_state(places, id);
  if (state.ok()) {
    const auto lock =
        TRY(lock_file_at(state.value().get(), kLockFile, LockKind::kExclusive, deadline));
    const auto containers = open_dir_at(state.value().get(), kContainersDir);
    if (containers.ok()) {
      for (const auto& name : TRY(list_dir(containers.value().get()))) {
        const auto record = TRY(open_dir_at(containers.value().get(), name));
        TRY_CTX(container::destroy(record.get(), cat(pod_cgroup(places, id), "/", name), deadline),
                cat("destroy container '", name, "'"));
      }
    }
  }
  const auto hierarchies = TRY(cgroups::discover());
  const auto place = cgroups::Place::open(hierarchies, pod_cgroup(places, id));
  if (!place.ok()) return {};
  TRY(place.value().kill());
  TRY(place.value().wait_empty(deadline));
  return place.value().remove(deadline);
}

Result<std::vector<std::string>> still_running(const Places& places, const std::string& id) {
  std::vector<std::string> out;
  const auto state = open_state(places, id);
  if (!state.ok()) return out;
  const auto containers = open_dir_at(state.value().get(), kContainersDir);
  if (!containers.ok()) return out;
  for (const auto& name : TRY(list_dir(containers.value().get()))) {
    const auto dir = open_dir_at(containers.value().get(), name);
    if (!dir.ok()) continue;
    const auto record = container::load_record(dir.value().get());
    if (record.ok() && open_pidfd(record.value().init).ok())
      out.push_back(cat("'", name, "' (pid ", record.value().init.pid, ")"));
  }
  return out;
}

Result<> mark_ended(const Places& places, const PodView& view) {
  PodStatus status = view.status;
  tell_ends(places, status.id, status.ns, status.name);
  if (status.phase == "Succeeded" || status.phase == "Failed") return {};
  status.phase = "Failed";
  status.reason = "its shim was gone when it was stopped";
  for (auto& container : status.containers) {
    if (container.state == "exited") continue;
    container.state = "exited";
    container.reason = "Unknown";
    container.finished = rfc3339_now();
  }
  const auto text = dump_json(to_json(status));
  if (const auto state = open_state(places, status.id); state.ok())
    TRY(replace_file(state.value().get(), kStatusFile, text, 0600));
  const auto root =
      TRY(sys::openat(AT_FDCWD, pod_path(places.root, status.id), O_RDONLY | O_DIRECTORY));
  return replace_file(root.get(), kStatusFile, text, 0600);
}

Result<> take_away(const Places& places, const pod::Pod& pod, Deadline deadline) {
  TRY(kill_everything(places, pod.id, deadline));
  TRY(destroy_remains(places, pod.id, deadline));
  tell_ends(places, pod.id, pod.ns, pod.name);
  return remove_pod_files(places.root, places.state, pod.id, pod.ns, pod.name);
}

}  // namespace wherry::shim
