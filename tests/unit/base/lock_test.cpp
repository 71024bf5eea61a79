// A lock counts for the file that has the name, not for one that had it.
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "tests/support/temp_dir.h"

namespace wherry {
namespace {

Result<UniqueFd> lock(int dirfd, Millis patience) {
  return lock_file_at(dirfd, "lock", LockKind::kExclusive, Deadline::in(patience));
}

TEST(LockFile, IsExclusiveAndFallsWithItsDescriptor) {
  const test::TempDir temp;
  const auto dir = open_private_dir(temp.path());
  auto first = lock(dir.value().get(), Millis{0});
  ASSERT_TRUE(first.ok()) << first.error().message();
  EXPECT_EQ(lock(dir.value().get(), Millis{5}).error().code(), Code::kBusy);
  first.value().reset();
  EXPECT_TRUE(lock(dir.value().get(), Millis{0}).ok());
}

// Waits in a child while the holder replaces the file: what the child gets must be the new one.
TEST(LockFile, OneThatWaitedTakesTheFileThatHasTheName) {
  const test::TempDir temp;
  const auto dir = open_private_dir(temp.path());
  auto held = lock(dir.value().get(), Millis{0});
  ASSERT_TRUE(held.ok());
  auto child = clone_process({});
  ASSERT_TRUE(child.ok());
  if (child.value().pid == 0) {
    held.value().reset();  // the copy of the descriptor, which would hold the lock as well
    const auto got = lock(dir.value().get(), Millis{5000});
    ::_exit(got.ok() && is_entry(dir.value().get(), "lock", got.value().get()).value() ? 0 : 1);
  }
  ::usleep(30000);  // the child waits by now; if not, it has an easier task
  ASSERT_TRUE(sys::unlinkat(dir.value().get(), "lock", 0).ok());
  ASSERT_TRUE(replace_file(dir.value().get(), "lock", "", 0600).ok());
  held.value().reset();
  const auto info = sys::waitid_pidfd(child.value().pidfd.get(), WEXITED);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info.value()->si_status, 0);
}

TEST(LockFile, InADirectoryThatIsGoneThereIsNone) {
  const test::TempDir temp;
  const auto dir = open_private_dir(temp.path() + "/a");
  ASSERT_EQ(::rmdir((temp.path() + "/a").c_str()), 0);
  EXPECT_EQ(lock(dir.value().get(), Millis{0}).error().code(), Code::kNotFound);
}

TEST(IsEntry, TellsOneFromALaterOneOfItsName) {
  const test::TempDir temp;
  const auto parent = open_private_dir(temp.path());
  const auto dir = make_dir_at(parent.value().get(), "a", 0700);
  ASSERT_TRUE(dir.ok());
  EXPECT_TRUE(is_entry(parent.value().get(), "a", dir.value().get()).value());
  ASSERT_TRUE(remove_tree(parent.value().get(), "a").ok());
  EXPECT_FALSE(is_entry(parent.value().get(), "a", dir.value().get()).value());
  ASSERT_TRUE(make_dir_at(parent.value().get(), "a", 0700).ok());
  EXPECT_FALSE(is_entry(parent.value().get(), "a", dir.value().get()).value());
}

}  // namespace
}  // namespace wherry
