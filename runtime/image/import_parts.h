// What every kind of archive needs on its way into the store.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/image/content.h"
#include "runtime/image/importer.h"

namespace wherry::image {

inline constexpr std::string_view kOciManifest = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kOciConfig = "application/vnd.oci.image.config.v1+json";
inline constexpr std::string_view kOciLayer = "application/vnd.oci.image.layer.v1.tar";

// An image that an archive offers.
struct Offer {
  std::vector<std::string> own_names;  // in full
  std::function<Result<oci::Digest>()> take;
};
// Those that `reference` asks for, imported; all of them when it is empty.
Result<std::vector<Imported>> take_offers(const std::vector<Offer>& offers,
                                          const std::string& reference);

// The kinds. `tree` is a directory that holds the archive's members; `fallback` what an image
// without a name is called.
Result<std::vector<Imported>> import_layout(Content& content, int tree,
                                            const std::string& reference,
                                            const std::string& fallback);
Result<std::vector<Imported>> import_docker(Content& content, int tree,
                                            const std::string& reference,
                                            const std::string& fallback);
Result<std::vector<Imported>> import_root(Content& content, int tar, const std::string& path,
                                          const std::string& reference);
Result<std::vector<Imported>> import_root_directory(Content& content, int dir,
                                                    const std::string& path,
                                                    const std::string& reference);

// The name of the file as the name of an image: "/tmp/My Root.tar.gz" -> "my-root".
std::string stem(const std::string& path);
std::string host_architecture();  // GOARCH of this machine, the image-spec's word

// Unpacks `layers` (blobs of the store, lowest first), which must be as many as the config has diff
// ids.
Result<> unpack_layers(Content& content, const std::vector<oci::ImageDescriptor>& layers,
                       const oci::ImageConfig& config);
Result<std::string> layer_media_type(int blob);  // by the magic of its compression
// A manifest for what came without one; its digest.
Result<oci::Digest> put_manifest(Content& content, oci::ImageDescriptor config,
                                 std::vector<oci::ImageDescriptor> layers);

}  // namespace wherry::image
