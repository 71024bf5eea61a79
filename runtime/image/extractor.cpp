#include "runtime/image/extractor.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/image/metadata.h"

namespace wherry::image {
namespace {

constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";
constexpr std::string_view kAufs = ".wh..wh.";  // bookkeeping of aufs that old images carry along

Error refused(std::string_view why) {
  return Error::make(Code::kInvalid, std::string{why});
}

Result<std::vector<std::string>> checked_components(const std::string& path) {
  if (path.empty()) return refused("the name is empty");
  auto parts = components(path);
  for (const auto& part : parts)
    if (part == "..") return refused("the name has '..' in it");
  return parts;
}

}  // namespace

Result<> extract_all(TarReader& reader, Extractor& extractor) {
  while (auto entry = TRY(reader.next())) TRY(extractor.add(*entry, reader));
  return extractor.finish();
}

Result<> Extractor::add(const TarEntry& entry, TarReader& reader) {
  const auto what = [&] { return cat("archive entry ", in_quotes(entry.path)); };
  auto parts = TRY_CTX(checked_components(entry.path), what());
  if (parts.empty()) return TRY_CTX(add_root(entry), what()), Result<>{};
  TRY_CTX(add_entry(std::move(parts), entry, reader), what());
  return {};
}

Result<> Extractor::add_entry(std::vector<std::string> parts, const TarEntry& entry,
                              TarReader& reader) {
  if (whiteouts_ == Whiteouts::kOverlay) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool last = i + 1 == parts.size();
      if (!parts[i].starts_with(kWhiteout) || (last && parts[i] == kOpaque)) continue;
      if (parts[i].starts_with(kAufs)) return {};
      if (!last) return refused("it lies below a whiteout");
    }
    if (parts.back().starts_with(kWhiteout)) {
      if (!entry.hardlink && !S_ISREG(entry.mode))
        return refused("a whiteout must be a regular file");
      return add_whiteout(parts);
    }
  }
  if (entry.hardlink) return add_hardlink(parts, entry);
  const auto at = TRY(target(std::move(parts)));
  if (S_ISDIR(entry.mode)) return add_directory(at, entry);
  if (S_ISREG(entry.mode)) return add_file(at, entry, reader);
  return add_node(at, entry);
}

Result<> Extractor::add_root(const TarEntry& entry) {
  if (entry.hardlink || !S_ISDIR(entry.mode)) return refused("the root must be a directory");
  tree_.set_time_later(".", entry.mtime);
  return set_metadata(tree_.root(), entry);
}

Result<Extractor::Target> Extractor::target(std::vector<std::string> parts) {
  Target at;
  at.name = std::move(parts.back());
  parts.pop_back();
  at.dir = TRY(tree_.directory(parts));
  return at;
}

// Takes away what stands at the place of the new entry.
Result<Extractor::Before> Extractor::clear(const Target& at) {
  const auto st = TRY(look(at.dir, at.name));
  if (!st) return Before::kNothing;
  tree_.forget();
  if (!S_ISDIR(st->st_mode)) {
    TRY(sys::unlinkat(at.dir, at.name, 0));
    return is_whiteout(*st) ? Before::kWhiteout : Before::kSomething;
  }
  TRY(remove_tree(at.dir, at.name));
  return Before::kSomething;
}

