#include "runtime/image/store.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "runtime/image/content.h"
#include "runtime/image/loaded.h"
#include "runtime/image/refs.h"

namespace wherry::image {
namespace {

constexpr std::size_t kShortestPrefix = 4;

// What someone means by a name or digest: one digest, and the names by which it was meant (none for
// a digest).
struct Meant {
  oci::Digest digest;
  std::vector<std::string> names;
};

Error ambiguous(std::string_view asked, const std::vector<std::string>& choices) {
  return Error::make(Code::kInvalid, cat(in_quotes(asked), " can mean ", join(choices, ", ")))
      .hint("say more of the name");
}

Error not_found(const Refs& refs, const std::string& asked) {
  constexpr std::size_t kMostNamed = 8;
  const auto last = asked.substr(asked.rfind('/') == std::string::npos ? 0 : asked.rfind('/') + 1);
  const auto word = last.substr(0, last.find_first_of(":@"));
  std::vector<std::string> near, all;
  for (const auto& [name, digest] : refs) {
    if (!word.empty() && name.find(word) != std::string::npos && near.size() < kMostNamed)
      near.push_back(name);
    if (all.size() < kMostNamed) all.push_back(name);
  }
  auto error = Error::make(Code::kNotFound, cat("no image ", in_quotes(asked)));
  if (all.empty()) return std::move(error).hint("the store is empty: wherry image import FILE");
  return std::move(error).hint(
      cat("there ", near.empty() ? "are " : "is ", join(near.empty() ? all : near, ", ")));
}

Result<std::optional<Meant>> meant_by_name(const Refs& refs, const std::string& asked) {
  const auto reference = parse_reference(asked);
  if (!reference.ok()) return std::optional<Meant>{};
  std::vector<std::string> names;
  std::set<oci::Digest> digests;
  for (const auto& [name, digest] : refs) {
    if (!matches(name, reference.value())) continue;
    if (!reference.value().digest.empty() && reference.value().digest != digest.text()) continue;
    names.push_back(name);
    digests.insert(digest);
  }
  // A name in full is not ambiguous because it also ends a longer one.
  if (const auto exact = normalise_reference(asked); exact.ok() && digests.size() > 1 &&
                                                     refs.contains(exact.value()) &&
                                                     asked.find('/') != std::string::npos)
    return std::optional<Meant>{Meant{refs.at(exact.value()), {exact.value()}}};
  if (digests.size() > 1) return ambiguous(asked, names);
  if (digests.empty()) return std::optional<Meant>{};
  return std::optional<Meant>{Meant{*digests.begin(), names}};
}

Result<std::optional<Meant>> meant_by_digest(const Content& content, const Refs& refs,
                                             const std::string& asked) {
  // A whole digest may have lost its name to a newer image while a pod goes on using it.
  if (const auto whole = oci::parse_digest(asked); whole.ok() && content.has_blob(whole.value()))
    return std::optional<Meant>{Meant{whole.value(), {}}};
  const auto colon = asked.find(':');
  const auto start = colon == std::string::npos ? asked : asked.substr(colon + 1);
  const auto algorithm = colon == std::string::npos ? std::string{} : asked.substr(0, colon);
  if (start.size() < kShortestPrefix ||
      start.find_first_not_of("0123456789abcdef") != std::string::npos)
    return std::optional<Meant>{};
  std::set<oci::Digest> found;
  for (const auto& [name, digest] : refs)
    if (digest.encoded.starts_with(start) && (algorithm.empty() || digest.algorithm == algorithm))
      found.insert(digest);
  if (found.empty()) return std::optional<Meant>{};
  if (found.size() == 1) return std::optional<Meant>{Meant{*found.begin(), {}}};
  std::vector<std::string> choices;
  for (const auto& digest : found) choices.push_back(digest.text());
  return ambiguous(asked, choices);
}

Result<Meant> resolve(const Content& content, const Refs& refs, const std::string& asked) {
  const bool digest_only = asked.starts_with("sha256:") || asked.starts_with("sha512:");
  if (!digest_only)
    if (auto meant = TRY(meant_by_name(refs, asked))) return std::move(*meant);
  if (auto meant = TRY(meant_by_digest(content, refs, asked))) return std::move(*meant);
  return not_found(refs, asked);
}

}  // namespace

Result<Store> Store::open(const std::string& root) {
  return Store{std::make_shared<Content>(
      TRY_CTX(Content::open(root), cat("image store ", in_quotes(root))))};
}

Result<std::vector<Image>> Store::list() const {
  const auto lock = TRY(content_->lock(LockKind::kShared, Deadline::in(kLockWait)));
  const auto refs = TRY(read_refs(*content_));
  std::set<oci::Digest> digests;
  for (const auto& [name, digest] : refs) digests.insert(digest);
  std::vector<Image> images;
  for (const auto& digest : digests)
    images.push_back(TRY_CTX(load(*content_, digest, refs), cat("image ", digest.text())).image);
  std::sort(images.begin(), images.end(),
            [](const Image& a, const Image& b) { return a.names < b.names; });
  return images;
}

Result<Image> Store::find(const std::string& name_or_digest) const {
  const auto lock = TRY(content_->lock(LockKind::kShared, Deadline::in(kLockWait)));
  const auto refs = TRY(read_refs(*content_));
  const auto meant = TRY(resolve(*content_, refs, name_or_digest));
  return TRY_CTX(load(*content_, meant.digest, refs), cat("image ", in_quotes(name_or_digest)))
      .image;
}

Result<std::vector<std::string>> Store::remove(const std::string& name_or_digest,
                                               const std::vector<Use>& in_use) {
  const auto lock = TRY(content_->lock(LockKind::kExclusive, Deadline::in(kLockWait)));
  const auto refs = TRY(read_refs(*content_));
  auto meant = TRY(resolve(*content_, refs, name_or_digest));
  std::vector<std::string> names;
  for (const auto& [name, digest] : refs)
    if (digest == meant.digest) names.push_back(name);
  if (meant.names.size() > 1) return ambiguous(name_or_digest, meant.names);
  if (meant.names.empty()) meant.names = names;

  std::vector<std::string> users;
  for (const auto& use : in_use)
    if (use.digest == meant.digest.text()) users.push_back(use.user);
  if (meant.names.size() == names.size() && !users.empty())
    return Error::make(Code::kBusy,
                       cat("image ", in_quotes(name_or_digest), " is used by ", join(users, ", ")));
  for (const auto& name : meant.names) TRY(remove_ref(*content_, name));
  TRY(content_->remove_all_but(TRY(mark(*content_, in_use))));
  content_->sweep_scratch();
  return std::move(meant.names);
}

}  // namespace wherry::image
