#include "runtime/image/loaded.h"

#include "runtime/image/layer_chain.h"
#include "runtime/image/refs.h"

namespace wherry::image {

Result<Loaded> load(const Content& content, const oci::Digest& digest, const Refs& refs) {
  Loaded loaded;
  auto& image = loaded.image;
  image.digest = digest;
  for (const auto& [name, of] : refs)
    if (of == digest) image.names.push_back(name);
  const auto text = TRY(content.read_blob(digest));
  loaded.manifest = TRY(oci::parse_manifest(text));
  image.config =
      TRY(oci::parse_image_config(TRY(content.read_blob(loaded.manifest.config.digest))));
  loaded.chain = TRY(chain_ids(image.config.diff_ids));
  image.size = text.size() + loaded.manifest.config.size;
  for (const auto& layer : loaded.manifest.layers) image.size += layer.size;
  for (const auto& chain : loaded.chain) image.layer_dirs.push_back(content.layer_dir(chain));
  return loaded;
}

Result<Content::Marked> mark(const Content& content, const std::vector<Use>& in_use) {
  const auto refs = TRY(read_refs(content));
  std::set<oci::Digest> roots;
  for (const auto& [name, digest] : refs) roots.insert(digest);
  for (const auto& use : in_use)
    if (const auto digest = oci::parse_digest(use.digest); digest.ok())
      roots.insert(digest.value());
  Content::Marked marked;
  for (const auto& root : roots) {
    marked.blobs.insert(root);
    const auto loaded = load(content, root, refs);
    if (!loaded.ok()) continue;
    marked.blobs.insert(loaded.value().manifest.config.digest);
    for (const auto& layer : loaded.value().manifest.layers) marked.blobs.insert(layer.digest);
    for (const auto& chain : loaded.value().chain) marked.layers.insert(Content::layer_name(chain));
  }
  return marked;
}

}  // namespace wherry::image
