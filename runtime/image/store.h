// The image store: content by digest, layers unpacked once, references. Safe for any number of
// processes at once.
//   <root>/images/blobs/<algorithm>/<hex>    content, verified, read-only
//   <root>/images/layers/<chain id hex>/fs   an unpacked layer (overlayfs whiteouts), published by
//   rename <root>/images/refs/<name>                reference -> manifest digest; '/' in the name
//   is '%' here <root>/images/tmp/                       what is being imported; swept when nobody
//   imports <root>/images/lock                       shared by imports, exclusive for removal
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "oci/image.h"

namespace wherry::image {

class Content;

struct Image {
  std::vector<std::string>
      names;           // normalised: "docker.io/library/busybox:latest", "localhost/web:1"
  oci::Digest digest;  // of the manifest
  oci::ImageConfig config;
  std::vector<std::string>
      layer_dirs;          // absolute, lowest first: the lower directories of an overlay
  std::uint64_t size = 0;  // bytes of its blobs
};

struct Use {           // of an image, by a pod
  std::string digest;  // of the manifest
  std::string user;    // "pod 'web'", for the message
};

// The full form under which a name is stored: "web" -> "localhost/web:latest", "docker.io/busybox"
// -> "docker.io/library/busybox:latest". kInvalid for what is no name by the grammar of
// distribution references. Looking up guesses no registry: find("web") means any stored image whose
// last components and tag match, and is ambiguous (kInvalid, listing them) when there are several.
Result<std::string> normalise_reference(std::string_view text);

class Store {
 public:
  static Result<Store> open(
      const std::string& root);  // 0700 directories, made when missing (SEC-62)

  // Finds out what `path` is: an OCI layout (directory or tar), a docker-archive, or a root file
  // system (tar, any compression libarchive reads, or directory). Digests are verified, layers
  // shared; a failure leaves nothing. `reference` names the image; empty: the archive's own names,
  // or one made of the file's name. Of several images in one archive it picks one by its own name;
  // without it all are imported.
  Result<std::vector<Image>> import(const std::string& path, const std::string& reference);

  Result<std::vector<Image>> list() const;
  // By name, by "sha256:...", or by at least 4 digits that only one digest starts with. kNotFound
  // hints at what is near.
  Result<Image> find(const std::string& name_or_digest) const;
  // Takes the name away (all names, when a digest was given) and gives back what it took; content
  // goes when no name and no user holds it. kBusy names the users when the image would have no name
  // left and has a user.
  Result<std::vector<std::string>> remove(const std::string& name_or_digest,
                                          const std::vector<Use>& in_use);

 private:
  explicit Store(std::shared_ptr<Content> content) : content_{std::move(content)} {}
  std::shared_ptr<Content> content_;
};

}  // namespace wherry::image
