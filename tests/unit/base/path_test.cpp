// Paths below a directory that somebody hostile has prepared.
#include "base/path.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

namespace wherry {
namespace {

class Tree : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/wherry-path.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    path_ = name;
    fd_ = sys::openat(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY).value();
    ASSERT_TRUE(sys::mkdirat(fd_.get(), "root", 0755).ok());
    ASSERT_TRUE(sys::mkdirat(fd_.get(), "outside", 0755).ok());
    root_ = open_dir_at(fd_.get(), "root").value();
  }
  void TearDown() override {
    root_.reset();
    fd_.reset();
    const auto tmp = sys::openat(AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(remove_tree(tmp.value().get(), path_.substr(5)).ok());
  }
  void link(const std::string& to, const std::string& name) {
    ASSERT_TRUE(sys::symlinkat(to, root_.get(), name).ok());
  }
  bool exists(const std::string& path) { return ::access((path_ + "/" + path).c_str(), F_OK) == 0; }
  std::string path_;
  UniqueFd fd_, root_;
};

TEST_F(Tree, AbsoluteLinksStayInside) {
  link("/made", "link");
  ASSERT_TRUE(make_dirs_in_root(root_.get(), "/made/deep", 0755).ok());
  ASSERT_TRUE(make_dirs_in_root(root_.get(), "link/more", 0755).ok());
  EXPECT_TRUE(exists("root/made/more"));
}

TEST_F(Tree, ALinkOutLeadsNowhere) {
  link(path_ + "/outside", "out");
  link("../../../../../../" + path_ + "/outside", "up");
  // Inside the root the target does not exist: nothing is made outside, whatever the answer.
  for (const auto* name : {"out/a", "up/a"})
    make_dirs_in_root(root_.get(), name, 0755).ignore("only the outside matters");
  for (const auto* name : {"out/f", "up/f"})
    make_file_in_root(root_.get(), name, 0755, 0644).ignore("only the outside matters");
  EXPECT_TRUE(list_dir(open_dir_at(fd_.get(), "outside").value().get()).value().empty());
}

TEST_F(Tree, MagicLinksAreRefused) {
  EXPECT_FALSE(open_in_root(root_.get(), "/proc/self/root", O_PATH).ok());
  const auto slash = sys::openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY);
  EXPECT_FALSE(open_in_root(slash.value().get(), "proc/self/fd/0", O_PATH).ok());
}

TEST_F(Tree, DotDotBelowWhatIsMissingIsRefused) {
  EXPECT_FALSE(make_dirs_in_root(root_.get(), "a/../b", 0755).ok());
}

TEST_F(Tree, ADanglingLinkIsNotFollowedByMake) {
  link(path_ + "/outside/new", "file");
  make_file_in_root(root_.get(), "file", 0755, 0644).ignore("only the outside matters");
  EXPECT_FALSE(exists("outside/new"));
}

TEST_F(Tree, RemoveTreeDoesNotFollowLinks) {
  ASSERT_TRUE(make_dirs_in_root(root_.get(), "d/e", 0755).ok());
  const auto d = open_dir_at(root_.get(), "d");
  ASSERT_TRUE(sys::symlinkat(path_ + "/outside", d.value().get(), "l").ok());
  ASSERT_TRUE(replace_file(fd_.get(), "outside-file", "x", 0600).ok());
  ASSERT_TRUE(remove_tree(root_.get(), "d").ok());
  EXPECT_TRUE(exists("outside"));
  EXPECT_TRUE(remove_tree(root_.get(), "d").ok());  // missing is success
  EXPECT_TRUE(list_dir(root_.get()).value().empty());
}

TEST_F(Tree, PrivateDirectoriesAreChecked) {
  EXPECT_TRUE(open_private_dir(path_ + "/new/state").ok());
  ASSERT_EQ(::chmod((path_ + "/new/state").c_str(), 0777), 0);
  const auto open = open_private_dir(path_ + "/new/state");
  ASSERT_FALSE(open.ok());
  EXPECT_EQ(open.error().code(), Code::kDenied);
  EXPECT_FALSE(open_private_dir("relative").ok());
}

TEST_F(Tree, ALockFallsWithItsHolder) {
  {
    const auto lock =
        lock_file_at(root_.get(), "lock", LockKind::kExclusive, Deadline::in(Millis{0}));
    ASSERT_TRUE(lock.ok());
    EXPECT_TRUE(is_locked_at(root_.get(), "lock").value());
    const auto second =
        lock_file_at(root_.get(), "lock", LockKind::kExclusive, Deadline::in(Millis{20}));
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code(), Code::kBusy);
  }
  EXPECT_FALSE(is_locked_at(root_.get(), "lock").value());
  EXPECT_FALSE(is_locked_at(root_.get(), "none").value());
}

}  // namespace
}  // namespace wherry
