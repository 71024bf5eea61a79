#include "oci/image.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"

namespace wherry::oci {
namespace {

const std::string kHex(64, 'a');
const std::string kSha = "sha256:" + kHex;

std::string descriptor(std::string_view type, std::string_view more = {}) {
  return cat(R"({"mediaType":")", type, R"(","digest":")", kSha, R"(","size":7)", more, "}");
}
std::string manifest(std::string_view more = {}, std::string_view layers = {}) {
  return cat(R"({"schemaVersion":2,"config":)", descriptor(kConfigType), R"(,"layers":[)", layers,
             "]", more, "}");
}
std::string index(std::string_view more = {}, std::string_view entry_more = {}) {
  return cat(R"({"schemaVersion":2,"manifests":[)", descriptor(kManifestType, entry_more), "]",
             more, "}");
}

template <class T>
void expect_refused(const Result<T>& got, std::string_view message) {
  ASSERT_FALSE(got.ok()) << message;
  EXPECT_EQ(got.error().code(), Code::kInvalid);
  EXPECT_NE(got.error().message().find(message), std::string::npos) << got.error().message();
}

TEST(Digest, Grammar) {
  auto good = parse_digest(kSha);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->text(), kSha);
  EXPECT_TRUE(parse_digest("sha512:" + std::string(128, '0')).ok());
  const std::string bad[] = {"",
                             "sha256",
                             "sha256:",
                             kHex,
                             "sha256:" + kHex + "a",
                             "sha256:" + kHex.substr(1),
                             "sha256:" + std::string(64, 'A'),
                             "sha256:" + std::string(63, 'a') + "g",
                             "sha256:../../../../etc/passwd",
                             "sha256:" + std::string(61, 'a') + "/..",
                             "SHA256:" + kHex,
                             "md5:" + kHex,
                             "sha512:" + kHex,
                             " sha256:" + kHex,
                             "sha256:" + kHex + "\n",
                             "sha256::" + kHex.substr(1),
                             "../x:" + kHex,
                             "sha256:" + std::string(63, 'a') + std::string(1, '\0')};
  for (const auto& text : bad) EXPECT_FALSE(parse_digest(text).ok()) << in_quotes(text);
}

TEST(Manifest, OciAndDockerAreRead) {
  auto oci = parse_manifest(manifest(R"(,"annotations":{"a":"b"})",
                                     descriptor("application/vnd.oci.image.layer.v1.tar+gzip")));
  ASSERT_TRUE(oci.ok()) << oci.error().message();
  EXPECT_EQ(oci->media_type, kManifestType);  // inferred
  EXPECT_EQ(oci->layers.size(), 1U);
  EXPECT_EQ(oci->config.size, 7U);
  EXPECT_EQ(oci->annotations.at("a"), "b");
  auto docker = parse_manifest(
      manifest(R"(,"mediaType":"application/vnd.docker.distribution.manifest.v2+json")"));
  ASSERT_TRUE(docker.ok()) << docker.error().message();
  EXPECT_TRUE(is_manifest_type(docker->media_type));

  auto again = parse_manifest(dump_json(to_json(oci.value())));
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again.value() == oci.value());
}

