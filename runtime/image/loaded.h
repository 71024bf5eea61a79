// An image as the store has it, and what keeps content in the store.
#pragma once
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "oci/image.h"
#include "runtime/image/content.h"
#include "runtime/image/store.h"

namespace wherry::image {

using Refs = std::map<std::string, oci::Digest>;
inline constexpr Millis kLockWait = std::chrono::minutes{1};  // for imports and removals of others

struct Loaded {
  Image image;
  oci::Manifest manifest;
  std::vector<oci::Digest> chain;
};

Result<Loaded> load(const Content& content, const oci::Digest& digest, const Refs& refs);

// What the names and the users of images keep. A manifest that cannot be read keeps nothing but
// itself.
Result<Content::Marked> mark(const Content& content, const std::vector<Use>& in_use);

}  // namespace wherry::image
