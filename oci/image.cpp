#include "oci/image.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "oci/document.h"
#include "oci/writer.h"

namespace wherry::oci {

struct SchemaVersion {};  // always the number 2

namespace {

constexpr std::string_view kDockerManifest = "application/vnd.docker.distribution.manifest.v2+json";
constexpr std::string_view kDockerList =
    "application/vnd.docker.distribution.manifest.list.v2+json";

}  // namespace

void read(const Cursor& at, SchemaVersion& /*out*/) {
  if (at.node->type != Node::Type::kNumber || at.node->text != "2")
    at.problem("must be the number 2");
}
Json write(const SchemaVersion& /*value*/) {
  return 2;
}

void read(const Cursor& at, Digest& out) {
  if (!at.is(Node::Type::kString, "a digest")) return;
  auto digest = parse_digest(at.node->text);
  if (digest.ok())
    out = std::move(digest).value();
  else
    at.problem(digest.error().message());
}
Json write(const Digest& digest) {
  return digest.text();
}

template <class Visitor, Is<Platform> T>
void members(Visitor& v, T& platform) {
  v.required("architecture", platform.architecture);
  v.required("os", platform.os);
  v.optional("variant", platform.variant);
}

template <class Visitor, Is<ImageDescriptor> T>
void members(Visitor& v, T& descriptor) {
  v.required("mediaType", descriptor.media_type);
  v.required("digest", descriptor.digest);
  v.required("size", descriptor.size);
  v.optional("annotations", descriptor.annotations);
  v.optional("platform", descriptor.platform);
}

template <class Visitor, Is<Manifest> T>
void members(Visitor& v, T& manifest) {
  SchemaVersion version;
  v.required("schemaVersion", version);
  v.optional("mediaType", manifest.media_type);
  v.required("config", manifest.config);
  v.required("layers", manifest.layers);
  v.optional("annotations", manifest.annotations);
}

template <class Visitor, Is<Index> T>
void members(Visitor& v, T& index) {
  SchemaVersion version;
  v.required("schemaVersion", version);
  v.optional("mediaType", index.media_type);
  v.required("manifests", index.manifests);
}

template <class Visitor, Is<History> T>
void members(Visitor& v, T& entry) {
  v.optional("created", entry.created);
  v.optional("created_by", entry.created_by);
  v.optional("author", entry.author);
  v.optional("comment", entry.comment);
  v.optional("empty_layer", entry.empty_layer);
}

template <class Visitor, Is<ImageConfig> T>
void members(Visitor& v, T& image) {
  v.optional("created", image.created);
  v.optional("author", image.author);
  v.required("architecture", image.architecture);
  v.required("os", image.os);
  v.group("config", true, [&](auto& config) {
    config.optional("User", image.user);
    config.keys("ExposedPorts", image.exposed_ports);
    config.optional("Env", image.env);
    config.optional("Entrypoint", image.entrypoint);
    config.optional("Cmd", image.cmd);
    config.keys("Volumes", image.volumes);
    config.optional("WorkingDir", image.working_dir);
    config.optional("Labels", image.labels);
    config.optional("StopSignal", image.stop_signal);
  });
  std::string type = "layers";
  v.group("rootfs", true, [&](auto& rootfs) {
    rootfs.required("type", type);
    rootfs.required("diff_ids", image.diff_ids);
  });
  v.optional("history", image.history);
}

namespace {

// A reader that looks for other members than we do would see another image in the same bytes
// (CVE-2021-41190).
void refuse_members(const Node& root, std::initializer_list<std::string_view> names,
                    std::string_view kind, Findings& findings) {
  for (const auto& child : root.children)
    for (const auto name : names)
      if (child.key == name)
        findings.problems.push_back(
            {"/" + child.key, child.offset, cat("must not stand in ", kind)});
}

bool is_media_type(std::string_view text) {
  const auto slash = text.find('/');
  return slash != std::string_view::npos && slash != 0 && slash + 1 < text.size() &&
         !has_control(text) && text.find(' ') == std::string_view::npos;
}

void check_descriptor(const std::string& pointer, const Node& root,
                      const ImageDescriptor& descriptor, Findings& findings) {
  const auto offset = find_node(root, pointer).offset;
  if (!descriptor.media_type.empty() && !is_media_type(descriptor.media_type))
    findings.problems.push_back(
        {pointer + "/mediaType", offset,
         cat("must be a media type, not ", in_quotes(descriptor.media_type))});
  if (descriptor.size > std::uint64_t{INT64_MAX})
    findings.problems.push_back({pointer + "/size", offset, "must fit 63 bits"});
}

void check_media_type(const Node& root, std::string_view type, bool right, Findings& findings) {
  if (!type.empty() && !right)
    findings.problems.push_back({"/mediaType", find_node(root, "/mediaType").offset,
                                 cat("does not fit what the document holds: ", in_quotes(type))});
}

template <class T, class Check>
Result<T> parse(std::string_view json, std::string_view name, const Check& check) {
  const auto root = TRY(parse_tree(json, name));
  Findings findings;
  findings.other_case = Case::kRefused;
  T out;
  read(Cursor{&findings, &root}, out);
  if (root.type == Node::Type::kObject) check(root, out, findings);
  if (!findings.problems.empty()) return to_error(std::move(findings.problems), json, name);
  return out;
}

}  // namespace

Result<Digest> parse_digest(std::string_view text) {
  const auto colon = text.find(':');
  const auto algorithm = text.substr(0, colon);
  const auto encoded =
      colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  const std::size_t wanted = algorithm == "sha256" ? 64 : algorithm == "sha512" ? 128 : 0;
  if (colon == std::string_view::npos || wanted == 0)
    return Error::make(Code::kInvalid,
                       cat("must be a sha256 or sha512 digest, not ", in_quotes(text)));
  if (encoded.size() != wanted ||
      encoded.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return Error::make(Code::kInvalid,
                       cat("a ", algorithm, " digest has ", wanted,
                           " lower-case hexadecimal digits, unlike ", in_quotes(text)));
  return Digest{std::string{algorithm}, std::string{encoded}};
}

bool is_manifest_type(std::string_view media_type) {
  return media_type == kManifestType || media_type == kDockerManifest;
}
bool is_index_type(std::string_view media_type) {
  return media_type == kIndexType || media_type == kDockerList;
}

Result<Manifest> parse_manifest(std::string_view json) {
  auto manifest = TRY(parse<Manifest>(
      json, "manifest", [](const Node& root, const Manifest& out, Findings& findings) {
        refuse_members(root, {"manifests", "fsLayers", "history", "signatures"}, "a manifest",
                       findings);
        check_media_type(root, out.media_type, is_manifest_type(out.media_type), findings);
        check_descriptor("/config", root, out.config, findings);
        for (std::size_t i = 0; i < out.layers.size(); ++i)
          check_descriptor(cat("/layers/", i), root, out.layers[i], findings);
      }));
  if (manifest.media_type.empty()) manifest.media_type = kManifestType;
  return manifest;
}

Result<Index> parse_index(std::string_view json) {
  auto index =
      TRY(parse<Index>(json, "index", [](const Node& root, const Index& out, Findings& findings) {
        refuse_members(root, {"config", "layers", "fsLayers"}, "an index", findings);
        check_media_type(root, out.media_type, is_index_type(out.media_type), findings);
        for (std::size_t i = 0; i < out.manifests.size(); ++i)
          check_descriptor(cat("/manifests/", i), root, out.manifests[i], findings);
      }));
  if (index.media_type.empty()) index.media_type = kIndexType;
  return index;
}

Result<ImageConfig> parse_image_config(std::string_view json) {
  return parse<ImageConfig>(
      json, "image config", [](const Node& root, const ImageConfig&, Findings& findings) {
        const auto& rootfs = find_node(root, "/rootfs");
        if (&rootfs == &root || rootfs.type == Node::Type::kNull) {
          findings.problems.push_back({"/rootfs", root.offset, "is missing but required"});
          return;
        }
        const auto& type = find_node(root, "/rootfs/type");
        if (type.type == Node::Type::kString && type.text != "layers")
          findings.problems.push_back(
              {"/rootfs/type", type.offset, cat("must be 'layers', not ", in_quotes(type.text))});
      });
}

Result<> check_layers(const Manifest& manifest, const ImageConfig& config) {
  if (manifest.layers.size() == config.diff_ids.size()) return {};
  return Error::make(Code::kInvalid,
                     cat("the manifest has ", manifest.layers.size(),
                         " layers, but the image config ", config.diff_ids.size(), " diff_ids"));
}

Json to_json(const Manifest& manifest) {
  return write(manifest);
}
Json to_json(const Index& index) {
  return write(index);
}
Json to_json(const ImageConfig& config) {
  return write(config);
}

}  // namespace wherry::oci
