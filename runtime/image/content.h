// The directories of the store: content by digest, layers by chain id, scratch space, the lock.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/file.h"
#include "base/result.h"
#include "oci/image.h"

namespace wherry::image {

// A directory of our own in the store, gone with the object.
class Scratch {
 public:
  static Result<Scratch> make(int parent);  // `parent` stays open as long
  Scratch(Scratch&& other) noexcept;
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch();
  int fd() const { return dir_.get(); }
  const std::string& name() const { return name_; }

 private:
  Scratch(int parent, std::string name) : parent_{parent}, name_{std::move(name)} {}
  int parent_;
  std::string name_;
  UniqueFd dir_;
};

class Content {
 public:
  static Result<Content> open(
      const std::string& root);  // the store's: ".../images" is made below it

  const std::string& path() const { return path_; }  // absolute, ".../images"
  int layers() const { return layers_.get(); }
  int refs() const { return refs_.get(); }
  int tmp() const { return tmp_.get(); }

  // Held shared while something is imported or looked up, exclusively while content is taken away.
  Result<UniqueFd> lock(LockKind kind, Deadline deadline) const;
  Result<UniqueFd> lock_layer(const oci::Digest& chain, Deadline deadline) const;
  void sweep_scratch() const;  // under the exclusive lock: what killed imports have left

  bool has_blob(const oci::Digest& digest) const;
  Result<UniqueFd> open_blob(const oci::Digest& digest) const;
  Result<std::uint64_t> blob_size(const oci::Digest& digest) const;
  Result<std::string> read_blob(const oci::Digest& digest) const;  // of a document: at most 4 MiB
  // Copies the open regular file `from`; published only when it is what was expected.
  Result<> put_blob(int from, const oci::Digest& expected, std::uint64_t expected_size);
  Result<oci::ImageDescriptor> put_unknown(int from,
                                           std::string_view subject);  // digest and size come back
  Result<oci::ImageDescriptor> put_bytes(std::string_view bytes);
  // The scratch directory `name` in `from` becomes the layer, on disk before it has the name.
  Result<> publish_layer(int from, const std::string& name, const oci::Digest& chain);
  // What keeps content in the store; digests of blobs and chain ids of layers.
  struct Marked {
    std::set<oci::Digest> blobs;
    std::set<std::string> layers;  // directory names
  };
  // Both under the exclusive lock: everything that is not marked; of that only what this object has
  // put there.
  Result<> remove_all_but(const Marked& marked) const;
  Result<> remove_added_but(const Marked& marked);

  static std::string layer_name(const oci::Digest& chain) { return chain.encoded; }
  std::string layer_dir(const oci::Digest& chain) const {
    return path_ + "/layers/" + layer_name(chain) + "/fs";
  }
  bool has_layer(const oci::Digest& chain) const;

 private:
  Content() = default;
  Result<> publish_blob(int from, const oci::Digest* expected, oci::ImageDescriptor& found,
                        std::string_view subject);
  std::string path_;
  UniqueFd top_, blobs_, layers_, refs_, tmp_;
  Marked added_;
};

}  // namespace wherry::image
