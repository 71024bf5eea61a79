// The log of one run of a container: two spools, the cursor and the file in the CRI format.
#pragma once
#include <array>
#include <optional>
#include <string>

#include "shim/worker/cri_format.h"
#include "shim/worker/log_cursor.h"
#include "shim/worker/spool.h"

namespace wherry::shim {

enum class Stream : std::uint8_t { kStdout = 0, kStderr = 1 };
inline constexpr std::array<Stream, 2> kStreams{Stream::kStdout, Stream::kStderr};

class ContainerLog {
 public:
  static Result<ContainerLog> create(int log_dir, const std::string& file_name);
  // After the death of a worker: what it wrote and did not commit is cut off and will be written
  // again.
  struct Parts {
    UniqueFd out, err, cursor;
  };
  static Result<ContainerLog> adopt(Parts parts, int log_dir, const std::string& file_name);

  Spool& spool(Stream stream) { return spools_[index(stream)]; }
  const Spool& spool(Stream stream) const { return spools_[index(stream)]; }
  int cursor_fd() const { return cursor_.fd(); }

  // Brings whatever the spool has into the file. A log that cannot be written (full disk) never
  // stops the container: its bytes are counted as dropped.
  void write_out(Stream stream, StreamEnd end);
  // Memory of the spool before both this place and the committed one.
  void give_back(Stream stream, std::uint64_t wanted_from);
  const LogPosition& position() const { return position_; }

 private:
  ContainerLog(Spool out, Spool err, LogCursor cursor, UniqueFd file)
      : spools_{std::move(out), std::move(err)},
        cursor_{std::move(cursor)},
        position_{cursor_.load()},
        file_{std::move(file)} {}
  static std::size_t index(Stream stream) { return static_cast<std::size_t>(stream); }
  bool append(const std::string& text);

  std::array<Spool, 2> spools_;
  LogCursor cursor_;
  LogPosition position_;
  UniqueFd file_;
};

}  // namespace wherry::shim
