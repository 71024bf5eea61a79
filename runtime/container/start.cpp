// start: opens the gate and reads how it went.
#include <fcntl.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/container/container.h"
#include "runtime/container/hooks.h"
#include "runtime/container/record.h"
#include "runtime/init/hooks.h"
#include "runtime/init/sync.h"

namespace wherry::container {
namespace {

constexpr auto kUndoTime = Millis{10000};

Result<UniqueFd> open_gate(int record_dir) {
  auto gate = sys::openat(record_dir, kGateFile, O_WRONLY | O_NONBLOCK | O_NOFOLLOW);
  if (gate.ok()) return gate;
  if (gate.error().sys_errno() == ENXIO)
    return Error::make(Code::kState, "its init has ended before it was started");
  if (gate.error().sys_errno() == ENOENT)
    return Error::make(Code::kState, "it has been started already");
  return gate;
}

// To the end of the FIFO, which comes when init has become the payload or is dead.
Result<std::string> read_result(int fd, Deadline deadline) {
  std::string text;
  std::array<char, 4096> chunk;
  while (text.size() < init::kMostText * 2) {
    if (TRY(sys::poll_one(fd, POLLIN, deadline)) == 0)
      return Error::make(Code::kTimeout, "its init did not go through the gate in time");
    const auto got = TRY(sys::read(fd, chunk, kResultFile));
    if (got == 0) break;
    text.append(chunk.data(), got);
  }
  return text;
}

// Through the gate and to execve.
Result<> pass_gate(int record_dir, Deadline deadline) {
  const auto gate = TRY(open_gate(record_dir));
  // Opened before the byte is written: init's end of it must not close before there is a reader.
  const auto result = TRY(sys::openat(record_dir, kResultFile, O_RDONLY | O_NONBLOCK | O_NOFOLLOW));
  FAULT_POINT("start.gate");
  TRY(sys::write_all(gate.get(), "s", kGateFile));
  const auto text = TRY(read_result(result.get(), deadline));
  FAULT_POINT("start.passed");
  for (const auto* name : {kGateFile, kResultFile})
    sys::unlinkat(record_dir, name, 0).ignore("state() asks the pipe, not the name");
  if (text.empty()) return Error::make(Code::kState, "its init died at the gate");
  if (text.size() == 1) return {};
  const auto failed = TRY(init::decode(std::string_view{text}.substr(1)));
  return init::to_error(failed);
}

Result<> run_poststart(int record_dir, const oci::Hooks& hooks, Deadline deadline) {
  if (hooks.poststart.empty()) return {};
  const auto record = TRY(load_record(record_dir));
  return init::run_hooks("poststart", hooks.poststart,
                         state_for_hooks(record, oci::Status::kRunning, record.init.pid),
                         record.bundle, deadline);
}

}  // namespace

Result<> start(int record_dir, Deadline deadline) {
  const auto hooks = TRY(load_hooks(record_dir));
  auto started = pass_gate(record_dir, deadline.plus(init::time_of(hooks.start_container)));
  if (hooks.empty()) return started;
  const bool hook_failed = !started.ok() && started.error().step() == "hooks";
  if (!started.ok() && !hook_failed) return started;
  if (started.ok()) started = run_poststart(record_dir, hooks, deadline);
  // config.md, lifecycle, steps 7 and 9: "generate an error, stop the container, and continue the
  // lifecycle at step 12".
  if (!started.ok())
    if (auto gone = destroy(record_dir, "", Deadline::in(kUndoTime)); !gone.ok())
      LOG(kWarning, "destroy after a hook that failed: ", gone.error().message());
  return started;
}

}  // namespace wherry::container
