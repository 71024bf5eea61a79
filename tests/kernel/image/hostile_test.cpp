// Archives that try to leave their root, and archives that are not what they say. Whatever happens,
// the world outside of the root stays as it was; what comes out inside is known for each.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/image/extractor.h"
#include "tests/support/tar_writer.h"
#include "tests/support/temp_dir.h"

namespace wherry::image {
namespace {

using test::Tar;
using test::TarHeader;

// "outside/" stands beside the root that is unpacked into. OUT in a name or target becomes its
// absolute path.
class Hostile : public testing::Test {
 protected:
  Hostile() {
    const auto out = outside();
    for (const auto& dir : {out, out + "/dir", root()}) EXPECT_EQ(::mkdir(dir.c_str(), 0750), 0);
    test::write_file(out + "/secret", "secret");
    test::write_file(out + "/dir/file", "untouched");
  }
  std::string outside() const { return dir_.path() + "/outside"; }
  std::string root() const { return dir_.path() + "/root"; }

  std::string with_out(std::string text) const {
    for (std::size_t at = 0; (at = text.find("OUT", at)) != std::string::npos;)
      text.replace(at, 3, outside());
    return text;
  }

  // The listing of the directories that lead to outside(), when they are made inside the root.
  std::string way_out() const {
    std::string lines;
    const auto path = outside();
    for (auto at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
      lines += cat("d ", path.substr(1, at - 1), "\n");
    return lines + cat("d ", path.substr(1), "\n");
  }

  // The message of the refusal, or "".
  std::string unpack(const Tar& tar, const TarLimits& limits = {}) {
    const auto path = dir_.path() + "/archive";
    test::write_file(path, tar.bytes());
    const auto run = [&]() -> Result<> {
      const auto file = TRY(sys::openat(AT_FDCWD, path, O_RDONLY));
      const auto into = TRY(sys::openat(AT_FDCWD, root(), O_RDONLY | O_DIRECTORY));
      auto reader = TRY(TarReader::open(file.get(), "archive", limits));
      Extractor extractor{into.get(), -1, Whiteouts::kOverlay};
      TRY(extract_all(reader, extractor));
      TRY(reader.finish());
      return {};
    };
    const auto before = test::list_tree(outside(), test::TreeDetail::kAll);
    const auto result = run();
    EXPECT_EQ(test::list_tree(outside(), test::TreeDetail::kAll), before)
        << "the world outside has changed";
    return result.ok() ? "" : result.error().message();
  }

  // `expected` is a listing, or '!' and a part of the message.
  void check(const std::string& name, const Tar& tar, const std::string& expected) {
    SCOPED_TRACE(name);
    const auto message = unpack(tar);
    if (expected.starts_with('!')) {
      EXPECT_NE(message, "") << "was taken:\n" << listing();
      EXPECT_NE(message.find(expected.substr(1)), std::string::npos) << message;
    } else {
      EXPECT_EQ(message, "");
      EXPECT_EQ(listing(), with_out(expected));
    }
    clear();
  }
  std::string listing() const { return test::list_tree(root(), test::TreeDetail::kShape); }
  void clear() {
    const auto parent = sys::openat(AT_FDCWD, dir_.path(), O_PATH | O_DIRECTORY);
    ASSERT_TRUE(remove_tree(parent.value().get(), "root").ok());
    ASSERT_EQ(::mkdir(root().c_str(), 0750), 0);
  }

  test::TempDir dir_;
};

TarHeader header(const std::string& name, char type, const std::string& linkname = "") {
  TarHeader h;
  h.name = name;
  h.type = type;
  h.linkname = linkname;
  return h;
}

TEST_F(Hostile, NamesThatLeadOut) {
  check("dotdot", Tar{}.file("../outside/new", "x"), "!'..'");
  check("dotdot alone", Tar{}.dir(".."), "!'..'");
  check("dotdot within", Tar{}.file("a/../../outside/new", "x"), "!'..'");
  check("dotdot that stays in", Tar{}.dir("a").file("a/../b", "x"), "!'..'");
  check("dotdot at the end", Tar{}.dir("a/.."), "!'..'");
  check("dotdot in the prefix", Tar{}.add([] {
    auto h = header("new", '0');
    h.prefix = "../outside";
    return h;
  }()),
        "!'..'");
  check("dotdot in pax", Tar{}.pax({{"path", "../outside/new"}}).file("a"), "!'..'");
  check("dotdot in a GNU long name", Tar{}.gnu_long('L', "../outside/new").file("a"), "!'..'");
  check("absolute", Tar{}.file("/etc/new", "x"), "d etc\nf etc/new x\n");
  check("absolute, many slashes", Tar{}.file("///etc//new", "x"), "d etc\nf etc/new x\n");
  check("absolute outside", Tar{}.file(outside() + "/secret", "x"),
        way_out() + "f " + outside().substr(1) + "/secret x\n");
  check("three dots are a name", Tar{}.file(".../a", "x"), "d ...\nf .../a x\n");
  check("dots between", Tar{}.file("./a/./b", "x"), "d a\nf a/b x\n");
  check("backslash is a byte", Tar{}.file("..\\a", "x"), "f ..\\a x\n");
  check("line end is a byte", Tar{}.file("a\nb", "x"), "f a\nb x\n");
  check("not UTF-8", Tar{}.file("\xff\xfe", "x"), "f \xff\xfe x\n");
  check("decomposed UTF-8 in pax stays so", Tar{}.pax({{"path", "e\xcc\x81"}}).file("a", "x"),
        "f e\xcc\x81 x\n");
}

TEST_F(Hostile, TheRootItself) {
  check("dot", Tar{}.dir("./", 0711), "");
  check("dot is a link", Tar{}.link(".", "OUT").file("a", "x"), "!must be a directory");
  check("dot is a link, absolute", Tar{}.link("./", outside()).file("a", "x"),
        "!must be a directory");
  check("slash is a file", Tar{}.add(header("/", '0')), "");
  check("dot is a file", Tar{}.file(".", "x"), "!must be a directory");
  check("dot is a hard link", Tar{}.file("a").hardlink(".", "a"), "!must be a directory");
  check("dot is a device", Tar{}.node(".", '3', 1, 3), "!must be a directory");
  check("no name", Tar{}.file("", "x"), "!empty");
  check("no name in pax", Tar{}.pax({{"path", ""}}).file("a", "x"), "f a x\n");
}

TEST_F(Hostile, WritingThroughLinks) {
  check("dangling link, then below it", Tar{}.link("l", "away/dir").file("l/file", "x"),
        "d away\nd away/dir\nf away/dir/file x\nl l -> away/dir\n");
  check("absolute link, then below it", Tar{}.link("l", outside()).file("l/secret", "x"),
        "l l -> OUT\n" + way_out() + "f " + outside().substr(1) + "/secret x\n");
  check("relative link out", Tar{}.link("l", "../outside").file("l/secret", "x"),
        "l l -> ../outside\nd outside\nf outside/secret x\n");
  check("many dotdots", Tar{}.link("l", "../../../../../../etc").file("l/new", "x"),
        "d etc\nf etc/new x\nl l -> ../../../../../../etc\n");
  check("file over a link to a file", Tar{}.link("l", outside() + "/secret").file("l", "x"),
        "f l x\n");
  check("directory over a link", Tar{}.link("l", outside() + "/dir").dir("l", 0777), "d l\n");
  check("directory over a link, then below",
        Tar{}.link("l", outside() + "/dir").dir("l", 0777).file("l/file", "x"),
        "d l\nf l/file x\n");
  check("device over a link", Tar{}.link("l", outside() + "/secret").node("l", '3', 1, 3),
        "c l 1:3\n");
  check("link over a link", Tar{}.link("l", outside()).link("l", "b"), "l l -> b\n");
  check("chain of links",
        Tar{}.link("a", "b").link("b", "c").link("c", "../outside").file("a/new", "x"),
        "l a -> b\nl b -> c\nl c -> ../outside\nd outside\nf outside/new x\n");
  check("loop of links", Tar{}.link("a", "b").link("b", "a").file("a/new", "x"), "!symbolic links");
  check("link to itself", Tar{}.link("a", "a").file("a/new", "x"), "!symbolic links");
  check("absolute link inside",
        Tar{}.dir("usr").dir("usr/lib").link("lib", "/usr/lib").file("lib/x.so", "x"),
        "l lib -> /usr/lib\nd usr\nd usr/lib\nf usr/lib/x.so x\n");
  check("link before its target", Tar{}.link("lib", "usr/lib").file("lib/x.so", "x"),
        "l lib -> usr/lib\nd usr\nd usr/lib\nf usr/lib/x.so x\n");
  check("magic link", Tar{}.link("l", "/proc/self/root").file("l/tmp/new", "x"),
        "l l -> /proc/self/root\nd proc\nd proc/self\nd proc/self/root\nd proc/self/root/tmp\nf "
        "proc/self/root/tmp/new x\n");
  check("a link is replaced while its directory is in use",
        Tar{}.dir("d").dir("e").link("l", "d").file("l/1", "x").link("l", "e").file("l/2", "x"),
        "d d\nf d/1 x\nd e\nf e/2 x\nl l -> e\n");
  check("a directory becomes a link while it is in use",
        Tar{}.dir("d").file("d/1", "x").link("d", "../outside").file("d/secret", "y"),
        "l d -> ../outside\nd outside\nf outside/secret y\n");
  check("a file on the way", Tar{}.file("a", "x").file("a/b", "y"), "!Not a directory");
}

TEST_F(Hostile, HardLinks) {
  check("within", Tar{}.file("a", "x").hardlink("b", "a"), "f a x\nf b x\n");
  check("absolute source is in the root", Tar{}.file("a", "x").hardlink("b", "/a"),
        "f a x\nf b x\n");
  check("to a file outside", Tar{}.hardlink("b", outside() + "/secret"), "!No such file");
  check("dotdot", Tar{}.hardlink("b", "../outside/secret"), "!'..'");
  check("by way of a link", Tar{}.link("l", outside()).hardlink("b", "l/secret"), "!No such file");
  check("by way of a relative link", Tar{}.link("l", "../outside").hardlink("b", "l/secret"),
        "!No such file");
  check("to a link is to the link itself",
        Tar{}.link("l", outside() + "/secret").hardlink("b", "l"),
        "l b -> OUT/secret\nl l -> OUT/secret\n");
  check("then written through",
        Tar{}.link("l", outside() + "/secret").hardlink("b", "l").file("b", "x"),
        "f b x\nl l -> OUT/secret\n");
  check("to a directory", Tar{}.dir("d").hardlink("b", "d"), "!hard link to a directory");
  check("to the root", Tar{}.hardlink("b", "."), "!hard link to the root");
  check("to nothing", Tar{}.hardlink("b", ""), "!");
  check("to itself", Tar{}.file("a", "x").hardlink("a", "a"), "f a x\n");
  check("to itself, missing", Tar{}.hardlink("a", "a"), "!No such file");
  check("over a directory", Tar{}.file("a", "x").dir("d").file("d/e").hardlink("d", "a"),
        "f a x\nf d x\n");
  check("name with dotdot", Tar{}.file("a", "x").hardlink("../outside/b", "a"), "!'..'");
}

TEST_F(Hostile, Whiteouts) {
  check("of dot", Tar{}.file(".wh.."), "!whiteout of nothing");
  check("of dotdot", Tar{}.file(".wh..."), "!whiteout of nothing");
  check("of nothing", Tar{}.file(".wh."), "!whiteout of nothing");
  check("below a whiteout", Tar{}.file(".wh.a/b"), "!below a whiteout");
  check("a directory", Tar{}.dir(".wh.a"), "!regular file");
  check("a link", Tar{}.link(".wh.a", outside()), "!regular file");
  check("by way of a link", Tar{}.link("l", outside()).file("l/.wh.secret"), "l l -> OUT\n");
  check("opaque by way of a link", Tar{}.link("l", "../outside").file("l/.wh..wh..opq"),
        "l l -> ../outside\n");
  check("of what this layer has", Tar{}.file("a", "x").file(".wh.a"), "f a x\n");
  check("of aufs", Tar{}.dir(".wh..wh.plnk").file(".wh..wh.aufs").file("a", "x"), "f a x\n");
  check("as a device", Tar{}.node("a", '3', 0, 0), "!whiteout");
  check("as a block device", Tar{}.node("a", '4', 0, 0), "!whiteout");
  check("as an attribute", Tar{}.pax({{"SCHILY.xattr.trusted.overlay.opaque", "y"}}).dir("a"),
        "!overlayfs's own");
  check("as an attribute of users", Tar{}.pax({{"SCHILY.xattr.user.overlay.opaque", "y"}}).dir("a"),
        "!overlayfs's own");
  check("redirect", Tar{}.pax({{"SCHILY.xattr.trusted.overlay.redirect", "/etc"}}).dir("a"),
        "!overlayfs's own");
  check("metacopy", Tar{}.pax({{"SCHILY.xattr.trusted.overlay.metacopy", ""}}).file("a"),
        "!overlayfs's own");
}

TEST_F(Hostile, Repetitions) {
  check("the last file wins", Tar{}.file("a", "1").file("a", "2"), "f a 2\n");
  check("file over directory", Tar{}.dir("a").file("a/b", "1").file("a", "2"), "f a 2\n");
  check("directory over file", Tar{}.file("a", "1").dir("a"), "d a\n");
  check("directory over directory keeps it", Tar{}.dir("a").file("a/b", "1").dir("a", 0700),
        "d a\nf a/b 1\n");
  check("file over a hard link leaves the other",
        Tar{}.file("a", "1").hardlink("b", "a").file("b", "2"), "f a 1\nf b 2\n");
  check("pipe over file", Tar{}.file("a", "1").node("a", '6', 0, 0), "p a\n");
}

TEST_F(Hostile, Malformed) {
  check("wrong checksum", Tar{}.file("a", "1").add([] {
    auto h = header("b", '0');
    h.bad_checksum = true;
    return h;
  }()),
        "!archive");
  check("cut off in a file",
        Tar{}
            .add([] {
              auto h = header("a", '0');
              h.size = 4096;
              h.content = "x";
              return h;
            }())
            .open_ended(),
        "!truncated");
  check("size beyond the cap", Tar{}.pax({{"size", "1000000000000000"}}).file("a", "x"),
        "!more than");
  check("negative size", Tar{}.pax({{"size", "-1"}}).file("a", "x"), "!");
  check("size that is no number", Tar{}.pax({{"size", "0x10"}}).file("a", "x"), "!");
  check("pax record longer than its body", Tar{}.pax_raw("99 path=b\n").file("a", "x"), "!");
  check("pax record without length", Tar{}.pax_raw("path=b\n").file("a", "x"), "!");
  check("pax record without line end", Tar{}.pax_raw("8 path=b").file("a", "x"), "!");
  check("owner out of range", Tar{}.pax({{"uid", "4294967295"}}).file("a", "x"),
        "!owner out of range");
  check("negative owner", Tar{}.pax({{"uid", "-1"}}).file("a", "x"), "!");
  check("hard link with content", Tar{}.file("a", "x").add([] {
    auto h = header("b", '1', "a");
    h.content = "y";
    return h;
  }()),
        "!");
  check("name of 300 bytes", Tar{}.gnu_long('L', std::string(300, 'n')).file("a", "x"),
        "!File name too long");
  check("path of 5000 bytes",
        Tar{}
            .gnu_long('L',
                      [] {
                        std::string p;
                        while (p.size() < 5000) p += "nnnn/";
                        return p + "x";
                      }())
            .file("a"),
        "!");
  check("pax size wins over the header's", Tar{}.pax({{"size", "512"}}).add([] {
    auto h = header("a", '0');
    h.size = 0;
    h.content = std::string(512, 'x');
    return h;
  }()),
        "f a " + std::string(512, 'x') + "\n");
}

TEST_F(Hostile, DeeperThanDescriptorsReach) {
  std::string path;
  for (int i = 0; i < 300; ++i) path += "d/";
  check("by name", Tar{}.gnu_long('L', path).dir("a"), "!deeper than 256");
  std::string half;
  for (int i = 0; i < 200; ++i) half += "d/";
  check("by way of a link",
        Tar{}
            .gnu_long('L', half)
            .dir("a")
            .gnu_long('K', half)
            .link("l", "x")
            .gnu_long('L', "l/" + half)
            .dir("a"),
        "!deeper than 256");
}

TEST_F(Hostile, NulInANameEndsIt) {
  EXPECT_EQ(unpack(Tar{}.pax({{"path", std::string("a\0/../../outside/new", 20)}}).file("x", "y"))
                .find("changed"),
            std::string::npos);
}

TEST_F(Hostile, TooManyEntries) {
  Tar tar;
  for (int i = 0; i < 30; ++i) tar.file(cat("f", i));
  TarLimits limits;
  limits.entries = 20;
  EXPECT_NE(unpack(tar, limits).find("more than 20 entries"), std::string::npos);
}

TEST_F(Hostile, ModesAreNotSetThroughLinks) {
  EXPECT_EQ(unpack(Tar{}
                       .link("l", outside() + "/secret")
                       .hardlink("m", "l")
                       .link("n", outside() + "/dir")
                       .dir("n", 0777)),
            "");
}

}  // namespace
}  // namespace wherry::image
