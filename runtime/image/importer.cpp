#include "runtime/image/importer.h"

#include "base/sys.h"
#include "base/text.h"
#include "runtime/image/archive_tree.h"
#include "runtime/image/extractor.h"
#include "runtime/image/import_parts.h"
#include "runtime/image/store.h"

namespace wherry::image {
namespace {

using ImportTree = Result<std::vector<Imported>> (*)(Content&, int, const std::string&,
                                                     const std::string&);

// Documents and blobs of the archive as files of our own: an archive may name a blob before or
// after what refers to it.
Result<std::vector<Imported>> import_members(Content& content, int tar, const std::string& path,
                                             const std::string& reference, ImportTree import_tree) {
  const auto scratch = TRY(Scratch::make(content.tmp()));
  auto reader = TRY(TarReader::open(tar, path));
  Extractor extractor{scratch.fd(), -1, Whiteouts::kNone};
  TRY(extract_all(reader, extractor));
  return import_tree(content, scratch.fd(), reference, stem(path));
}

}  // namespace

Result<std::vector<Imported>> import_archive(Content& content, const std::string& path,
                                             const std::string& reference) {
  if (!reference.empty()) TRY(normalise_reference(reference));
  const auto file = TRY(sys::openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  const bool directory = S_ISDIR(TRY(sys::fstat(file.get(), path)).st_mode);
  const auto import = [&](ImportTree import_tree) {
    return directory ? import_tree(content, file.get(), reference, stem(path))
                     : import_members(content, file.get(), path, reference, import_tree);
  };
  switch (TRY(tell_kind(file.get(), path))) {
    case ArchiveKind::kOciLayout:
      return import(import_layout);
    case ArchiveKind::kDockerArchive:
      return import(import_docker);
    case ArchiveKind::kRootTar:
      return import_root(content, file.get(), path, reference);
    case ArchiveKind::kRootDirectory:
      return import_root_directory(content, file.get(), path, reference);
  }
  CHECK(false, "every kind is listed");
  return Error::make(Code::kInvalid, path);
}

}  // namespace wherry::image
