// Overlays as detached mounts.
#include "mount/overlay.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "base/file.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "mount/table.h"
#include "tests/support/temp_dir.h"

namespace wherry::mount {
namespace {

using test::TreeDetail;

class OverlayMount : public testing::Test {
 protected:
  OverlayMount() {
    for (const auto* name : {"low", "low/d", "mid", "mid/d", "up", "work"})
      EXPECT_EQ(::mkdir(path(name).c_str(), 0755), 0);
    test::write_file(path("low/a"), "low");
    test::write_file(path("low/b"), "low");
    test::write_file(path("low/d/x"), "low");
    test::write_file(path("mid/b"), "mid");
    test::write_file(path("mid/d/y"), "mid");
  }
  std::string path(const std::string& name) const { return dir_.path() + "/" + name; }
  Overlay writable() const {
    return {{path("low"), path("mid")}, path("up"), path("work"), Overlay::Sync::kDurable};
  }

  // `body` in a child with a mount namespace of its own; its error as text.
  static std::string in_namespace(const std::function<Result<>()>& body) {
    int ends[2];
    if (::pipe(ends) != 0) return "pipe";
    const auto child = ::fork();
    if (child == 0) {
      const auto run = [&]() -> Result<> {
        TRY(sys::unshare(CLONE_NEWNS));
        TRY(sys::set_propagation("/", MS_PRIVATE | MS_REC));
        return body();
      };
      const auto result = run();
      if (!result.ok())
        sys::write_all(ends[1], result.error().message()).ignore("then the text is empty");
      ::_exit(result.ok() ? 0 : 1);
    }
    ::close(ends[1]);
    const auto text = sys::read_to_end(ends[0], 65536);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status == 0                          ? ""
           : text.ok() && !text.value().empty() ? text.value()
                                                : cat("status ", status);
  }
  static Result<> expect(bool holds, std::string_view what) {
    return holds ? Result<>{} : Result<>{Error::make(Code::kState, cat("not so: ", what))};
  }

  test::TempDir dir_;
};

TEST_F(OverlayMount, StacksFirstLowest) {
  const auto mounted = mount_overlay(writable());
  ASSERT_TRUE(mounted.ok()) << mounted.error().message();
  EXPECT_EQ(test::list_tree_at(mounted.value().get(), TreeDetail::kShape),
            "f a low\nf b mid\nd d\nf d/x low\nf d/y mid\n");
}

TEST_F(OverlayMount, WritesGoToTheUpperDirectoryOnly) {
  {
    const auto mounted = mount_overlay(writable());
    ASSERT_TRUE(mounted.ok()) << mounted.error().message();
    ASSERT_TRUE(replace_file(mounted.value().get(), "a", "new", 0644).ok());
    ASSERT_TRUE(sys::unlinkat(mounted.value().get(), "b", 0).ok());
    EXPECT_EQ(test::list_tree_at(mounted.value().get(), TreeDetail::kShape),
              "f a new\nd d\nf d/x low\nf d/y mid\n");
  }
  EXPECT_EQ(test::list_tree(path("up"), TreeDetail::kShape), "f a new\nc b 0:0\n");
  EXPECT_EQ(test::list_tree(path("low"), TreeDetail::kShape), "f a low\nf b low\nd d\nf d/x low\n");
}

TEST_F(OverlayMount, WhiteoutsAndOpaqueDirectoriesOfLayersHide) {
  ASSERT_EQ(::mknod(path("mid/a").c_str(), S_IFCHR | 0600, makedev(0, 0)), 0);
  ASSERT_EQ(::setxattr(path("mid/d").c_str(), "trusted.overlay.opaque", "y", 1, 0), 0);
  const auto mounted = mount_overlay({{path("low"), path("mid")}, "", "", Overlay::Sync::kDurable});
  ASSERT_TRUE(mounted.ok()) << mounted.error().message();
  EXPECT_EQ(test::list_tree_at(mounted.value().get(), TreeDetail::kShape),
            "f b mid\nd d\nf d/y mid\n");
}

TEST_F(OverlayMount, WithoutUpperItIsReadOnly) {
  for (const auto& lower : {std::vector<std::string>{path("low")}, {path("low"), path("mid")}}) {
    const auto mounted = mount_overlay({lower, "", "", Overlay::Sync::kDurable});
    ASSERT_TRUE(mounted.ok()) << mounted.error().message();
    const auto made = sys::mkdirat(mounted.value().get(), "new", 0755);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().sys_errno(), EROFS);
  }
}

TEST_F(OverlayMount, NoDirectoryIsRenamedByPointer) {
  const auto mounted = mount_overlay(writable());
  ASSERT_TRUE(mounted.ok());
  const auto renamed = sys::renameat2(mounted.value().get(), "d", mounted.value().get(), "e");
  ASSERT_FALSE(renamed.ok());
  EXPECT_EQ(renamed.error().sys_errno(), EXDEV);
}

TEST_F(OverlayMount, AwkwardAndLongPaths) {
  const auto odd = path("o,d:d\\ " + std::string(200, 'n'));
  ASSERT_EQ(::mkdir(odd.c_str(), 0755), 0);
  for (const auto* name : {"/up", "/work", "/low"})
    ASSERT_EQ(::mkdir((odd + name).c_str(), 0755), 0);
  const auto deep = odd + "/low/" + std::string(200, 'm');
  ASSERT_EQ(::mkdir(deep.c_str(), 0755), 0);
  test::write_file(deep + "/deep", "deep");
  const auto mounted =
      mount_overlay({{path("low"), deep}, odd + "/up", odd + "/work", Overlay::Sync::kDurable});
  ASSERT_TRUE(mounted.ok()) << mounted.error().message();
  EXPECT_EQ(test::list_tree_at(mounted.value().get(), TreeDetail::kShape),
            "f a low\nf b low\nd d\nf d/x low\nf deep deep\n");
}

TEST_F(OverlayMount, ManyLayers) {
  Overlay overlay;
  for (int i = 100; i < 160; ++i) {
    overlay.lower.push_back(path(cat("layer", i)));
    ASSERT_EQ(::mkdir(overlay.lower.back().c_str(), 0755), 0);
    test::write_file(overlay.lower.back() + "/top", std::to_string(i));
  }
  const auto mounted = mount_overlay(overlay);
  ASSERT_TRUE(mounted.ok()) << mounted.error().message();
  EXPECT_EQ(test::list_tree_at(mounted.value().get(), TreeDetail::kShape), "f top 159\n");
}

TEST_F(OverlayMount, AVolatileOneCannotBeMountedAgain) {
  auto overlay = writable();
  overlay.sync = Overlay::Sync::kVolatile;
  ASSERT_TRUE(mount_overlay(overlay).ok());
  const auto again = mount_overlay(overlay);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().sys_errno(), EINVAL);
  EXPECT_NE(again.error().hint().find("volatile"), std::string::npos) << again.error().hint();
}

