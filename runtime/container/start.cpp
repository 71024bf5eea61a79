// start: opens the gate and reads how it went.
#include <fcntl.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/container/container.h"
#include "runtime/container/record.h"
#include "runtime/init/sync.h"

namespace wherry::container {
namespace {

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

}  // namespace

Result<> start(int record_dir, Deadline deadline) {
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

}  // namespace wherry::container
