#include "runtime/image/layers.h"

#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "mount/overlay.h"
#include "runtime/image/extractor.h"
#include "runtime/image/layer_chain.h"

namespace wherry::image {
namespace {

constexpr Millis kLayerWait =
    std::chrono::minutes{30};  // for another program that unpacks the same layer

// What the lower layers look like together; no descriptor when there are none.
Result<UniqueFd> merged_view(const Content& content, const std::vector<oci::Digest>& below) {
  if (below.empty()) return UniqueFd{};
  mount::Overlay overlay;
  for (const auto& chain : below) overlay.lower.push_back(content.layer_dir(chain));
  if (overlay.lower.size() == 1)
    return sys::openat(AT_FDCWD, overlay.lower.front(), O_RDONLY | O_DIRECTORY);
  return mount::mount_overlay(overlay);
}

Result<TarReader::Summary> unpack_into(int layer, const Content& content,
                                       const std::vector<oci::Digest>& below, int blob,
                                       const TarLimits& limits, const std::string& subject) {
  const auto merged = TRY(merged_view(content, below));
  const auto fs = TRY(make_dir_at(layer, "fs", 0755));
  auto reader = TRY(TarReader::open(blob, subject, limits));
  Extractor extractor{fs.get(), merged.get(), Whiteouts::kOverlay};
  TRY(sys::fchmod(fs.get(), 0755));  // whatever the umask; an entry for the root may change it
  TRY(extract_all(reader, extractor));
  return reader.finish();
}

}  // namespace

Result<oci::Digest> unpack_layer(Content& content, const std::vector<oci::Digest>& below, int blob,
                                 const std::optional<oci::Digest>& expected,
                                 const TarLimits& limits) {
  UniqueFd lock;
  if (expected) {
    const auto chain = TRY(next_chain(below, *expected));
    lock = TRY(content.lock_layer(chain, Deadline::in(kLayerWait)));
    if (content.has_layer(chain)) return *expected;
  }
  const auto subject = expected ? cat("layer ", expected->text()) : std::string{"layer"};
  const auto scratch = TRY(Scratch::make(content.tmp()));
  const auto layer = TRY(make_dir_at(scratch.fd(), "layer", 0700));
  const auto summary = TRY_CTX(unpack_into(layer.get(), content, below, blob, limits, subject),
                               cat("unpack ", subject));
  if (expected && summary.diff_id != *expected)
    return Error::make(Code::kInvalid,
                       cat("layer ", expected->text(), " is corrupt: unpacked it has the digest ",
                           summary.diff_id.text()));
  if (!expected && !summary.closed_by_mark)
    return Error::make(Code::kInvalid, "the archive is cut off: its end mark is missing");

  const auto chain = TRY(next_chain(below, summary.diff_id));
  if (!expected) lock = TRY(content.lock_layer(chain, Deadline::in(kLayerWait)));
  if (content.has_layer(chain)) return summary.diff_id;
  TRY(content.publish_layer(scratch.fd(), "layer", chain));
  return summary.diff_id;
}

}  // namespace wherry::image
