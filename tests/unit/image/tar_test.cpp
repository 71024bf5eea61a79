// What the project writes, it reads again; and the kinds of archives.
#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "base/sys.h"
#include "base/text.h"
#include "runtime/image/archive_tree.h"
#include "runtime/image/layer_chain.h"
#include "runtime/image/layers.h"
#include "runtime/image/metadata.h"
#include "runtime/image/tar_reader.h"
#include "runtime/image/tar_writer.h"
#include "tests/support/tar_writer.h"

namespace wherry::image {
namespace {

UniqueFd memory(std::string_view bytes = {}) {
  auto fd = sys::memfd_create("test", 0);
  EXPECT_TRUE(fd.ok());
  EXPECT_TRUE(sys::write_all(fd.value().get(), bytes).ok());
  return std::move(fd).value();
}

TarEntry entry(std::string path, mode_t mode) {
  TarEntry out;
  out.path = std::move(path);
  out.mode = mode;
  return out;
}

TEST(TarWriter, EverythingComesBack) {
  std::vector<TarEntry> entries{entry("plain", S_IFREG | 0644),
                                entry(std::string(300, 'n'), S_IFREG | 04755),
                                entry("e\xcc\x81\n=", S_IFREG | 0600),
                                entry("link", S_IFLNK | 0777),
                                entry("dev", S_IFBLK | 0660),
                                entry("pipe", S_IFIFO | 0600),
                                entry("hard", 0644)};
  entries[0].mtime = {1700000000, 123456789};
  entries[1].mtime = {-2, 0};
  entries[1].uid = 4000000000;
  entries[1].gid = 3000000;
  entries[2].xattrs = {{"user.a", std::string("\0=\n", 3)}, {"security.capability", "x"}};
  entries[2].size = 1025;
  entries[3].linkname = std::string(200, 't');
  entries[4].rdev = makedev(259, 70000);
  entries[6].hardlink = true;
  entries[6].linkname = "plain";

  const auto file = memory();
  TarWriter writer{file.get()};
  for (const auto& each : entries) {
    ASSERT_TRUE(writer.add(each).ok());
    ASSERT_TRUE(writer.content(std::string(each.size, 'c')).ok());
  }
  ASSERT_TRUE(writer.close().ok());

  auto reader = TarReader::open(file.get(), "test");
  ASSERT_TRUE(reader.ok()) << reader.error().message();
  for (const auto& each : entries) {
    SCOPED_TRACE(each.path);
    auto got = reader->next();
    ASSERT_TRUE(got.ok()) << got.error().message();
    ASSERT_TRUE(got.value().has_value());
    const auto& read = *got.value();
    EXPECT_EQ(read.path, each.path);
    EXPECT_EQ(read.linkname, each.linkname);
    EXPECT_EQ(read.hardlink, each.hardlink);
    EXPECT_EQ(read.mode, each.mode);
    EXPECT_EQ(read.uid, each.uid);
    EXPECT_EQ(read.gid, each.gid);
    EXPECT_EQ(read.size, each.size);
    EXPECT_EQ(read.mtime.tv_sec, each.mtime.tv_sec);
    EXPECT_EQ(read.mtime.tv_nsec, each.mtime.tv_nsec);
    if (S_ISBLK(each.mode)) {
      EXPECT_EQ(read.rdev, each.rdev);
    }
    auto xattrs = read.xattrs;
    std::sort(xattrs.begin(), xattrs.end());
    auto wanted = each.xattrs;
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(xattrs, wanted);
  }
  auto end = reader->next();
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end.value().has_value());
  const auto summary = reader->finish();
  ASSERT_TRUE(summary.ok());
  EXPECT_TRUE(summary.value().closed_by_mark);
  EXPECT_EQ(summary.value().diff_id, hash_file(file.get(), "sha256", -1, "").value().digest);
}

TEST(TarReader, AMissingEndMarkIsSeen) {
  const auto file = memory(test::Tar{}.file("a", "x").open_ended().bytes());
  auto reader = TarReader::open(file.get(), "test");
  ASSERT_TRUE(reader.ok());
  while (true) {
    const auto got = reader->next();
    ASSERT_TRUE(got.ok());
    if (!got.value()) break;
  }
  EXPECT_FALSE(reader->finish().value().closed_by_mark);
}

TEST(TarReader, Caps) {
  const auto file = memory(
      test::Tar{}.file("a", std::string(100000, 'a')).file("b", std::string(100000, 'a')).bytes());
  TarLimits limits;
  limits.expanded = 150000;
  auto reader = TarReader::open(file.get(), "test", limits);
  ASSERT_TRUE(reader.ok());
  ASSERT_TRUE(reader->next().ok());
  const auto second = reader->next();
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message().find("more than 150000 bytes"), std::string::npos)
      << second.error().message();
}

TEST(TellKind, ByContent) {
  using test::Tar;
  const std::pair<Tar, ArchiveKind> cases[] = {
      {Tar{}.dir("blobs").file("blobs/sha256/x").file("oci-layout").file("./index.json"),
       ArchiveKind::kOciLayout},
      {Tar{}.file("x.json").dir("1").file("1/layer.tar").file("manifest.json"),
       ArchiveKind::kDockerArchive},
      {Tar{}.file("oci-layout").file("index.json").file("manifest.json"), ArchiveKind::kOciLayout},
      {Tar{}.dir("./").file("index.json").file("oci-layout").dir("./etc"), ArchiveKind::kRootTar},
      {Tar{}.file("manifest.json").dir("usr"), ArchiveKind::kRootTar},
      {Tar{}.file("app/oci-layout").file("app/index.json"), ArchiveKind::kRootTar},
      {Tar{}.file("hello"), ArchiveKind::kRootTar},
  };
  for (const auto& [tar, kind] : cases) {
    const auto file = memory(tar.bytes());
    const auto told = tell_kind(file.get(), "test");
    ASSERT_TRUE(told.ok()) << told.error().message();
    EXPECT_EQ(told.value(), kind);
  }
}

TEST(ChainIds, AsTheSpecificationSays) {
  const oci::Digest a{"sha256", std::string(64, 'a')}, b{"sha256", std::string(64, 'b')};
  const auto chain = chain_ids({a, b});
  ASSERT_TRUE(chain.ok());
  EXPECT_EQ(chain.value()[0], a);
  EXPECT_EQ(chain.value()[1], digest_of(cat(a.text(), " ", b.text())).value());
}

TEST(XattrRule, Table) {
  const std::pair<const char*, XattrRule> cases[] = {
      {"user.a", XattrRule::kKeep},
      {"security.capability", XattrRule::kKeep},
      {"system.posix_acl_access", XattrRule::kKeep},
      {"trusted.a", XattrRule::kKeep},
      {"security.selinux", XattrRule::kDrop},
      {"security.ima", XattrRule::kDrop},
      {"system.nfs4_acl", XattrRule::kDrop},
      {"trusted.overlay.opaque", XattrRule::kRefuse},
      {"user.overlay.whiteout", XattrRule::kRefuse},
      {"trusted.overlay.overlay.opaque", XattrRule::kRefuse},
  };
  for (const auto& [name, rule] : cases) EXPECT_EQ(xattr_rule(name), rule) << name;
}

}  // namespace
}  // namespace wherry::image
