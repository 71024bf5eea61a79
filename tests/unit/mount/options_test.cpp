#include "mount/options.h"

#include <gtest/gtest.h>
#include <linux/mount.h>
#include <sys/mount.h>

namespace wherry::mount {
namespace {

Result<Options> parse(const std::string& type, std::vector<std::string> words) {
  oci::Mount mount;
  mount.destination = "/x";
  mount.type = type;
  mount.options = std::move(words);
  return parse_options(mount);
}

TEST(MountOptions, ALaterWordOverridesAnEarlierOne) {
  auto options = parse("tmpfs", {"ro", "rw", "nosuid"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->attributes.set, std::uint64_t{MOUNT_ATTR_NOSUID});
  options = parse("tmpfs", {"rw", "ro"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->attributes.set, std::uint64_t{MOUNT_ATTR_RDONLY});
  EXPECT_EQ(options->attributes.clear & MOUNT_ATTR_RDONLY, 0U);
}

TEST(MountOptions, AccessTimesAreOneField) {
  const auto options = parse("tmpfs", {"noatime", "strictatime"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options.value().attributes.set & MOUNT_ATTR__ATIME,
            std::uint64_t{MOUNT_ATTR_STRICTATIME});
  EXPECT_EQ(options.value().attributes.clear & MOUNT_ATTR__ATIME, std::uint64_t{MOUNT_ATTR__ATIME});
}

TEST(MountOptions, TheRecursiveFamilyIsForTheTree) {
  const auto options = parse("bind", {"rbind", "rro", "rnosuid", "rslave"});
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(options.value().bind && options.value().recursive);
  EXPECT_EQ(options.value().tree_attributes.set,
            std::uint64_t{MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID});
  EXPECT_EQ(options.value().attributes.set, 0U);
  EXPECT_EQ(options.value().propagation, static_cast<unsigned long>(MS_SLAVE));
  EXPECT_TRUE(options.value().propagation_recursive);
}

TEST(MountOptions, WhatIsLeftGoesToTheFileSystem) {
  const auto options = parse("tmpfs", {"size=64k", "mode=755", "lazytime"});
  ASSERT_TRUE(options.ok());
  ASSERT_EQ(options.value().data.size(), 3U);
  EXPECT_EQ(options.value().data[0], (std::pair<std::string, std::string>{"size", "64k"}));
  EXPECT_EQ(options.value().data[2], (std::pair<std::string, std::string>{"lazytime", ""}));
}

TEST(MountOptions, ABindTakesNoOptionOfAFileSystem) {
  const auto options = parse("bind", {"rbind", "size=64k"});
  ASSERT_FALSE(options.ok());
  EXPECT_NE(options.error().message().find("'size'"), std::string::npos)
      << options.error().message();
}

TEST(MountOptions, Propagation) {
  for (const auto* word :
       {"shared", "rshared", "slave", "rslave", "private", "rprivate", "unbindable", "runbindable"})
    EXPECT_TRUE(parse_propagation(word).ok()) << word;
  for (const auto* word : {"", "r", "Shared", "rro", "master"})
    EXPECT_FALSE(parse_propagation(word).ok()) << word;
}

}  // namespace
}  // namespace wherry::mount
