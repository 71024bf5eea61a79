// What is done to a container that exists: state, kill, destroy. Truth comes from the kernel, the
// record says where to look.
#include <fcntl.h>
#include <signal.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include "cgroups/cgroups.h"
#include "runtime/container/container.h"
#include "runtime/container/hooks.h"
#include "runtime/container/launch.h"
#include "runtime/container/record.h"

namespace wherry::container {
namespace {

// Behind the gate: somebody still has its FIFO open for reading.
bool waits_at_gate(int record_dir) {
  return sys::openat(record_dir, kGateFile, O_WRONLY | O_NONBLOCK | O_NOFOLLOW).ok();
}

Result<> kill_all(const Record& record, int signum) {
  const auto place = TRY(own_place(record));
  if (!place) return Error::make(Code::kState, "it is not running");
  if (signum == SIGKILL) return place->kill();
  for (const pid_t pid : TRY(place->processes())) {
    const auto pidfd = sys::pidfd_open(pid);
    if (pidfd.ok())
      sys::pidfd_send_signal(pidfd.value().get(), signum).ignore("it may end meanwhile");
  }
  return {};
}

// An init that shares no cgroup we know of (killed between clone and placement) still has its
// identity.
void kill_init(const ProcessIdentity& init) {
  const auto pidfd = open_pidfd(init);
  if (!pidfd.ok()) return;
  sys::pidfd_send_signal(pidfd.value().get(), SIGKILL).ignore("it may end meanwhile");
}

Result<> wait_gone(const ProcessIdentity& init, Deadline deadline) {
  const auto pidfd = open_pidfd(init);
  if (!pidfd.ok()) return {};
  if (TRY(sys::poll_one(pidfd.value().get(), POLLIN, deadline)) != 0) return {};
  const auto state = process_state(init.pid);
  return Error::make(Code::kTimeout,
                     cat("process ", init.pid, " does not end",
                         state.ok() && state.value() == 'D' ? " (in uninterruptible sleep)" : ""));
}

}  // namespace

Result<oci::State> state(int record_dir) {
  const auto record = TRY(load_record(record_dir));
  oci::State state;
  state.oci_version = record.oci_version;
  state.id = record.id;
  state.bundle = record.bundle;
  state.annotations = record.annotations;
  if (record.init.pid == 0) {
    state.status = oci::Status::kCreating;
    return state;
  }
  if (!open_pidfd(record.init).ok()) return state;  // stopped
  state.pid = record.init.pid;
  state.status = waits_at_gate(record_dir) ? oci::Status::kCreated : oci::Status::kRunning;
  if (state.status != oci::Status::kRunning) return state;
  const auto place = TRY(own_place(record));
  const bool frozen = place ? TRY(place->frozen()) : false;
  if (frozen) state.status = oci::Status::kPaused;
  return state;
}

Result<> kill(int record_dir, int signum, Reach reach) {
  const auto record = TRY(load_record(record_dir));
  if (reach == Reach::kAll) return kill_all(record, signum);
  const auto pidfd = open_pidfd(record.init);
  if (!pidfd.ok()) return Error::make(Code::kState, "it is not running");
  auto sent = sys::pidfd_send_signal(pidfd.value().get(), signum);
  if (!sent.ok() && sent.error().sys_errno() == ESRCH)
    return Error::make(Code::kState, "it is not running");
  return sent;
}

Result<> destroy(int record_dir, const std::string& fallback_cgroup, Deadline deadline) {
  auto record = load_record(record_dir);
  if (record.ok()) kill_init(record->init);
  const auto end_all = [&](const cgroups::Place& place) -> Result<> {
    TRY(place.kill());
    TRY(place.wait_empty(deadline));
    FAULT_POINT("destroy.killed");
    return {};
  };
  if (record.ok()) {
    const auto hierarchies = TRY(cgroups::discover());
    if (const auto place = TRY(own_place(*record, hierarchies))) {
      TRY(end_all(*place));
      TRY(place->remove(deadline));
    } else {
      TRY(cgroups::Place::remove(hierarchies, record->cgroup, record->directories, deadline));
    }
    TRY(wait_gone(record->init, deadline));
  } else if (!fallback_cgroup.empty()) {
    auto place = cgroups::Place::open(TRY(cgroups::discover()), fallback_cgroup);
    if (!place.ok() && place.error().code() != Code::kNotFound) return std::move(place).error();
    if (place.ok()) {
      TRY(end_all(*place));
      TRY(place->remove(deadline));
    }
  }
  FAULT_POINT("destroy.removed");
  // config.md, lifecycle: after the container is gone and before delete returns. Run again when we
  // are killed in between: at least once is the better promise for a clean-up.
  if (record.ok()) run_poststop(record_dir, record.value(), deadline);
  remove_files(record_dir);
  return {};
}

}  // namespace wherry::container