TEST_F(OverlayMount, RefusesWhatIsNone) {
  EXPECT_EQ(mount_overlay({}).error().code(), Code::kInvalid);
  EXPECT_EQ(mount_overlay({{path("low")}, path("up"), "", Overlay::Sync::kDurable}).error().code(),
            Code::kInvalid);
  EXPECT_EQ(
      mount_overlay({{"low"}, path("up"), path("work"), Overlay::Sync::kDurable}).error().code(),
      Code::kInvalid);
  const auto missing =
      mount_overlay({{path("none")}, path("up"), path("work"), Overlay::Sync::kDurable});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().sys_errno(), ENOENT);
}

TEST_F(OverlayMount, ItIsInNoNamespaceUntilAttached) {
  const auto before = read_table();
  ASSERT_TRUE(before.ok()) << before.error().message();
  const auto failure = in_namespace([&]() -> Result<> {
    auto mounted = TRY(mount_overlay(writable()));
    const auto count = TRY(read_table()).size();
    TRY(sys::mkdirat(AT_FDCWD, path("at"), 0755));
    TRY(sys::move_mount(mounted.get(), "", AT_FDCWD, path("at"), MOVE_MOUNT_F_EMPTY_PATH));
    mounted.reset();
    const auto table = TRY(read_table());
    TRY(expect(table.size() == count + 1, "attached, it is one mount more"));
    const auto& entry = table.back();
    TRY(expect(entry.target == path("at"), "the table has its place"));
    TRY(expect(entry.fstype == "overlay" && entry.source == "overlay" && entry.root == "/",
               "the table says what it is"));
    TRY(expect(entry.propagation == "private", "the namespace is private"));
    TRY(expect(entry.parent != 0 && entry.id != entry.parent, "the table has numbers"));
    TRY(expect(entry.fs_options.find(path("mid")) != std::string::npos,
               "the layers can be read from the table"));
    TRY(expect(entry.options.find("rw") == 0, "it is writable"));
    return expect(test::list_tree(path("at"), TreeDetail::kShape) ==
                      "f a low\nf b mid\nd d\nf d/x low\nf d/y mid\n",
                  "it is seen by path");
  });
  EXPECT_EQ(failure, "");
  const auto after = read_table();
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after.value().size(), before.value().size());
  // Nothing holds the directories: the same can be mounted again.
  EXPECT_TRUE(mount_overlay(writable()).ok());
}

TEST(MountTable, OfAProcess) {
  const auto init = read_table("1");
  ASSERT_TRUE(init.ok()) << init.error().message();
  EXPECT_TRUE(std::any_of(init.value().begin(), init.value().end(),
                          [](const MountEntry& entry) { return entry.target == "/"; }));
  EXPECT_EQ(read_table("4194304").error().code(), Code::kNotFound);
  EXPECT_EQ(read_table("../1").error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace wherry::mount