// SEC-76: whatever another reader could take for something else.
TEST(Manifest, Sec76AmbiguousDocumentsAreRefused) {
  const std::pair<std::string, const char*> bad[] = {
      {manifest(R"(,"manifests":[])"), "/manifests: must not stand in a manifest"},
      {manifest(R"(,"manifests":null)"), "/manifests: must not stand in a manifest"},
      {manifest(R"(,"fsLayers":[])"), "/fsLayers: must not stand in a manifest"},
      {manifest(R"(,"Layers":[])"), "/Layers: must be written 'layers'"},
      {manifest(R"(,"LAYERS":[])"), "must be written 'layers'"},
      {manifest(cat(R"(,"mediaType":")", kIndexType, '"')),
       "/mediaType: does not fit what the document holds"},
      {manifest(R"(,"mediaType":"text/plain")"), "/mediaType: does not fit"},
      {manifest(R"(,"mediaType":7)"), "/mediaType: must be a string, not a number"},
      {manifest(R"(,"layers":[])"), "/layers: the same key stands twice"},
      {manifest({}, R"({"mediaType":"a/b","size":1})"),
       "/layers/0/digest: is missing but required"},
      {manifest({}, R"({"mediaType":"a/b","digest":"sha256:../..","size":1})"),
       "/layers/0/digest: a sha256 digest has 64"},
      {manifest({}, descriptor("a/b", R"(,"Digest":"x")")),
       "/layers/0/Digest: must be written 'digest'"},
      {manifest({}, descriptor("nothing")), "/layers/0/mediaType: must be a media type"},
      {manifest({}, descriptor("a/b c")), "/layers/0/mediaType: must be a media type"},
      {manifest({}, "null"), "/layers/0: must be an object, not null"},
      {manifest({}, cat(R"({"mediaType":"a/b","digest":")", kSha, R"(","size":-1})")),
       "/layers/0/size: must be an integer"},
      {manifest({}, cat(R"({"mediaType":"a/b","digest":")", kSha, R"(","size":"1"})")),
       "/layers/0/size: must be an integer"},
      {manifest({},
                cat(R"({"mediaType":"a/b","digest":")", kSha, R"(","size":9223372036854775808})")),
       "must fit 63 bits"},
      {R"({"schemaVersion":2,"layers":[]})", "/config: is missing but required"},
      {cat(R"({"schemaVersion":2,"layers":null,"config":)", descriptor("a/b"), "}"),
       "/layers: must be an array, not null"},
      {cat(R"({"schemaVersion":1,"layers":[],"config":)", descriptor("a/b"), "}"),
       "/schemaVersion: must be the number 2"},
      {cat(R"({"schemaVersion":2.0,"layers":[],"config":)", descriptor("a/b"), "}"),
       "/schemaVersion: must be the number 2"},
      {cat(R"({"layers":[],"config":)", descriptor("a/b"), "}"),
       "/schemaVersion: is missing but required"},
      {"[]", "manifest:1:1: must be an object"},
      {index(), "/manifests: must not stand in a manifest"},
  };
  for (const auto& [json, message] : bad) expect_refused(parse_manifest(json), message);
}

TEST(Index, IsReadAndAmbiguousOnesAreRefused) {
  auto good =
      parse_index(index({}, R"(,"platform":{"architecture":"arm64","os":"linux","variant":"v8"})"));
  ASSERT_TRUE(good.ok()) << good.error().message();
  EXPECT_EQ(good->manifests.at(0).platform->variant, "v8");
  auto again = parse_index(dump_json(to_json(good.value())));
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again.value() == good.value());
  EXPECT_TRUE(
      parse_index(
          index(R"(,"mediaType":"application/vnd.docker.distribution.manifest.list.v2+json")"))
          .ok());

  const std::pair<std::string, const char*> bad[] = {
      {index(R"(,"layers":[])"), "/layers: must not stand in an index"},
      {index(R"(,"config":{})"), "/config: must not stand in an index"},
      {index(cat(R"(,"mediaType":")", kManifestType, '"')), "/mediaType: does not fit"},
      {index(R"(,"Manifests":[])"), "must be written 'manifests'"},
      {index({}, R"(,"platform":{"os":"linux"})"),
       "/manifests/0/platform/architecture: is missing"},
      {index({}, R"(,"platform":"linux/amd64")"), "/manifests/0/platform: must be an object"},
      {index({}, R"(,"annotations":{"a":1})"), "/manifests/0/annotations/a: must be a string"},
      {manifest(), "/manifests: is missing but required"},
  };
  for (const auto& [json, message] : bad) expect_refused(parse_index(json), message);
}

std::string image(std::string_view config) {
  return cat(R"({"architecture":"amd64","os":"linux","config":)", config,
             R"(,"rootfs":{"type":"layers","diff_ids":[")", kSha,
             R"("]},"history":[{"created_by":"x","empty_layer":true},{"created_by":"y"}]})");
}

