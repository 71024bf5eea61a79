// What `docker save` writes: manifest.json, and in it paths of configs and of layers.
#include "base/json.h"
#include "base/text.h"
#include "runtime/image/archive_tree.h"
#include "runtime/image/import_parts.h"
#include "runtime/image/refs.h"

namespace wherry::image {
namespace {

struct Entry {  // of manifest.json
  std::string config;
  std::vector<std::string> names;  // in full
  std::vector<std::string> layers;
};

Result<std::vector<std::string>> strings(const Json& object, const char* key) {
  std::vector<std::string> out;
  const auto member = object.find(key);
  if (member == object.end() || member->is_null()) return out;
  const auto wrong = [&] {
    return Error::make(Code::kInvalid,
                       cat("manifest.json: ", in_quotes(key), " is not a list of strings"));
  };
  if (!member->is_array()) return wrong();
  for (const auto& item : *member) {
    if (!item.is_string()) return wrong();
    out.push_back(item.get<std::string>());
  }
  return out;
}

Result<Entry> parse_entry(const Json& object, const std::string& fallback) {
  if (!object.is_object())
    return Error::make(Code::kInvalid, "manifest.json: an entry is not an object");
  Entry entry;
  entry.config = TRY_CTX(json_string(object, "Config"), "manifest.json");
  entry.layers = TRY(strings(object, "Layers"));
  // Docker leaves its own registry out of these.
  for (const auto& tag : TRY(strings(object, "RepoTags")))
    entry.names.push_back(TRY(full_reference(tag, "docker.io")));
  if (entry.names.empty()) entry.names.push_back(TRY(full_reference(fallback, "localhost")));
  return entry;
}

Result<oci::Digest> take(Content& content, int tree, const Entry& entry) {
  const auto text = TRY(read_member(tree, entry.config));
  const auto config =
      TRY_CTX(oci::parse_image_config(text), cat("image config ", in_quotes(entry.config)));
  std::vector<oci::ImageDescriptor> layers;
  for (const auto& path : entry.layers) {
    const auto file = TRY(open_member(tree, path));
    auto layer = TRY(content.put_unknown(file.get(), path));
    layer.media_type = TRY(layer_media_type(file.get()));
    layers.push_back(std::move(layer));
  }
  TRY(unpack_layers(content, layers, config));
  return put_manifest(content, TRY(content.put_bytes(text)), std::move(layers));
}

}  // namespace

Result<std::vector<Imported>> import_docker(Content& content, int tree,
                                            const std::string& reference,
                                            const std::string& fallback) {
  const auto list = TRY(parse_json(TRY(read_member(tree, "manifest.json")), "manifest.json"));
  if (!list.is_array() || list.empty())
    return Error::make(Code::kInvalid, "manifest.json is not a list of images");
  std::vector<Offer> offers;
  for (const auto& object : list) {
    const auto entry = TRY(parse_entry(object, fallback));
    offers.push_back({entry.names, [&content, tree, entry] { return take(content, tree, entry); }});
  }
  return take_offers(offers, reference);
}

}  // namespace wherry::image
