#include <gtest/gtest.h>

#include "cgroups/cgroups.h"
#include "cgroups/tree.h"

namespace wherry::cgroups {
namespace {

TEST(Mountinfo, PureV2) {
  auto found = parse_mountinfo(
      "22 1 0:21 / /proc rw - proc proc rw\n"
      "25 30 0:23 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->driver, Driver::kUnified);
  EXPECT_EQ(found->unified, "/sys/fs/cgroup");
  EXPECT_TRUE(found->v1.empty());
}

TEST(Mountinfo, HybridWithSharedControllersAndOptions) {
  auto found = parse_mountinfo(
      "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
      "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw - cgroup2 none rw\n");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->driver, Driver::kHybrid);
  EXPECT_EQ(found->unified, "/sys/fs/cgroup/uni fied");
  const std::map<std::string, std::string> expected{{"cpu", "/sys/fs/cgroup/cpu,cpuacct"},
                                                    {"cpuacct", "/sys/fs/cgroup/cpu,cpuacct"},
                                                    {"name=systemd", "/sys/fs/cgroup/systemd"}};
  EXPECT_EQ(found->v1, expected);
}

TEST(Mountinfo, ANamedHierarchyAloneIsNotHybrid) {
  auto found = parse_mountinfo(
      "40 31 0:37 / /s rw - cgroup cgroup rw,name=systemd\n41 31 0:38 / /u rw - cgroup2 none rw\n");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->driver, Driver::kUnified);
}

TEST(Mountinfo, FirstWholeHierarchyCounts) {
  auto found = parse_mountinfo(
      "40 31 0:38 /a/b /part rw - cgroup2 none rw\n41 31 0:38 / /u rw - cgroup2 none rw\n"
      "42 31 0:38 / /again rw - cgroup2 none rw\n");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->unified, "/u");
}

TEST(Mountinfo, NothingUsable) {
  for (const auto* text : {"", "garbage", " - cgroup2", "1 2 3 / /x rw - cgroup cgroup rw,cpu\n",
                           "40 31 0:38 /a /part rw - cgroup2 none rw\n"}) {
    auto found = parse_mountinfo(text);
    ASSERT_FALSE(found.ok()) << text;
    EXPECT_EQ(found.error().code(), Code::kUnsupported);
  }
}

TEST(Path, Grammar) {
  for (const auto* good : {"/a", "/wherry/pod/web", "/a.b/..c", "/machine.slice/x:y"})
    EXPECT_TRUE(check_path(good).ok()) << good;
  const std::string long_name(256, 'x');
  for (const auto& bad :
       {std::string{""}, std::string{"/"}, std::string{"a"}, std::string{"a/b"}, std::string{"/a/"},
        std::string{"//a"}, std::string{"/a/../b"}, std::string{"/.."}, std::string{"/./a"},
        std::string{"/a\nb"}, std::string("/a\0b", 4), "/" + long_name}) {
    auto checked = check_path(bad);
    ASSERT_FALSE(checked.ok()) << bad;
    EXPECT_EQ(checked.error().code(), Code::kInvalid);
  }
}

TEST(Field, FindsWholeKeysOnly) {
  const auto* text = "oom 1\noom_kill 7\noom_group_kill 2\nbad x\n";
  EXPECT_EQ(field(text, "oom"), 1U);
  EXPECT_EQ(field(text, "oom_kill"), 7U);
  EXPECT_EQ(field(text, "bad"), std::nullopt);
  EXPECT_EQ(field(text, "group_kill"), std::nullopt);
}

}  // namespace
}  // namespace wherry::cgroups
