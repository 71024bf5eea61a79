// SEC-32, SEC-33: whom a user string names, and what an image may put into passwd and group.
#include "runtime/container/identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/container/container.h"
#include "runtime/container/record.h"

namespace wherry::container {
namespace {

class Root : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/wherry-identity.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    path_ = name;
    fd_ = sys::openat(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY).value();
    ASSERT_TRUE(sys::mkdirat(fd_.get(), "etc", 0755).ok());
    write("passwd",
          "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1001::/home/app:/bin/sh\n2147483648:x:0:0::/:/"
          "bin/sh\nevil:x:5:5::/a\x01"
          "b:/bin/sh\n");
    write("group", "root:x:0:\nstaff:x:50:app,other\nmore:x:2000:app\n");
  }
  void TearDown() override {
    fd_.reset();
    const auto tmp = sys::openat(AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(remove_tree(tmp.value().get(), path_.substr(5)).ok());
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream{path_ + "/etc/" + name} << text;
  }
  std::string path_;
  UniqueFd fd_;
};

TEST_F(Root, Sec32_UserGrammar) {
  struct Row {
    const char* text;
    bool ok;
    std::uint32_t uid, gid;
  };
  for (const auto& row : {Row{"1", true, 1, 0},
                          Row{"1:", true, 1, 0},
                          Row{":1", true, 0, 1},
                          Row{"01", true, 1, 0},
                          Row{"1000", true, 1000, 1001},
                          Row{"app", true, 1000, 1001},
                          Row{"app:staff", true, 1000, 50},
                          Row{"app:7", true, 1000, 7},
                          Row{"1000:1000", true, 1000, 1000},
                          Row{"2147483648", true, 2147483648U, 0},
                          Row{"4294967294", true, 4294967294U, 0},
                          Row{"", true, 0, 0},
                          Row{"0x0", false, 0, 0},
                          Row{" 1", false, 0, 0},
                          Row{"-1", false, 0, 0},
                          Row{"4294967295", false, 0, 0},
                          Row{"4294967296", false, 0, 0},
                          Row{"99999999999999999999", false, 0, 0},
                          Row{"nobody", false, 0, 0},
                          Row{"app:none", false, 0, 0},
                          Row{"a:b:c", false, 0, 0},
                          Row{"1:4294967295", false, 0, 0},
                          Row{"app\n", false, 0, 0}}) {
    const auto user = resolve_user(fd_.get(), row.text);
    ASSERT_EQ(user.ok(), row.ok) << row.text;
    if (!row.ok) continue;
    EXPECT_EQ(user.value().uid, row.uid) << row.text;
    EXPECT_EQ(user.value().gid, row.gid) << row.text;
  }
}

TEST_F(Root, GroupsThatListTheUser) {
  const auto user = resolve_user(fd_.get(), "app");
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user.value().additional_gids, (std::vector<std::uint32_t>{50, 2000}));
  EXPECT_EQ(user.value().home, "/home/app");
  EXPECT_TRUE(resolve_user(fd_.get(), "app:7").value().additional_gids.empty());
  EXPECT_EQ(resolve_user(fd_.get(), "evil").value().home, "/");
}

TEST_F(Root, Sec33_HostilePasswd) {
  const auto passwd = path_ + "/etc/passwd";
  const auto started = std::chrono::steady_clock::now();
  ASSERT_EQ(::unlink(passwd.c_str()), 0);
  ASSERT_EQ(::mkfifo(passwd.c_str(), 0644), 0);
  EXPECT_FALSE(resolve_user(fd_.get(), "app").ok());
  ASSERT_EQ(::unlink(passwd.c_str()), 0);
  ASSERT_EQ(::symlink("/dev/zero", passwd.c_str()), 0);
  EXPECT_FALSE(resolve_user(fd_.get(), "app").ok());
  ASSERT_EQ(::unlink(passwd.c_str()), 0);
  write("passwd", "");
  ASSERT_EQ(::truncate(passwd.c_str(), off_t{10} << 30), 0);
  EXPECT_FALSE(resolve_user(fd_.get(), "app").ok());
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds{1});
}

TEST(Capabilities, NamesAndMasks) {
  EXPECT_EQ(capability_mask({"CAP_CHOWN", "CAP_KILL"}).value(), (1U << 0) | (1U << 5));
  EXPECT_FALSE(capability_mask({"CAP_NONE_SUCH"}).ok());
  oci::Capabilities capabilities;
  capabilities.permitted = {"CAP_KILL"};
  capabilities.ambient = {"CAP_KILL"};
  EXPECT_EQ(capability_sets(capabilities).value().ambient, 0U);  // not inheritable
}

TEST(Id, Sec54_Grammar) {
  for (const auto* good : {"a", "_x", "web-1.0+b", "0"}) EXPECT_TRUE(check_id(good).ok()) << good;
  for (const auto& bad :
       {std::string{""}, std::string{"."}, std::string{".."}, std::string{"-a"}, std::string{"a/b"},
        std::string{"a b"}, std::string{"a\n"}, std::string(256, 'a')})
    EXPECT_FALSE(check_id(bad).ok()) << bad;
}

}  // namespace
}  // namespace wherry::container
