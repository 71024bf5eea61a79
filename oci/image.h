// image-spec 1.1 documents as plain data: descriptor, manifest, index, image config.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace wherry::oci {

inline constexpr std::string_view kManifestType = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kIndexType = "application/vnd.oci.image.index.v1+json";
inline constexpr std::string_view kConfigType = "application/vnd.oci.image.config.v1+json";

// "sha256:<64 lower-case hex>" (sha512 too); checked before it is used as a name on disk
// (CVE-2024-3727).
struct Digest {
  std::string algorithm, encoded;
  std::string text() const { return algorithm + ":" + encoded; }
  bool operator==(const Digest&) const = default;
  auto operator<=>(const Digest&) const = default;
};
Result<Digest> parse_digest(std::string_view text);

struct Platform {
  std::string architecture, os, variant;
  bool operator==(const Platform&) const = default;
};
struct ImageDescriptor {
  std::string media_type;
  Digest digest;
  std::uint64_t size = 0;  // bytes
  std::map<std::string, std::string> annotations;
  std::optional<Platform> platform;
  bool operator==(const ImageDescriptor&) const = default;
};
struct Manifest {
  std::string media_type;
  ImageDescriptor config;
  std::vector<ImageDescriptor> layers;  // lowest first
  std::map<std::string, std::string> annotations;
  bool operator==(const Manifest&) const = default;
};
struct Index {
  std::string media_type;
  std::vector<ImageDescriptor> manifests;
  bool operator==(const Index&) const = default;
};
struct History {
  std::string created, created_by, author, comment;
  bool empty_layer = false;
  bool operator==(const History&) const = default;
};
// What `docker run` reads: the `config` member, rootfs.diff_ids and history.
struct ImageConfig {
  std::string architecture, os, created, author;
  std::string user, working_dir, stop_signal;
  std::vector<std::string> env, entrypoint, cmd;
  std::vector<std::string> exposed_ports, volumes;  // keys of the objects
  std::map<std::string, std::string>
      labels;                    // data of the image's author: never merged into keys of ours
  std::vector<Digest> diff_ids;  // lowest first
  std::vector<History> history;  // lowest first; may have entries without a layer
  bool operator==(const ImageConfig&) const = default;
};

// A document is refused when it could be read as two things (CVE-2021-41190), or has a wrong type
// anywhere (SEC-77).
Result<Manifest> parse_manifest(std::string_view json);
Result<Index> parse_index(std::string_view json);
Result<ImageConfig> parse_image_config(std::string_view json);
// The two belong together: as many layers as diff_ids.
Result<> check_layers(const Manifest& manifest, const ImageConfig& config);

// Whether a media type is one of these, as the image-spec or as Docker's schema 2 writes it.
bool is_manifest_type(std::string_view media_type);
bool is_index_type(std::string_view media_type);

Json to_json(const Manifest& manifest);
Json to_json(const Index& index);
Json to_json(const ImageConfig& config);

}  // namespace wherry::oci
