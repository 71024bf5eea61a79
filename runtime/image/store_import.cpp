#include "base/text.h"
#include "runtime/image/content.h"
#include "runtime/image/importer.h"
#include "runtime/image/loaded.h"
#include "runtime/image/refs.h"
#include "runtime/image/store.h"

namespace wherry::image {
namespace {

// A failed import leaves nothing but what another one has come to share.
Result<> undo(Content& content) {
  const auto lock = TRY(content.lock(LockKind::kExclusive, Deadline::in(kLockWait)));
  return content.remove_added_but(TRY(mark(content, {})));
}

Result<std::vector<Imported>> import_and_name(Content& content, const std::string& path,
                                              const std::string& reference) {
  auto imported = TRY(import_archive(content, path, reference));
  for (const auto& named : imported)
    for (const auto& name : named.names) TRY(write_ref(content, name, named.digest));
  return imported;
}

}  // namespace

Result<std::vector<Image>> Store::import(const std::string& path, const std::string& reference) {
  const auto what = [&] { return cat("import ", in_quotes(path)); };
  // When nobody else is at work, what killed imports have left is taken away first.
  if (const auto alone = content_->lock(LockKind::kExclusive, Deadline::in(Millis{0})); alone.ok())
    content_->sweep_scratch();
  auto lock = TRY_CTX(content_->lock(LockKind::kShared, Deadline::in(kLockWait)), what());
  auto imported = import_and_name(*content_, path, reference);
  if (!imported.ok()) {
    lock.reset();
    undo(*content_).ignore("the first error is the one to tell; the next removal takes the rest");
    return std::move(imported).error().context(what());
  }
  const auto refs = TRY(read_refs(*content_));
  std::vector<Image> images;
  for (const auto& named : imported.value())
    images.push_back(TRY_CTX(load(*content_, named.digest, refs), what()).image);
  return images;
}

}  // namespace wherry::image
