#include "runtime/image/digest.h"

#include <nettle/sha2.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "base/sys.h"
#include "base/text.h"

namespace wherry::image {

struct Hasher::State {
  union {
    struct sha256_ctx sha256;
    struct sha512_ctx sha512;
  };
};

struct Hasher::Kind {
  const char* name;
  std::size_t size;  // of the digest, bytes
  void (*start)(State&);
  void (*update)(State&, std::size_t, const std::uint8_t*);
  void (*finish)(State&, std::size_t, std::uint8_t*);
};

void Hasher::Free::operator()(State* state) const {
  delete state;
}

const Hasher::Kind* Hasher::find(const std::string& algorithm) {
  using Size = std::size_t;
  static constexpr Kind kKinds[] = {
      {"sha256", SHA256_DIGEST_SIZE, [](State& s) { ::sha256_init(&s.sha256); },
       [](State& s, Size n, const std::uint8_t* from) { ::sha256_update(&s.sha256, n, from); },
       [](State& s, Size n, std::uint8_t* to) { ::sha256_digest(&s.sha256, n, to); }},
      {"sha512", SHA512_DIGEST_SIZE, [](State& s) { ::sha512_init(&s.sha512); },
       [](State& s, Size n, const std::uint8_t* from) { ::sha512_update(&s.sha512, n, from); },
       [](State& s, Size n, std::uint8_t* to) { ::sha512_digest(&s.sha512, n, to); }},
  };
  for (const auto& kind : kKinds)
    if (algorithm == kind.name) return &kind;
  return nullptr;
}

Hasher::Hasher(std::string algorithm, const Kind& kind)
    : algorithm_{std::move(algorithm)}, kind_{&kind}, state_{new State} {
  kind_->start(*state_);
}

Result<Hasher> Hasher::create(const std::string& algorithm) {
  const auto* kind = find(algorithm);
  if (kind == nullptr)
    return Error::make(Code::kUnsupported, cat("no digest algorithm ", in_quotes(algorithm)))
        .hint("sha256 and sha512 are known");
  return Hasher{algorithm, *kind};
}

void Hasher::update(std::string_view bytes) {
  kind_->update(*state_, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
}

oci::Digest Hasher::finish() && {
  std::array<std::uint8_t, SHA512_DIGEST_SIZE> sum{};
  kind_->finish(*state_, kind_->size, sum.data());
  return {algorithm_, hex({reinterpret_cast<const char*>(sum.data()), kind_->size})};
}

Result<oci::Digest> digest_of(std::string_view bytes) {
  auto hasher = TRY(Hasher::create());
  hasher.update(bytes);
  return std::move(hasher).finish();
}

Result<Hashed> hash_file(int fd, const std::string& algorithm, int into, std::string_view subject) {
  auto hasher = TRY(Hasher::create(algorithm));
  std::vector<char> buffer(1 << 18);
  Hashed result;
  if (::lseek(fd, 0, SEEK_SET) < 0) return Error::sys("lseek", subject);
  while (const auto got = TRY(sys::read(fd, buffer, subject))) {
    const std::string_view bytes{buffer.data(), got};
    hasher.update(bytes);
    result.size += got;
    if (into >= 0) TRY(sys::write_all(into, bytes, subject));
  }
  result.digest = std::move(hasher).finish();
  return result;
}

}  // namespace wherry::image
