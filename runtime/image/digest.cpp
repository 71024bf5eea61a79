#include "runtime/image/digest.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "base/sys.h"
#include "base/text.h"

namespace wherry::image {

void Hasher::Free::operator()(void* context) const {
  ::EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context));
}

Result<Hasher> Hasher::create(const std::string& algorithm) {
  const EVP_MD* kind = algorithm == "sha256"   ? ::EVP_sha256()
                       : algorithm == "sha512" ? ::EVP_sha512()
                                               : nullptr;
  if (kind == nullptr)
    return Error::make(Code::kUnsupported, cat("no digest algorithm ", in_quotes(algorithm)));
  Hasher hasher{algorithm, ::EVP_MD_CTX_new()};
  if (!hasher.context_ ||
      ::EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(hasher.context_.get()), kind, nullptr) != 1)
    return Error::make(Code::kSystem, cat("cannot start ", algorithm));
  return hasher;
}

void Hasher::update(std::string_view bytes) {
  const int ok =
      ::EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_.get()), bytes.data(), bytes.size());
  CHECK(ok == 1, "a started digest takes any bytes");
}

oci::Digest Hasher::finish() && {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned size = 0;
  const int ok = ::EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_.get()), sum.data(), &size);
  CHECK(ok == 1, "a started digest ends");
  return {algorithm_, hex({reinterpret_cast<const char*>(sum.data()), size})};
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
