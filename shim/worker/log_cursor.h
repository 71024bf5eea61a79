// How far the log has come, in a page of memory that the keeper holds too. Two slots in turn: a
// kill -9 in the middle of a commit leaves the one before.
#pragma once
#include <array>
#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace wherry::shim {

struct LogPosition {
  std::array<std::uint64_t, 2> raw{};        // bytes of stdout and stderr that are in the log
  std::uint64_t log = 0;                     // bytes of the log file
  std::array<std::uint32_t, 2> open_line{};  // 1: the last piece of the stream was a P
  std::uint64_t dropped = 0;                 // bytes that could not be written and never will be
};

class LogCursor {
 public:
  static Result<LogCursor> create();
  static Result<LogCursor> adopt(UniqueFd page);
  LogCursor(LogCursor&& other) noexcept;
  LogCursor& operator=(LogCursor&&) = delete;
  ~LogCursor();

  LogPosition load() const;
  void commit(const LogPosition& position);
  int fd() const { return page_.get(); }

 private:
  struct Slot;
  LogCursor(UniqueFd page, Slot* slots) : page_{std::move(page)}, slots_{slots} {}
  static Result<LogCursor> map(UniqueFd page);
  std::size_t newest() const;
  UniqueFd page_;
  Slot* slots_;
};

}  // namespace wherry::shim
