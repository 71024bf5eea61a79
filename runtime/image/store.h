// The image store: content by digest, layers unpacked once, references. Safe for any number of processes at once.
//   <root>/images/blobs/<algorithm>/<hex>    content, verified, read-only
//   <root>/images/layers/<chain id hex>/fs   an unpacked layer (overlayfs whiteouts), published by rename
//   <root>/images/refs/...                   reference -> manifest digest, one file each
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "oci/image.h"

namespace wherry::image {

struct Image {
  std::vector<std::string> names;          // normalised: "docker.io/library/busybox:latest", "localhost/web:1"
  oci::Digest digest;                      // of the manifest
  oci::ImageConfig config;
  std::vector<std::string> layer_dirs;     // absolute, lowest first: the lower directories of an overlay
  std::uint64_t size = 0;                  // bytes of its blobs
};

// "busybox" -> "localhost/busybox:latest" is NOT guessed: a bare name means any stored image whose last components and
// tag match, and is ambiguous (kInvalid, listing them) when there are several.
Result<std::string> normalise_reference(std::string_view text);

class Store {
 public:
  static Result<Store> open(const std::string& root);  // 0700 directories, made when missing (SEC-62)

  // Finds out what `path` is: an OCI layout (directory or tar), a docker-archive, or a root file system (tar, any
  // compression libarchive reads, or directory). Digests are verified, layers shared; a failure leaves nothing.
  // Several images in one archive need `reference` to pick one or are all imported under their own names.
  Result<std::vector<Image>> import(const std::string& path, const std::string& reference);

  Result<std::vector<Image>> list() const;
  Result<Image> find(const std::string& name_or_digest) const;  // kNotFound names what is there that is near
  // Takes the name away; content goes when no name and no user holds it. kBusy names the pods that use it.
  Result<> remove(const std::string& name_or_digest, const std::vector<std::string>& digests_in_use);
};

}  // namespace wherry::image
