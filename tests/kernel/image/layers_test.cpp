// Layers on top of each other: what a container sees through the kernel's overlay of the unpacked
// layers.
#include "runtime/image/layers.h"

#include <gtest/gtest.h>

#include "base/sys.h"
#include "base/text.h"
#include "mount/overlay.h"
#include "runtime/image/digest.h"
#include "runtime/image/layer_chain.h"
#include "tests/support/tar_writer.h"
#include "tests/support/temp_dir.h"

namespace wherry::image {
namespace {

using test::Tar;
using test::TreeDetail;

class Layers : public testing::Test {
 protected:
  // What is seen of the layers, lowest first; or "!" and the message.
  std::string merged(const std::vector<Tar>& tars, TreeDetail detail = TreeDetail::kShape) {
    const auto run = [&]() -> Result<std::string> {
      test::TempDir dir;
      auto content = TRY(Content::open(dir.path()));
      std::vector<oci::Digest> diff_ids;
      mount::Overlay overlay;
      for (const auto& tar : tars) {
        test::write_file(dir.path() + "/layer.tar", tar.bytes());
        const auto file = TRY(sys::openat(AT_FDCWD, dir.path() + "/layer.tar", O_RDONLY));
        const auto below = TRY(chain_ids(diff_ids));
        diff_ids.push_back(TRY(digest_of(tar.bytes())));
        TRY(unpack_layer(content, below, file.get(), diff_ids.back(), {}));
        overlay.lower.push_back(content.layer_dir(TRY(chain_ids(diff_ids)).back()));
      }
      const auto mounted = TRY(mount::mount_overlay(overlay));
      return test::list_tree_at(mounted.get(), detail);
    };
    const auto seen = run();
    return seen.ok() ? seen.value() : cat("!", seen.error().message());
  }
};

const Tar kBase = Tar{}
                      .dir("./")
                      .dir("a")
                      .file("a/1", "1")
                      .file("a/2", "2")
                      .dir("a/s")
                      .file("a/s/3", "3")
                      .file("b", "b");

TEST_F(Layers, WhiteoutTable) {
  struct Case {
    const char* name;
    Tar upper;
    const char* expected;
  };
  const Case cases[] = {
      {"nothing new", Tar{}.dir("n"), "d a\nf a/1 1\nf a/2 2\nd a/s\nf a/s/3 3\nf b b\nd n\n"},
      {"of a file", Tar{}.file(".wh.b"), "d a\nf a/1 1\nf a/2 2\nd a/s\nf a/s/3 3\n"},
      {"of a file below", Tar{}.file("a/.wh.1"), "d a\nf a/2 2\nd a/s\nf a/s/3 3\nf b b\n"},
      {"of a directory", Tar{}.file(".wh.a"), "f b b\n"},
      {"of a directory below", Tar{}.file("a/.wh.s"), "d a\nf a/1 1\nf a/2 2\nf b b\n"},
      {"of what is not there", Tar{}.file(".wh.zz").file("a/.wh.zz").file("zz/.wh.y"),
       "d a\nf a/1 1\nf a/2 2\nd a/s\nf a/s/3 3\nf b b\n"},
      {"of what is in it, after a directory",
       Tar{}.file(".wh.a").file("a/.wh.1").file("a/.wh..wh..opq"), "f b b\n"},
      {"of what was in it, after a file in its place", Tar{}.file("a", "a").file("a/.wh.1"),
       "f a a\nf b b\n"},
      {"of what was in it, before a file in its place", Tar{}.file("a/.wh.1").file("a", "a"),
       "f a a\nf b b\n"},
      {"then a file in its place", Tar{}.file(".wh.b").file("b", "new"),
       "d a\nf a/1 1\nf a/2 2\nd a/s\nf a/s/3 3\nf b new\n"},
      {"after the file in its place", Tar{}.file("b", "new").file(".wh.b"),
       "d a\nf a/1 1\nf a/2 2\nd a/s\nf a/s/3 3\nf b new\n"},
      {"then a directory in its place", Tar{}.file(".wh.a").dir("a").file("a/9", "9"),
       "d a\nf a/9 9\nf b b\n"},
      {"after the directory in its place", Tar{}.dir("a").file("a/9", "9").file(".wh.a"),
       "d a\nf a/9 9\nf b b\n"},
      {"then something below it", Tar{}.file(".wh.a").file("a/9", "9"), "d a\nf a/9 9\nf b b\n"},
      {"opaque", Tar{}.dir("a").file("a/.wh..wh..opq").file("a/9", "9"), "d a\nf a/9 9\nf b b\n"},
      {"opaque after what it keeps", Tar{}.dir("a").file("a/9", "9").file("a/.wh..wh..opq"),
       "d a\nf a/9 9\nf b b\n"},
      {"opaque without an entry for the directory", Tar{}.file("a/.wh..wh..opq"), "d a\nf b b\n"},
      {"opaque with whiteouts", Tar{}.file("a/.wh.1").file("a/.wh..wh..opq").file("a/.wh.2"),
       "d a\nf b b\n"},
      {"opaque root", Tar{}.file(".wh..wh..opq").file("n", "n"), "f n n\n"},
      {"file over directory", Tar{}.file("a", "a"), "f a a\nf b b\n"},
      {"directory over file", Tar{}.dir("b"), "d a\nf a/1 1\nf a/2 2\nd a/s\nf a/s/3 3\nd b\n"},
      {"hard link to a file below", Tar{}.hardlink("h", "a/1"),
       "d a\nf a/1 1\nf a/2 2\nd a/s\nf a/s/3 3\nf b b\nf h 1\n"},
      {"hard link to what was whited out", Tar{}.file(".wh.b").hardlink("h", "b"), "!"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto seen = merged({kBase, c.upper});
    if (std::string_view{c.expected} == "!") {
      EXPECT_TRUE(seen.starts_with("!")) << seen;
    } else {
      EXPECT_EQ(seen, c.expected);
    }
  }
}

TEST_F(Layers, LinksOfLowerLayersLeadTheWay) {
  const Tar base = Tar{}
                       .dir("usr")
                       .dir("usr/lib")
                       .link("lib", "usr/lib")
                       .link("abs", "/usr")
                       .link("out", "../../../etc");
  EXPECT_EQ(merged({base, Tar{}.file("lib/x", "x").file("abs/y", "y").file("out/z", "z")}),
            "l abs -> /usr\nd etc\nf etc/z z\nl lib -> usr/lib\nl out -> ../../../etc\nd usr\nd "
            "usr/lib\nf usr/lib/x x\nf usr/y y\n");
  EXPECT_EQ(merged({base, Tar{}.file("n", "n"), Tar{}.file("lib/x", "x")}),
            "l abs -> /usr\nl lib -> usr/lib\nf n n\nl out -> ../../../etc\nd usr\nd usr/lib\nf "
            "usr/lib/x x\n");
  EXPECT_EQ(merged({base, Tar{}.dir("lib").file("lib/x", "x")}),
            "l abs -> /usr\nd lib\nf lib/x x\nl out -> ../../../etc\nd usr\nd usr/lib\n");
  EXPECT_EQ(merged({base, Tar{}.file("lib/.wh.x"), Tar{}.file(".wh.lib")}),
            "l abs -> /usr\nl out -> ../../../etc\nd usr\nd usr/lib\n");
}

TEST_F(Layers, DirectoriesWithoutAnEntryKeepWhatTheyWere) {
  test::TarHeader tmp;
  tmp.name = "tmp";
  tmp.type = '5';
  tmp.mode = 01777;
  tmp.uid = 5;
  tmp.gid = 6;
  const Tar base = Tar{}.dir("./", 0711).add(tmp);
  const auto below = merged({base}, TreeDetail::kAll);
  const auto seen =
      merged({base, Tar{}.file("tmp/x", "x"), Tar{}.file("tmp/y", "y")}, TreeDetail::kAll);
  EXPECT_NE(below.find("d tmp 1777 5:6 @1000000000"), std::string::npos) << below;
  EXPECT_NE(seen.find("d tmp 1777 5:6 @1000000000"), std::string::npos) << seen;
}

TEST_F(Layers, SixtyOfThem) {
  std::vector<Tar> tars;
  std::string expected;
  for (int i = 100; i < 160; ++i) {
    tars.push_back(Tar{}.file(cat("f", i), "x").file("same", std::to_string(i)));
    expected += cat("f f", i, " x\n");
  }
  EXPECT_EQ(merged(tars), expected + "f same 159\n");
}

}  // namespace
}  // namespace wherry::image
