// A stream of a container on its way into the log. Bytes go from the FIFO to a memory file by
// splice(2) and never through the worker: the kernel takes a byte out of the FIFO in the same call
// that puts it into the file, so a kill -9 at any moment loses none. The memory file is held by the
// keeper as well; its size is the number of bytes consumed.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace wherry::shim {

class Spool {
 public:
  static Result<Spool> create(const std::string& name);
  static Result<Spool> adopt(UniqueFd file);  // of a worker before us

  enum class Pulled : std::uint8_t {
    kSome,     // there may be more
    kNothing,  // empty, but somebody can still write
    kEnd,      // no writer is left
  };
  // From a FIFO or pipe, at most `most` bytes.
  Result<Pulled> pull(int pipe, std::size_t most);
  // From a pty master through a pipe of ours whose both ends are given: a terminal cannot be
  // spliced into a file. EIO of a terminal that nobody has open any more is its end.
  Result<Pulled> pull_terminal(int master, int pipe_in, int pipe_out, std::size_t most);

  Result<std::size_t> read(std::uint64_t from, std::span<char> into) const;  // 0 at the end
  void give_back(std::uint64_t up_to);  // the memory of what stands before
  std::uint64_t first_kept() const;     // the first byte whose memory was not given back
  std::uint64_t size() const { return size_; }
  int fd() const { return file_.get(); }

 private:
  Spool(UniqueFd file, std::uint64_t size) : file_{std::move(file)}, size_{size} {}
  UniqueFd file_;
  std::uint64_t size_ = 0;
  std::uint64_t given_back_ = 0;
};

}  // namespace wherry::shim
