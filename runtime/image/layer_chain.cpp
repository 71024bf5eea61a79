#include "runtime/image/layer_chain.h"

#include "base/text.h"
#include "runtime/image/digest.h"

namespace wherry::image {

Result<oci::Digest> next_chain(const std::vector<oci::Digest>& below, const oci::Digest& diff_id) {
  if (below.empty()) return diff_id;
  return digest_of(cat(below.back().text(), " ", diff_id.text()));
}

Result<std::vector<oci::Digest>> chain_ids(const std::vector<oci::Digest>& diff_ids) {
  std::vector<oci::Digest> chain;
  for (const auto& diff_id : diff_ids) chain.push_back(TRY(next_chain(chain, diff_id)));
  return chain;
}

}  // namespace wherry::image
