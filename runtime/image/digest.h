// Hashing of content (OpenSSL stands behind this header only).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "oci/image.h"

namespace wherry::image {

class Hasher {
 public:
  // "sha256" or "sha512": the registered algorithms of the image-spec (descriptor.md, "Digests").
  static Result<Hasher> create(const std::string& algorithm = "sha256");
  void update(std::string_view bytes);
  oci::Digest finish() &&;

 private:
  struct Free {
    void operator()(void* context) const;
  };
  Hasher(std::string algorithm, void* context)
      : algorithm_{std::move(algorithm)}, context_{context} {}
  std::string algorithm_;
  std::unique_ptr<void, Free> context_;
};

Result<oci::Digest> digest_of(std::string_view bytes);  // sha256

struct Hashed {
  oci::Digest digest;
  std::uint64_t size = 0;  // bytes
};
// From the start of the open file to its end; `into` >= 0 gets a copy.
Result<Hashed> hash_file(int fd, const std::string& algorithm, int into, std::string_view subject);

}  // namespace wherry::image
