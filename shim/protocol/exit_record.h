// exit.rec: how a container's init ended. The file is made with its one block when the container
// is, and written once, in place, so that a full disk cannot take an exit away. Valid (its checksum
// fits) means: ended.
#pragma once
#include <cstdint>
#include <optional>

#include "base/result.h"

namespace wherry::shim {

struct ExitRecord {
  std::optional<int> code;  // 0-255 or 128 + signal; nullopt: it ended and nobody can tell how
  int signal = 0;           // 0: it was not ended by one
  bool oom_killed = false;
  std::int64_t time_ns = 0;  // CLOCK_REALTIME
};

enum class Sync : std::uint8_t { kNo, kData };

Result<> prepare_exit_record(int record_dir);  // an earlier one is gone
// The first valid record stays: writing again is a success that changes nothing.
Result<> write_exit_record(int record_dir, const ExitRecord& record, Sync sync);
Result<std::optional<ExitRecord>> read_exit_record(
    int record_dir);  // nullopt: none, or not written yet

}  // namespace wherry::shim
