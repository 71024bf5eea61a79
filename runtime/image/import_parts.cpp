#include "runtime/image/import_parts.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "runtime/image/layer_chain.h"
#include "runtime/image/layers.h"
#include "runtime/image/refs.h"
#include "runtime/image/store.h"

namespace wherry::image {

std::string stem(const std::string& path) {
  const auto parts = components(path);
  std::string name = parts.empty() || parts.back() == ".." ? "" : parts.back();
  for (const std::string_view ending : {".tar", ".tgz", ".txz", ".tbz", ".oci"})
    if (const auto at = name.find(ending); at != std::string::npos && at > 0) name.resize(at);
  std::string clean;
  for (const char c : name) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (plain)
      clean += lower;
    else if (!clean.empty() && clean.back() != '-' && clean.back() != '.')
      clean += c == '.' ? '.' : '-';
  }
  while (!clean.empty() && (clean.back() == '-' || clean.back() == '.')) clean.pop_back();
  return clean.empty() ? "image" : clean;
}

std::string host_architecture() {
  utsname name{};
  ::uname(&name);
  const std::string machine = name.machine;
  const std::map<std::string, std::string> known{
      {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm"}, {"i686", "386"}};
  const auto found = known.find(machine);
  return found == known.end() ? machine : found->second;
}

// Of the offers, those that `reference` asks for, imported.
Result<std::vector<Imported>> take_offers(const std::vector<Offer>& offers,
                                          const std::string& reference) {
  std::vector<Imported> result;
  if (reference.empty()) {
    for (const auto& offer : offers) {
      const auto digest = TRY(offer.take());
      result.push_back({offer.own_names, digest});
    }
    return result;
  }
  const auto name = TRY(normalise_reference(reference));
  if (offers.size() == 1) {
    const auto digest = TRY(offers.front().take());
    result.push_back({{name}, digest});
    return result;
  }
  const auto asked = TRY(parse_reference(reference));
  std::vector<std::string> all;
  const Offer* chosen = nullptr;
  for (const auto& offer : offers) {
    for (const auto& own : offer.own_names) {
      all.push_back(own);
      if (!matches(own, asked)) continue;
      if (chosen != nullptr && chosen != &offer)
        return Error::make(Code::kInvalid,
                           cat(in_quotes(reference), " can mean several images of the archive"));
      chosen = &offer;
    }
  }
  if (chosen == nullptr)
    return Error::make(Code::kNotFound,
                       cat("the archive has several images, none of them ", in_quotes(reference)))
        .hint(cat("it has ", join(all, ", ")));
  const auto digest = TRY(chosen->take());
  result.push_back({{name}, digest});
  return result;
}

Result<> unpack_layers(Content& content, const std::vector<oci::ImageDescriptor>& layers,
                       const oci::ImageConfig& config) {
  if (config.diff_ids.size() != layers.size())
    return Error::make(Code::kInvalid, cat("the image has ", layers.size(), " layers and ",
                                           config.diff_ids.size(), " diff ids"));
  if (layers.empty()) return Error::make(Code::kInvalid, "the image has no layers");
  const auto chain = TRY(chain_ids(config.diff_ids));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto blob = TRY(content.open_blob(layers[i].digest));
    TRY(unpack_layer(content, {chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(i)},
                     blob.get(), config.diff_ids[i], {}));
  }
  return {};
}

Result<std::string> layer_media_type(int blob) {
  std::array<char, 4> magic{};
  const auto got = ::pread(blob, magic.data(), magic.size(), 0);
  if (got < 0) return Error::sys("pread");
  const std::string_view start{magic.data(), static_cast<std::size_t>(got)};
  if (start.starts_with("\x1f\x8b")) return cat(kOciLayer, "+gzip");
  if (start == "\x28\xb5\x2f\xfd") return cat(kOciLayer, "+zstd");
  return std::string{kOciLayer};
}

Result<oci::Digest> put_manifest(Content& content, oci::ImageDescriptor config,
                                 std::vector<oci::ImageDescriptor> layers) {
  oci::Manifest manifest;
  manifest.media_type = kOciManifest;
  manifest.config = std::move(config);
  manifest.config.media_type = kOciConfig;
  manifest.layers = std::move(layers);
  return TRY(content.put_bytes(dump_json(oci::to_json(manifest)))).digest;
}

}  // namespace wherry::image