TEST(ImageConfig, AllThatDockerWrites) {
  auto got = parse_image_config(
      image(R"({"Hostname":"","Domainname":"","User":"www:www","AttachStdin":false,
    "ExposedPorts":{"80/tcp":{}},"Tty":false,"Env":["PATH=/bin"],"Cmd":["a","b"],"Image":"sha256:x","Volumes":{"/data":{},"/x":null},
    "WorkingDir":"/srv","Entrypoint":null,"OnBuild":null,"Labels":{"k":"v"},"StopSignal":"SIGQUIT"})"));
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_EQ(got->user, "www:www");
  EXPECT_EQ(got->cmd, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(got->entrypoint.empty());
  EXPECT_EQ(got->volumes, (std::vector<std::string>{"/data", "/x"}));
  EXPECT_EQ(got->exposed_ports, std::vector<std::string>{"80/tcp"});
  EXPECT_EQ(got->diff_ids.at(0).text(), kSha);
  EXPECT_EQ(got->history.size(), 2U);
  EXPECT_TRUE(got->history[0].empty_layer);
  auto again = parse_image_config(dump_json(to_json(got.value())));
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_TRUE(again.value() == got.value());
  EXPECT_TRUE(parse_image_config(image("null")).ok());
  EXPECT_TRUE(parse_image_config(image("{}")).ok());
}

// SEC-77: a wrong type is an error, never a default (which for the user would be root).
TEST(ImageConfig, Sec77WrongTypesAreRefused) {
  const std::pair<std::string, const char*> bad[] = {
      {image(R"({"User":1000})"), "/config/User: must be a string, not a number"},
      {image(R"({"User":["a"]})"), "/config/User: must be a string, not an array"},
      {image(R"({"user":"1000"})"), "/config/user: must be written 'User'"},
      {image(R"({"Env":"A=b"})"), "/config/Env: must be an array, not a string"},
      {image(R"({"Env":{"A":"b"}})"), "/config/Env: must be an array, not an object"},
      {image(R"({"Env":["A=b",null]})"), "/config/Env/1: must be a string, not null"},
      {image(R"({"Entrypoint":"/bin/sh"})"), "/config/Entrypoint: must be an array, not a string"},
      {image(R"({"Entrypoint":[1]})"), "/config/Entrypoint/0: must be a string, not a number"},
      {image(R"({"Cmd":{}})"), "/config/Cmd: must be an array, not an object"},
      {image(R"({"Volumes":["/data"]})"), "/config/Volumes: must be an object, not an array"},
      {image(R"({"Volumes":{"/data":"x"}})"),
       "/config/Volumes/~1data: must be an object, not a string"},
      {image(R"({"ExposedPorts":80})"), "/config/ExposedPorts: must be an object, not a number"},
      {image(R"({"WorkingDir":false})"), "/config/WorkingDir: must be a string, not a boolean"},
      {image(R"({"Labels":["a"]})"), "/config/Labels: must be an object, not an array"},
      {image(R"({"Labels":{"a":1}})"), "/config/Labels/a: must be a string, not a number"},
      {image(R"({"StopSignal":15})"), "/config/StopSignal: must be a string, not a number"},
      {image("[]"), "/config: must be an object, not an array"},
      {R"({"architecture":"amd64","os":"linux"})", "/rootfs: is missing but required"},
      {R"({"architecture":"amd64","os":"linux","rootfs":null})",
       "/rootfs: is missing but required"},
      {R"({"architecture":"amd64","os":"linux","rootfs":{"type":"x","diff_ids":[]}})",
       "/rootfs/type: must be 'layers'"},
      {R"({"architecture":"amd64","os":"linux","rootfs":{"type":"layers"}})",
       "/rootfs/diff_ids: is missing"},
      {R"({"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:x"]}})",
       "/rootfs/diff_ids/0: a sha256"},
      {R"({"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[5]}})",
       "/rootfs/diff_ids/0: must be a digest"},
      {R"({"os":"linux","rootfs":{"type":"layers","diff_ids":[]}})", "/architecture: is missing"},
      {R"({"architecture":"amd64","rootfs":{"type":"layers","diff_ids":[]}})", "/os: is missing"},
      {R"({"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]},"history":{}})",
       "/history: must be an array"},
  };
  for (const auto& [json, message] : bad) expect_refused(parse_image_config(json), message);
}

TEST(ImageConfig, LayersAndDiffIdsAreAsMany) {
  const auto config = parse_image_config(image("{}"));
  const auto none = parse_manifest(manifest());
  const auto one = parse_manifest(manifest({}, descriptor("a/b")));
  ASSERT_TRUE(config.ok() && none.ok() && one.ok());
  EXPECT_TRUE(check_layers(one.value(), config.value()).ok());
  const auto differ = check_layers(none.value(), config.value());
  ASSERT_FALSE(differ.ok());
  EXPECT_EQ(differ.error().message(), "the manifest has 0 layers, but the image config 1 diff_ids");
}

}  // namespace
}  // namespace wherry::oci
