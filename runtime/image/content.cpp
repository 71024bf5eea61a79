#include "runtime/image/content.h"

#include <unistd.h>

#include "base/fault.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/image/digest.h"

namespace wherry::image {
namespace {
constexpr std::size_t kLargestDocument = std::size_t{4}
                                         << 20;  // bytes, as registries limit manifests

std::string blob_path(const oci::Digest& digest) {
  return cat(digest.algorithm, "/", digest.encoded);
}
}  // namespace

Result<Scratch> Scratch::make(int parent) {
  Scratch scratch{parent, random_hex(8)};
  TRY(sys::mkdirat(parent, scratch.name_, 0700));
  scratch.dir_ = TRY(open_dir_at(parent, scratch.name_));
  return scratch;
}

Scratch::Scratch(Scratch&& other) noexcept
    : parent_{other.parent_}, name_{std::exchange(other.name_, {})}, dir_{std::move(other.dir_)} {}

Scratch::~Scratch() {
  if (!name_.empty()) remove_tree(parent_, name_).ignore("the next sweep takes it");
}

Result<Content> Content::open(const std::string& root) {
  Content content;
  content.path_ = root + "/images";
  if (auto made = open_private_dir(root); !made.ok()) return std::move(made).error();
  content.top_ = TRY(open_private_dir(content.path_));
  content.blobs_ = TRY(make_dir_at(content.top_.get(), "blobs", 0700));
  content.layers_ = TRY(make_dir_at(content.top_.get(), "layers", 0700));
  content.refs_ = TRY(make_dir_at(content.top_.get(), "refs", 0700));
  content.tmp_ = TRY(make_dir_at(content.top_.get(), "tmp", 0700));
  for (const auto* algorithm : {"sha256", "sha512"}) {
    auto made = make_dir_at(content.blobs_.get(), algorithm, 0700);
    if (!made.ok()) return std::move(made).error();
  }
  return content;
}

Result<UniqueFd> Content::lock(LockKind kind, Deadline deadline) const {
  return lock_file_at(top_.get(), "lock", kind, deadline);
}

Result<UniqueFd> Content::lock_layer(const oci::Digest& chain, Deadline deadline) const {
  return lock_file_at(tmp_.get(), cat("layer.", layer_name(chain), ".lock"), LockKind::kExclusive,
                      deadline);
}

void Content::sweep_scratch() const {
  const auto names = list_dir(tmp_.get());
  if (!names.ok()) return;
  for (const auto& name : names.value())
    remove_tree(tmp_.get(), name).ignore("the next sweep tries again");
}

bool Content::has_blob(const oci::Digest& digest) const {
  return sys::fstatat(blobs_.get(), blob_path(digest)).ok();
}

bool Content::has_layer(const oci::Digest& chain) const {
  return sys::fstatat(layers_.get(), layer_name(chain)).ok();
}

Result<UniqueFd> Content::open_blob(const oci::Digest& digest) const {
  return sys::openat(blobs_.get(), blob_path(digest), O_RDONLY | O_NOFOLLOW);
}

Result<std::uint64_t> Content::blob_size(const oci::Digest& digest) const {
  return static_cast<std::uint64_t>(TRY(sys::fstatat(blobs_.get(), blob_path(digest))).st_size);
}

Result<std::string> Content::read_blob(const oci::Digest& digest) const {
  const auto blob = TRY_CTX(open_blob(digest), cat("blob ", digest.text()));
  return sys::read_to_end(blob.get(), kLargestDocument, digest.text());
}

namespace {

// A file in `tmp` that is taken away unless it was published.
struct Temporary {
  int dir;
  std::string name;
  bool published = false;
  ~Temporary() {
    if (!published) sys::unlinkat(dir, name, 0).ignore("the next sweep takes it");
  }
};

}  // namespace

// Copies `from`, hashing what is written, and gives it its name: only the one that is expected, if
// one is.
Result<> Content::publish_blob(int from, const oci::Digest* expected, oci::ImageDescriptor& found,
                               std::string_view subject) {
  Temporary temporary{tmp_.get(), cat("blob.", random_hex(8))};
  const auto into =
      TRY(sys::openat(tmp_.get(), temporary.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0400));
  const auto hashed = TRY(
      hash_file(from, expected != nullptr ? expected->algorithm : "sha256", into.get(), subject));
  found.digest = hashed.digest;
  found.size = hashed.size;
  if (expected != nullptr && found.digest != *expected)
    return Error::make(Code::kInvalid, cat("blob ", expected->text(), " is corrupt: its digest is ",
                                           found.digest.text()));
  if (has_blob(found.digest)) return {};
  TRY(sys::fsync(into.get(), subject));
  FAULT_POINT("image.blob.publish");
  TRY(sys::renameat2(tmp_.get(), temporary.name, blobs_.get(), blob_path(found.digest)));
  temporary.published = true;
  added_.blobs.insert(found.digest);
  return sys::fsync(TRY(open_dir_at(blobs_.get(), found.digest.algorithm)).get());
}

Result<> Content::put_blob(int from, const oci::Digest& expected, std::uint64_t expected_size) {
  const auto st = TRY(sys::fstat(from, expected.text()));
  if (static_cast<std::uint64_t>(st.st_size) != expected_size)
    return Error::make(Code::kInvalid, cat("blob ", expected.text(), " has ", st.st_size,
                                           " bytes, its descriptor says ", expected_size));
  if (has_blob(expected)) return {};
  oci::ImageDescriptor found;
  return publish_blob(from, &expected, found, expected.text());
}

Result<oci::ImageDescriptor> Content::put_unknown(int from, std::string_view subject) {
  oci::ImageDescriptor found;
  TRY(publish_blob(from, nullptr, found, subject));
  return found;
}

Result<oci::ImageDescriptor> Content::put_bytes(std::string_view bytes) {
  oci::ImageDescriptor descriptor;
  descriptor.digest = TRY(digest_of(bytes));
  descriptor.size = bytes.size();
  if (has_blob(descriptor.digest)) return descriptor;
  const auto dir = TRY(open_dir_at(blobs_.get(), descriptor.digest.algorithm));
  TRY(write_file_atomic(dir.get(), descriptor.digest.encoded, bytes, 0400));
  added_.blobs.insert(descriptor.digest);
  return descriptor;
}

Result<> Content::publish_layer(int from, const std::string& name, const oci::Digest& chain) {
  if (::syncfs(from) < 0) return Error::sys("syncfs", name);
  FAULT_POINT("image.layer.publish");
  TRY(sys::renameat2(from, name, layers_.get(), layer_name(chain), RENAME_NOREPLACE));
  added_.layers.insert(layer_name(chain));
  return sys::fsync(layers_.get(), "layers");
}

Result<> Content::remove_all_but(const Marked& marked) const {
  for (const auto& name : TRY(list_dir(layers_.get())))
    if (!marked.layers.contains(name)) TRY(remove_tree(layers_.get(), name));
  for (const auto& algorithm : TRY(list_dir(blobs_.get()))) {
    const auto dir = TRY(open_dir_at(blobs_.get(), algorithm));
    for (const auto& name : TRY(list_dir(dir.get())))
      if (!marked.blobs.contains({algorithm, name})) TRY(sys::unlinkat(dir.get(), name, 0));
  }
  return {};
}

Result<> Content::remove_added_but(const Marked& marked) {
  for (const auto& name : added_.layers)
    if (!marked.layers.contains(name)) TRY(remove_tree(layers_.get(), name));
  for (const auto& digest : added_.blobs)
    if (!marked.blobs.contains(digest)) TRY(sys::unlinkat(blobs_.get(), blob_path(digest), 0));
  added_ = {};
  return {};
}

}  // namespace wherry::image