Result<> Extractor::add_directory(const Target& at, const TarEntry& entry) {
  const auto st = TRY(look(at.dir, at.name));
  if (!st || !S_ISDIR(st->st_mode)) {
    const auto before = TRY(clear(at));
    TRY(sys::mkdirat(at.dir, at.name, 0700));
    // Its whiteout said that what lower layers have there is gone.
    if (before == Before::kWhiteout)
      TRY(tree_.make_opaque(
          TRY(sys::openat(at.dir, at.name, O_PATH | O_DIRECTORY | O_NOFOLLOW)).get()));
  }
  const auto dir = TRY(sys::openat(at.dir, at.name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  tree_.set_time_later(entry.path, entry.mtime);
  return set_metadata(dir.get(), entry);
}

Result<> Extractor::add_file(const Target& at, const TarEntry& entry, TarReader& reader) {
  TRY(clear(at));
  const auto file =
      TRY(sys::openat(at.dir, at.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  std::uint64_t position = 0;
  while (const auto block = TRY(reader.next_block())) {
    if (block->offset < position || block->offset > entry.size ||
        block->bytes.size() > entry.size - block->offset)
      return refused("its blocks are out of order or beyond its size");
    if (block->offset != position &&
        ::lseek(file.get(), static_cast<off_t>(block->offset), SEEK_SET) < 0)
      return Error::sys("lseek");
    TRY(sys::write_all(file.get(), block->bytes));
    position = block->offset + block->bytes.size();
  }
  if (position != entry.size)
    TRY(sys::ftruncate(file.get(), static_cast<off_t>(entry.size)));  // ends in a hole
  return set_metadata(file.get(), entry);
}

Result<> Extractor::add_node(const Target& at, const TarEntry& entry) {
  const mode_t type = entry.mode & S_IFMT;
  const bool device = S_ISCHR(type) || S_ISBLK(type);
  if (!device && !S_ISFIFO(type) && !S_ISLNK(type))
    return refused("it is of a type that has no place in an image");
  if (device && entry.rdev == makedev(0, 0)) return refused("device 0:0 is overlayfs's whiteout");
  TRY(clear(at));
  if (S_ISLNK(type)) {
    TRY(sys::symlinkat(entry.linkname, at.dir, at.name));
  } else {
    // Devices of an image are made: a container can use none that its device program does not
    // allow.
    TRY(sys::mknodat(at.dir, at.name, type | 0600, device ? entry.rdev : 0));
  }
  const auto node = TRY(sys::openat(at.dir, at.name, O_PATH | O_NOFOLLOW));
  return set_metadata(node.get(), entry);
}

// The link's own header repeats the attributes of the file: they were set with the file.
Result<> Extractor::add_hardlink(const std::vector<std::string>& parts, const TarEntry& entry) {
  if (entry.size != 0) return refused("a hard link with content");
  auto from_parts =
      TRY_CTX(checked_components(entry.linkname), cat("hard link to ", in_quotes(entry.linkname)));
  if (from_parts.empty()) return refused("a hard link to the root");
  const auto from = TRY(target(std::move(from_parts)));
  if (!TRY(look(from.dir, from.name)) && tree_.has_below()) TRY(copy_up(from));
  const auto st = TRY(look(from.dir, from.name));
  if (!st || is_whiteout(*st)) return Error::sys("link", entry.linkname, ENOENT);
  if (S_ISDIR(st->st_mode)) return refused("a hard link to a directory");
  const auto source = TRY(sys::openat(
      from.dir, ".", O_PATH | O_DIRECTORY));  // `from.dir` is valid until the next target()
  const auto at = TRY(target(parts));
  if (const auto there = TRY(look(at.dir, at.name));
      there && there->st_dev == st->st_dev && there->st_ino == st->st_ino)
    return {};
  TRY(clear(at));
  return sys::linkat(source.get(), from.name, at.dir, at.name,
                     0);  // no AT_SYMLINK_FOLLOW: a link to a link is to the link
}

// A regular file of a lower layer into this one, so that it can be linked to.
Result<> Extractor::copy_up(const Target& at) {
  const auto found = TRY(tree_.lower(at.dir, at.name));
  const auto st = TRY(sys::fstat(found.get(), at.name));
  if (!S_ISREG(st.st_mode))
    return Error::make(Code::kUnsupported, cat("a hard link to ", in_quotes(at.name),
                                               " of a lower layer, which is not a file"));
  const auto from = TRY(sys::openat(AT_FDCWD, fd_path(found.get()), O_RDONLY));
  const auto into =
      TRY(sys::openat(at.dir, at.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  TRY(hash_file(from.get(), "sha256", into.get(), at.name));
  return set_metadata(into.get(), TRY(metadata_of(from.get(), at.name)));
}

Result<> Extractor::add_whiteout(const std::vector<std::string>& parts) {
  // Some writers follow the whiteout of a directory, or a file in its place, by whiteouts of what
  // was in there.
  auto dir = tree_.directory({parts.begin(), parts.end() - 1}, LayerTree::Missing::kFail);
  if (!dir.ok() && (dir.error().sys_errno() == ENOENT || dir.error().sys_errno() == ENOTDIR))
    return {};
  Target at;
  at.dir = TRY(std::move(dir));
  at.name = parts.back();
  if (at.name == kOpaque) {
    if (parts.size() > 1) return tree_.make_opaque(at.dir);
    // overlayfs merges the roots of layers whatever their attributes say.
    for (auto& name : TRY(tree_.lower_names())) TRY(hide({at.dir, std::move(name)}));
    return {};
  }
  at.name.erase(0, kWhiteout.size());
  if (at.name.empty() || at.name == "." || at.name == "..") return refused("a whiteout of nothing");
  return hide(at);
}

// A whiteout is about lower layers only: what this layer itself has at the name stays, before or
// after in the archive.
Result<> Extractor::hide(const Target& at) {
  if (const auto st = TRY(look(at.dir, at.name))) {
    if (!S_ISDIR(st->st_mode)) return {};
    return tree_.make_opaque(
        TRY(sys::openat(at.dir, at.name, O_PATH | O_DIRECTORY | O_NOFOLLOW)).get());
  }
  if (!TRY(tree_.covers(at.dir, at.name))) return {};
  return sys::mknodat(at.dir, at.name, S_IFCHR | 0600, makedev(0, 0));
}

}  // namespace wherry::image
