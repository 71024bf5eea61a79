// The manifest that -f names.
#pragma once
#include <string>

#include "base/result.h"
#include "runtime/pod/manifest.h"

namespace wherry::cli {

struct ManifestText {
  std::string text, name;  // of the file, or "stdin"
};
Result<ManifestText> read_manifest(const std::string& file);  // "-" is stdin
// With what this host has, for requests that are more than that.
Result<pod::Manifest> parse_manifest(const ManifestText& manifest);

}  // namespace wherry::cli
