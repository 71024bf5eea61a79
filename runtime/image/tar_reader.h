// Tar archives as a stream of entries. libarchive reads them; it stands behind this header only.
// The bytes come from a stranger: sizes are capped, and whatever two programs could read
// differently is an error (SEC-74, SEC-75).
#pragma once
#include <sys/stat.h>
#include <time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "runtime/image/digest.h"

namespace wherry::image {

struct TarLimits {
  std::uint64_t expanded = std::uint64_t{1}
                           << 38;  // bytes of the uncompressed stream and of all files: 256 GiB
  std::uint64_t ratio = 200;       // uncompressed to compressed, looked at above `ratio_floor`
  std::uint64_t ratio_floor = std::uint64_t{64} << 20;
  std::uint64_t entries = 1'000'000;
};

struct TarEntry {
  std::string path;      // as written in the archive, any bytes but NUL
  std::string linkname;  // of a hard link (`hardlink`) or symbolic link
  bool hardlink = false;
  mode_t mode = 0;  // type and permissions; the type is 0 for a hard link
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint64_t size = 0;  // bytes, of a regular file
  timespec mtime{};
  dev_t rdev = 0;
  std::vector<std::pair<std::string, std::string>> xattrs;
};

class TarReader {
 public:
  // Any compression libarchive reads in this process: none, gzip, bzip2, xz, lzma, lzip, zstd, lz4,
  // compress. The caller keeps `fd` open (its position moves); `subject` is only read for messages.
  static Result<TarReader> open(int fd, const std::string& subject, const TarLimits& limits = {});
  TarReader(TarReader&&) noexcept;
  TarReader& operator=(TarReader&&) noexcept;
  ~TarReader();

  Result<std::optional<TarEntry>> next();  // nullopt at the end
  struct Block {
    std::string_view bytes;    // valid until the next call
    std::uint64_t offset = 0;  // in the file; what lies between two blocks is a hole
  };
  Result<std::optional<Block>> next_block();  // of the entry next() gave

  struct Summary {
    oci::Digest diff_id;  // sha256 of the uncompressed stream, padding included
    bool closed_by_mark =
        true;  // the end-of-archive mark was there: nothing was cut off between two entries
  };
  Result<Summary> finish();  // reads the rest of the stream

 private:
  struct State;
  explicit TarReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace wherry::image
