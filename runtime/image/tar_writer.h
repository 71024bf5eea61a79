// Writing tar archives, pax form (pax(1)): any name, size, owner, time and extended attribute, byte
// for byte.
#pragma once
#include <string_view>

#include "base/result.h"
#include "runtime/image/tar_reader.h"

namespace wherry::image {

class TarWriter {
 public:
  explicit TarWriter(int fd) : fd_{fd} {}  // the caller's
  Result<> add(
      const TarEntry& entry);  // then exactly entry.size bytes of content, if it is a regular file
  Result<> content(std::string_view bytes);
  Result<> close();  // the end mark

 private:
  Result<> pad();
  int fd_;
  std::uint64_t written_ = 0;  // content of the present entry
};

// Everything in the directory, itself first, names sorted: the same tree gives the same bytes.
// Sockets are left out. kInvalid for a mount point inside, and for names that would be whiteouts in
// a layer.
Result<> pack_directory(int dir, int into);

}  // namespace wherry::image
