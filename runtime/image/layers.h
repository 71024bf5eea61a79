// Unpacking layers: once each, whatever the number of images and of programs that want it.
#pragma once
#include <optional>
#include <vector>

#include "base/result.h"
#include "runtime/image/content.h"
#include "runtime/image/tar_reader.h"

namespace wherry::image {

// The layer `blob` on top of `below` (chain ids, lowest first), unpacked into the store as
// chain_ids() names it. Its diff id is checked against `expected` before anything can be seen of
// it; without one it comes back unchecked, and an archive that does not end with its end mark is
// refused. The store's lock is held by the caller.
Result<oci::Digest> unpack_layer(Content& content, const std::vector<oci::Digest>& below, int blob,
                                 const std::optional<oci::Digest>& expected,
                                 const TarLimits& limits);

}  // namespace wherry::image
