// Hashing of content (nettle stands behind this header only).
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
  struct Kind;   // a hash of nettle's
  struct State;  // its context
  struct Free {
    void operator()(State* state) const;
  };
  Hasher(std::string algorithm, const Kind& kind);
  static const Kind* find(const std::string& algorithm);
  std::string algorithm_;
  const Kind* kind_;
  std::unique_ptr<State, Free> state_;
};

Result<oci::Digest> digest_of(std::string_view bytes);  // sha256

struct Hashed {
  oci::Digest digest;
  std::uint64_t size = 0;  // bytes
};
// From the start of the open file to its end; `into` >= 0 gets a copy.
Result<Hashed> hash_file(int fd, const std::string& algorithm, int into, std::string_view subject);

}  // namespace wherry::image
