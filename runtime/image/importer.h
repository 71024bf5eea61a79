// From an archive to blobs and layers of the store.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/image/content.h"

namespace wherry::image {

struct Imported {
  std::vector<std::string> names;  // in full
  oci::Digest digest;              // of the manifest
};
// As Store::import(), which holds the lock and writes the names down. After a failure the
// caller takes away what was added.
Result<std::vector<Imported>> import_archive(Content& content, const std::string& path,
                                             const std::string& reference);

}  // namespace wherry::image
