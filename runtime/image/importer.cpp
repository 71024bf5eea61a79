#include "runtime/image/importer.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "base/clock.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/image/archive_tree.h"
#include "runtime/image/digest.h"
#include "runtime/image/extractor.h"
#include "runtime/image/layers.h"
#include "runtime/image/refs.h"
#include "runtime/image/store.h"

namespace wherry::image {
namespace {

constexpr std::string_view kOciManifest = "application/vnd.oci.image.manifest.v1+json";
constexpr std::string_view kOciConfig = "application/vnd.oci.image.config.v1+json";
constexpr std::string_view kOciLayer = "application/vnd.oci.image.layer.v1.tar";

// The name of the file as the name of an image: "/tmp/My Root.tar.gz" -> "my-root".
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

// GOARCH of this machine, the image-spec's word.
std::string host_architecture() {
  utsname name{};
  ::uname(&name);
  const std::string machine = name.machine;
  const std::map<std::string, std::string> known{
      {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm"}, {"i686", "386"}};
  const auto found = known.find(machine);
  return found == known.end() ? machine : found->second;
}

// An image that an archive offers.
struct Offer {
  std::vector<std::string> own_names;  // in full
  std::function<Result<oci::Digest>()> take;
};

// Of the offers, those that `reference` asks for, imported.
Result<std::vector<Imported>> take_offers(const std::vector<Offer>& offers,
                                          const std::string& reference) {
  std::vector<Imported> result;
  if (reference.empty()) {
    for (const auto& offer : offers) result.push_back({offer.own_names, TRY(offer.take())});
    return result;
  }
  const auto name = TRY(normalise_reference(reference));
  if (offers.size() == 1) {
    result.push_back({{name}, TRY(offers.front().take())});
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
  result.push_back({{name}, TRY(chosen->take())});
  return result;
}

// ---- OCI layout (image-layout.md)
// ----------------------------------------------------------------------------------

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
  if (config.diff_ids.size() != manifest.layers.size())
    return Error::make(Code::kInvalid, cat("the image has ", manifest.layers.size(), " layers and ",
                                           config.diff_ids.size(), " diff ids"));
  const auto chain = TRY(chain_ids(config.diff_ids));
  const auto put = [&](const oci::ImageDescriptor& blob) -> Result<> {
    const auto file = TRY(open_member(tree, blob_member(blob.digest)));
    return content.put_blob(file.get(), blob.digest, blob.size);
  };
  TRY(put(manifest.config));
  for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
    TRY(put(manifest.layers[i]));
    const auto blob = TRY(content.open_blob(manifest.layers[i].digest));
    TRY(unpack_layer(content, {chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(i)},
                     blob.get(), config.diff_ids[i], {}));
  }
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

// ---- what has no manifest of its own
// -------------------------------------------------------------------------------

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

Result<std::vector<Imported>> import_root(Content& content, int tar, const std::string& path,
                                          const std::string& reference) {
  const auto name = TRY(normalise_reference(reference.empty() ? stem(path) : reference));
  const auto st = TRY(sys::fstat(tar, path));
  auto layer = TRY(content.put_unknown(tar, path));
  layer.media_type = TRY(layer_media_type(tar));
  const auto blob = TRY(content.open_blob(layer.digest));
  oci::ImageConfig config;
  config.architecture = host_architecture();
  config.os = "linux";
  // Of the file, not of the import: the same file is the same image.
  config.created = rfc3339(std::chrono::system_clock::from_time_t(st.st_mtime));
  config.cmd = {"/bin/sh"};
  config.env = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  config.diff_ids = {TRY(unpack_layer(content, {}, blob.get(), {}, {}))};
  const auto config_blob = TRY(content.put_bytes(dump_json(oci::to_json(config))));
  return std::vector<Imported>{{{name}, TRY(put_manifest(content, config_blob, {layer}))}};
}

}  // namespace

Result<std::vector<Imported>> import_archive(Content& content, const std::string& path,
                                             const std::string& reference) {
  if (!reference.empty()) TRY(normalise_reference(reference));
  const auto file = TRY(sys::openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  const bool directory = S_ISDIR(TRY(sys::fstat(file.get(), path)).st_mode);
  const auto kind = TRY(tell_kind(file.get(), path));
  if (kind == ArchiveKind::kRootTar) return import_root(content, file.get(), path, reference);
  if (kind == ArchiveKind::kOciLayout && directory)
    return import_layout(content, file.get(), reference, stem(path));
  return Error::make(Code::kUnsupported,
                     cat(in_quotes(path), " is of a kind that cannot be imported yet"));
}

}  // namespace wherry::image
