#include "runtime/image/archive_tree.h"

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/image/tar_reader.h"

namespace wherry::image {
namespace {

// The top of a root file system (hier(7)). Image archives have none of these, so that telling a big
// root file system does not take reading all of it.
constexpr std::array<std::string_view, 19> kRootNames{
    "bin",  "boot", "dev", "etc",  "home", "lib", "lib64", "media", "mnt", "opt",
    "proc", "root", "run", "sbin", "srv",  "sys", "tmp",   "usr",   "var"};

// Of these a root file system has one at least; a directory of the host's that was given by mistake
// may well have "tmp" or "home".
constexpr std::array<std::string_view, 6> kSystemNames{"bin", "etc", "lib", "lib64", "sbin", "usr"};

struct Seen {
  bool layout = false, index = false, docker = false, root = false, any = false;
  bool system = false;  // what makes a directory the root of a system, rather than any directory

  void add(const std::vector<std::string>& parts) {
    if (parts.empty()) return;
    any = true;
    if (parts.size() == 1) {
      layout |= parts[0] == "oci-layout";
      index |= parts[0] == "index.json";
      docker |= parts[0] == "manifest.json";
    }
    system |= std::find(kSystemNames.begin(), kSystemNames.end(), parts[0]) != kSystemNames.end();
    root |= std::find(kRootNames.begin(), kRootNames.end(), parts[0]) != kRootNames.end();
  }
  Result<ArchiveKind> kind(ArchiveKind plain, const std::string& subject) const {
    if (root) return plain;
    if (layout && index) return ArchiveKind::kOciLayout;
    if (docker) return ArchiveKind::kDockerArchive;
    if (any) return plain;
    return Error::make(Code::kInvalid, cat(in_quotes(subject), " is empty"));
  }
};

bool is_layout(int fd, const std::string& name) {
  const auto st = sys::fstatat(fd, cat(name, "/oci-layout"), AT_SYMLINK_NOFOLLOW);
  return st.ok() && S_ISREG(st.value().st_mode);
}

Error no_image(int fd, const std::vector<std::string>& names, const std::string& subject) {
  auto error = Error::make(
      Code::kInvalid,
      cat(in_quotes(subject),
          " is neither an OCI layout (it has no 'oci-layout') nor a root file "
          "system (it has none of ",
          join(std::vector<std::string>{kSystemNames.begin(), kSystemNames.end()}, ", "), ")"));
  const auto below = std::find_if(names.begin(), names.end(),
                                  [&](const auto& name) { return is_layout(fd, name); });
  if (below == names.end()) return error;
  const auto slash = subject.ends_with('/') ? "" : "/";
  return std::move(error).hint(cat("did you mean ", in_quotes(cat(subject, slash, *below)), "?"));
}

}  // namespace

Result<ArchiveKind> tell_kind(int fd, const std::string& subject) {
  const auto st = TRY(sys::fstat(fd, subject));
  Seen seen;
  if (S_ISDIR(st.st_mode)) {
    const auto names = TRY(list_dir(fd));
    for (const auto& name : names) seen.add(std::vector<std::string>{name});
    const auto kind = TRY(seen.kind(ArchiveKind::kRootDirectory, subject));
    if (kind == ArchiveKind::kRootDirectory && !seen.system) return no_image(fd, names, subject);
    return kind;
  }
  if (!S_ISREG(st.st_mode))
    return Error::make(Code::kInvalid,
                       cat(in_quotes(subject), " is neither a file nor a directory"));
  auto reader = TRY(TarReader::open(fd, subject));
  while (!seen.root) {
    const auto entry = TRY(reader.next());
    if (!entry) break;
    seen.add(components(entry->path));
  }
  return seen.kind(ArchiveKind::kRootTar, subject);
}

Result<UniqueFd> open_member(int root, const std::string& path) {
  auto file = TRY(open_in_root(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (!S_ISREG(TRY(sys::fstat(file.get(), path)).st_mode))
    return Error::make(Code::kInvalid, cat(in_quotes(path), " is not a regular file"));
  return file;
}

Result<std::string> read_member(int root, const std::string& path) {
  constexpr std::size_t kLargestDocument = std::size_t{4} << 20;
  return sys::read_to_end(TRY(open_member(root, path)).get(), kLargestDocument, path);
}

}  // namespace wherry::image
