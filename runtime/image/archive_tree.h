// What an archive is, told from its content, and the documents and blobs in it by path.
#pragma once
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace wherry::image {

enum class ArchiveKind : std::uint8_t { kOciLayout, kDockerArchive, kRootTar, kRootDirectory };

// kInvalid when it is a directory or tar archive of no kind that is known.
Result<ArchiveKind> tell_kind(int fd, const std::string& subject);

// Regular files below `root`, links followed inside it.
Result<UniqueFd> open_member(int root, const std::string& path);
Result<std::string> read_member(int root, const std::string& path);  // at most 4 MiB

}  // namespace wherry::image
