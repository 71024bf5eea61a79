// A directory for one test, and trees as text.
#pragma once
#include <string>

namespace wherry::test {

class TempDir {
 public:
  TempDir();  // below $TMPDIR or /tmp, 0700
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void write_file(const std::string& path, const std::string& content);

enum class TreeDetail { kShape, kAll };
// One line for each object below `dir`, sorted by path: "d a", "f a/b CONTENT", "l c -> TARGET", "c
// dev 1:3", "p pipe". kAll instead gives of each the mode, owner, size, time of change, extended
// attributes, a hash of the content, and for hard links the first path.
std::string list_tree(const std::string& dir, TreeDetail detail);
std::string list_tree_at(int dirfd, TreeDetail detail);

}  // namespace wherry::test
