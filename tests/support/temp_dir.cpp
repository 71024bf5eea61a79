#include "tests/support/temp_dir.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>

#include "base/file.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry::test {
namespace {

char letter(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return 'd';
    case S_IFLNK:
      return 'l';
    case S_IFCHR:
      return 'c';
    case S_IFBLK:
      return 'b';
    case S_IFIFO:
      return 'p';
    case S_IFSOCK:
      return 's';
    default:
      return 'f';
  }
}

std::string octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%04o", mode & 07777);
  return text;
}

// trusted.overlay.* is how a layer is kept, not what is in it.
std::string xattrs(int parent, const std::string& name) {
  const auto path = cat(fd_path(parent), "/", name);
  std::string names(65536, '\0'), out;
  const auto size = ::llistxattr(path.c_str(), names.data(), names.size());
  if (size <= 0) return out;
  names.resize(static_cast<std::size_t>(size));
  auto all = split(names, '\0');
  std::sort(all.begin(), all.end());
  for (const auto key : all) {
    if (key.empty() || key.starts_with("trusted.overlay.")) continue;
    std::string value(65536, '\0');
    const auto got =
        ::lgetxattr(path.c_str(), std::string{key}.c_str(), value.data(), value.size());
    value.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    out += cat(" ", key, "=", hex(value));
  }
  return out;
}

struct Lister {
  TreeDetail detail;
  std::map<std::pair<dev_t, ino_t>, std::string> links;
  std::string out;

  std::string value(int parent, const std::string& name, const struct stat& st) const {
    if (S_ISLNK(st.st_mode)) {
      const auto target = sys::readlinkat(parent, name);
      return target.ok() ? cat(" -> ", target.value()) : " unreadable";
    }
    if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
      return cat(" ", major(st.st_rdev), ":", minor(st.st_rdev));
    if (!S_ISREG(st.st_mode)) return "";
    const auto content = read_file_at(parent, name, std::size_t{1} << 30);
    if (!content.ok()) return " unreadable";
    if (detail == TreeDetail::kShape)
      return content.value().empty() ? "" : cat(" ", content.value());
    return cat(" hash ", std::hash<std::string>{}(content.value()));
  }

  void add(int parent, const std::string& name, const std::string& path, const struct stat& st) {
    out += cat(letter(st.st_mode), " ", path, value(parent, name, st));
    if (detail == TreeDetail::kAll) {
      out += cat(" ", octal(st.st_mode), " ", st.st_uid, ":", st.st_gid, " @", st.st_mtim.tv_sec,
                 xattrs(parent, name));
      if (S_ISREG(st.st_mode)) out += cat(" size ", st.st_size);
      if (!S_ISDIR(st.st_mode) && st.st_nlink > 1)
        out += cat(" linked ", links.emplace(std::pair{st.st_dev, st.st_ino}, path).first->second);
    }
    out += '\n';
  }
};

}  // namespace

TempDir::TempDir() {
  const char* base = std::getenv("TMPDIR");
  path_ = cat(base != nullptr && *base == '/' ? base : "/tmp", "/wherry-test.XXXXXX");
  if (::mkdtemp(path_.data()) == nullptr) std::abort();
}

TempDir::~TempDir() {
  const auto slash = path_.rfind('/');
  const auto base = sys::openat(AT_FDCWD, path_.substr(0, slash), O_PATH | O_DIRECTORY);
  if (!base.ok()) return;
  EXPECT_TRUE(remove_tree(base.value().get(), path_.substr(slash + 1)).ok()) << path_;
}

void write_file(const std::string& path, const std::string& content) {
  const auto file = sys::openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ASSERT_TRUE(file.ok()) << file.error().message();
  ASSERT_TRUE(sys::write_all(file.value().get(), content).ok());
}

std::string list_tree_at(int dirfd, TreeDetail detail) {
  Lister lister{detail, {}, {}};
  if (detail == TreeDetail::kAll)
    if (const auto st = sys::fstat(dirfd); st.ok()) lister.add(dirfd, ".", ".", st.value());
  const auto walked = walk_tree(dirfd,
                                [&](int parent, const std::string& name, const std::string& path,
                                    const struct stat& st) -> Result<> {
                                  lister.add(parent, name, path, st);
                                  return {};
                                });
  return walked.ok() ? lister.out : cat("cannot list: ", walked.error().message());
}

std::string list_tree(const std::string& dir, TreeDetail detail) {
  const auto fd = sys::openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY);
  return fd.ok() ? list_tree_at(fd.value().get(), detail)
                 : cat("cannot open: ", fd.error().message());
}

}  // namespace wherry::test
