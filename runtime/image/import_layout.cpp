// The OCI image layout (image-spec, image-layout.md).
#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "runtime/image/archive_tree.h"
#include "runtime/image/digest.h"
#include "runtime/image/import_parts.h"
#include "runtime/image/refs.h"
#include "runtime/image/store.h"

namespace wherry::image {
namespace {

std::string blob_member(const oci::Digest& digest) {
  return cat("blobs/", digest.algorithm, "/", digest.encoded);
}

Result<std::string> read_document(int tree, const oci::ImageDescriptor& descriptor) {
  const auto file = TRY(open_member(tree, blob_member(descriptor.digest)));
  const auto hashed =
      TRY(hash_file(file.get(), descriptor.digest.algorithm, -1, descriptor.digest.text()));
  if (hashed.size != descriptor.size || hashed.digest != descriptor.digest)
    return Error::make(Code::kInvalid,
                       cat("blob ", descriptor.digest.text(), " is corrupt: it has ", hashed.size,
                           " bytes and digest ", hashed.digest.text()));
  return read_member(tree, blob_member(descriptor.digest));
}

bool is_index(const oci::ImageDescriptor& descriptor) {
  return descriptor.media_type == "application/vnd.oci.image.index.v1+json" ||
         descriptor.media_type == "application/vnd.docker.distribution.manifest.list.v2+json";
}

Result<oci::Digest> take_manifest(Content& content, int tree,
                                  const oci::ImageDescriptor& descriptor) {
  const auto manifest = TRY_CTX(oci::parse_manifest(TRY(read_document(tree, descriptor))),
                                cat("manifest ", descriptor.digest.text()));
  if (!manifest.media_type.empty() && manifest.media_type != descriptor.media_type)
    return Error::make(Code::kInvalid, cat("manifest ", descriptor.digest.text(), " is ",
                                           in_quotes(manifest.media_type), ", its descriptor says ",
                                           in_quotes(descriptor.media_type)));
  const auto config =
      TRY_CTX(oci::parse_image_config(TRY(read_document(tree, manifest.config))), "image config");
  const auto put = [&](const oci::ImageDescriptor& blob) -> Result<> {
    const auto file = TRY(open_member(tree, blob_member(blob.digest)));
    return content.put_blob(file.get(), blob.digest, blob.size);
  };
  TRY(put(manifest.config));
  for (const auto& layer : manifest.layers) TRY(put(layer));
  TRY(unpack_layers(content, manifest.layers, config));
  TRY(put(descriptor));
  return descriptor.digest;
}

// From several descriptors of one name, the one for this machine.
Result<oci::ImageDescriptor> choose(const std::vector<oci::ImageDescriptor>& descriptors) {
  const auto architecture = host_architecture();
  std::vector<std::string> platforms;
  for (const auto& descriptor : descriptors) {
    if (!descriptor.platform) continue;
    if (descriptor.platform->os == "linux" && descriptor.platform->architecture == architecture)
      return descriptor;
    platforms.push_back(cat(descriptor.platform->os, "/", descriptor.platform->architecture));
  }
  if (descriptors.size() == 1 && platforms.empty()) return descriptors.front();
  return Error::make(Code::kUnsupported,
                     cat("no image for linux/", architecture, " among ",
                         platforms.empty() ? "several without a platform" : join(platforms, ", ")));
}

Result<oci::Digest> take_descriptor(Content& content, int tree, oci::ImageDescriptor descriptor) {
  constexpr int kDeepest = 4;
  for (int depth = 0; is_index(descriptor); ++depth) {
    if (depth == kDeepest) return Error::make(Code::kInvalid, "image indexes are nested too deep");
    const auto index = TRY_CTX(oci::parse_index(TRY(read_document(tree, descriptor))),
                               cat("index ", descriptor.digest.text()));
    descriptor = TRY(choose(index.manifests));
  }
  return take_manifest(content, tree, descriptor);
}

// "org.opencontainers.image.ref.name" is a tag or a whole name.
Result<std::string> layout_name(const oci::ImageDescriptor& descriptor,
                                const std::string& fallback) {
  const auto get = [&](const char* key) {
    const auto found = descriptor.annotations.find(key);
    return found == descriptor.annotations.end() ? std::string{} : found->second;
  };
  if (const auto whole = get("io.containerd.image.name"); !whole.empty())
    return full_reference(whole, "docker.io");
  const auto name = get("org.opencontainers.image.ref.name");
  if (name.find_first_of("/:") != std::string::npos) return normalise_reference(name);
  return normalise_reference(cat(fallback, ":", name.empty() ? "latest" : name));
}

}  // namespace

Result<std::vector<Imported>> import_layout(Content& content, int tree,
                                            const std::string& reference,
                                            const std::string& fallback) {
  const auto layout = TRY(parse_json(TRY(read_member(tree, "oci-layout")), "oci-layout"));
  if (const auto version = TRY(json_string(layout, "imageLayoutVersion"));
      !version.starts_with("1."))
    return Error::make(Code::kUnsupported, cat("OCI image layout version ", in_quotes(version)));
  const auto index = TRY_CTX(oci::parse_index(TRY(read_member(tree, "index.json"))), "index.json");
  std::vector<std::pair<std::string, std::vector<oci::ImageDescriptor>>> by_name;
  for (const auto& descriptor : index.manifests) {
    if (descriptor.platform && descriptor.platform->os == "unknown")
      continue;  // an attestation, not an image
    const auto name = TRY(layout_name(descriptor, fallback));
    auto there = std::find_if(by_name.begin(), by_name.end(),
                              [&](const auto& entry) { return entry.first == name; });
    if (there == by_name.end()) there = by_name.insert(there, {name, {}});
    there->second.push_back(descriptor);
  }
  if (by_name.empty()) return Error::make(Code::kInvalid, "the layout has no image");
  std::vector<Offer> offers;
  for (const auto& [name, descriptors] : by_name)
    offers.push_back({{name}, [&content, tree, &all = descriptors]() -> Result<oci::Digest> {
                        return take_descriptor(content, tree, TRY(choose(all)));
                      }});
  return take_offers(offers, reference);
}

}  // namespace wherry::image
