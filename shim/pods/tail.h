// Following a file that others append to.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace wherry::shim {

// The whole lines of a file from a place on, as they come.
class LineFile {
 public:
  explicit LineFile(UniqueFd file, std::uint64_t from = 0) : file_{std::move(file)}, at_{from} {}
  // Each line that is there now, without its end. A file that became shorter is read on from its
  // new end.
  Result<> read(const std::function<Result<>(std::string_view)>& on_line);
  // The place where the last `count` lines for which `counts` is true begin.
  Result<> seek_to_last(unsigned count, const std::function<bool(std::string_view)>& counts);

 private:
  UniqueFd file_;
  std::uint64_t at_ = 0;
};

// Wakes when something in a directory, or a file, changes; without inotify (the host's limit is
// reached) after a while.
class ChangeWatch {
 public:
  static ChangeWatch open();
  void add(const std::string& path);
  void wait(Millis most);

 private:
  UniqueFd inotify_;
};

}  // namespace wherry::shim
