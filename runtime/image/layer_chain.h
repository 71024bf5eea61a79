// The names of unpacked layers.
#pragma once
#include <vector>

#include "base/result.h"
#include "oci/image.h"

namespace wherry::image {

// image-spec config.md, "Layer ChainID": of the lowest layer its diff id, then sha256("<chain of
// those below> <diff>").
Result<std::vector<oci::Digest>> chain_ids(const std::vector<oci::Digest>& diff_ids);

// The next chain id above `below` (lowest first).
Result<oci::Digest> next_chain(const std::vector<oci::Digest>& below, const oci::Digest& diff_id);

}  // namespace wherry::image
