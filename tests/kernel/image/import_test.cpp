// Whole imports of what other programs have written, and what is left when one fails.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "mount/overlay.h"
#include "runtime/image/store.h"
#include "tests/support/tar_writer.h"
#include "tests/support/temp_dir.h"

namespace wherry::image {
namespace {

using test::Tar;
using test::TreeDetail;

#define REQUIRE_PROGRAM(path) \
  if (::access(path, X_OK) != 0) GTEST_SKIP() << path << " is not installed"

class Import : public testing::Test {
 protected:
  Import() { EXPECT_EQ(::mkdir(work().c_str(), 0755), 0); }
  std::string work() const { return dir_.path() + "/work"; }
  std::string store_path() const { return dir_.path() + "/store"; }

  // A shell script of the test's own words, in the work directory.
  void shell(const std::string& script) {
    Command command;
    command.argv = {"/bin/sh", "-euc", "cd '" + work() + "'\n" + script};
    command.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + work()};
    const auto result = run_command(command, Deadline::in(std::chrono::minutes{2}));
    ASSERT_TRUE(result.ok()) << result.error().message();
    ASSERT_EQ(result.value().exit_status, 0) << script << "\n" << result.value().err;
  }
  Result<std::vector<Image>> import(const std::string& file, const std::string& reference = "") {
    auto store = TRY(Store::open(store_path()));
    return store.import(work() + "/" + file, reference);
  }
  // Everything of an image as a container would see it.
  static std::string seen(const Image& image) {
    mount::Overlay overlay;
    overlay.lower = image.layer_dirs;
    const auto mounted = mount::mount_overlay(overlay);
    return mounted.ok() ? test::list_tree_at(mounted.value().get(), TreeDetail::kAll)
                        : mounted.error().message();
  }
  std::string listing(const std::string& dir) const {
    return test::list_tree(work() + "/" + dir, TreeDetail::kAll);
  }
  // What the store holds, but for the files of locks.
  std::string holds() const {
    std::string out;
    const auto all = test::list_tree(store_path() + "/images", TreeDetail::kShape);
    for (const auto line : split(all, '\n'))
      if (line.starts_with("d ") || (line.starts_with("f ") && !line.ends_with("lock")))
        out += cat(line.substr(0, line.find(' ', 2)), "\n");
    return out;
  }
  void expect_empty_store() const {
    EXPECT_EQ(holds(), "d blobs\nd blobs/sha256\nd blobs/sha512\nd layers\nd refs\nd tmp\n");
  }

  // Two layers by umoci with all that a layer can say. "bundle/rootfs" is what umoci makes of them.
  void make_layered() {
    shell(R"sh(
      umoci init --layout oci && umoci new --image oci:v1
      umoci unpack --image oci:v1 edit
      cd edit/rootfs
      mkdir -m 0755 bin etc usr usr/lib gone replaced opaque; ln -s usr/lib lib
      cp /bin/busybox bin/ && ln bin/busybox bin/sh
      echo one > etc/one && chmod 4755 etc/one && chown 12:34 etc/one
      mkdir -m 1777 tmp; mkdir -m 0700 root; chown 7:8 root
      ln -s /etc/one absolute; ln -s nowhere dangling; mkfifo pipe; mknod null c 1 3
      echo x > gone/x; echo x > replaced/x; echo x > opaque/x; echo x > usr/lib/x
      setfattr_or_not() { python3 -c 'import os, sys; os.setxattr(sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]))' "$@" 2>/dev/null || true; }
      setfattr_or_not etc/one user.note 6e
      setfattr_or_not bin/busybox security.capability 0100000200040000000000000000000000000000
      chown -h 1:2 dangling
      cd ../.. && umoci repack --image oci:v1 edit && rm -rf edit
      umoci unpack --image oci:v1 edit
      cd edit/rootfs
      rm -r gone replaced; echo file > replaced; rm -r opaque; mkdir opaque; echo y > opaque/y
      rm dangling; ln usr/lib/x usr/lib/y; chmod 0750 tmp; rm -r root
      cd ../.. && umoci repack --image oci:v2 edit && rm -rf edit
      umoci unpack --image oci:v2 bundle)sh");
  }

  test::TempDir dir_;
};

TEST_F(Import, AnOciLayoutIsWhatUmociUnpacks) {
  REQUIRE_PROGRAM("/usr/bin/umoci");
  make_layered();
  const auto images = import("oci");
  ASSERT_TRUE(images.ok()) << images.error().message();
  ASSERT_EQ(images.value().size(), 2U);
  const auto& v2 = images.value()[1];
  EXPECT_EQ(v2.names, std::vector<std::string>{"localhost/oci:v2"});
  EXPECT_EQ(v2.layer_dirs.size(), 2U);
  EXPECT_EQ(v2.layer_dirs[0], images.value()[0].layer_dirs[0]) << "the lower layer is not shared";
  EXPECT_EQ(seen(v2), listing("bundle/rootfs"));
}

TEST_F(Import, EveryPackagingOfOneImageGivesTheSameTree) {
  REQUIRE_PROGRAM("/usr/bin/umoci");
  REQUIRE_PROGRAM("/usr/bin/skopeo");
  make_layered();
  shell(R"(
    skopeo copy -q --insecure-policy oci:oci:v2 oci-archive:layout.tar:v2
    skopeo copy -q --insecure-policy oci:oci:v2 docker-archive:docker.tar:example.org/some/image:v2
    gzip -k layout.tar
    tar -C bundle/rootfs --xattrs --xattrs-include='*' --numeric-owner -cJf root.tar.xz .)");
  const auto expected = listing("bundle/rootfs");
  for (const auto* file :
       {"layout.tar", "layout.tar.gz", "docker.tar", "root.tar.xz", "bundle/rootfs"}) {
    SCOPED_TRACE(file);
    const auto images = import(file);
    ASSERT_TRUE(images.ok()) << images.error().message();
    ASSERT_EQ(images.value().size(), 1U);
    EXPECT_EQ(seen(images.value()[0]), expected);
  }
  auto store = Store::open(store_path());
  ASSERT_TRUE(store.ok());
  std::string names;
  const auto list = store->list();
  ASSERT_TRUE(list.ok()) << list.error().message();
  for (const auto& image : list.value()) names += join(image.names, " ") + "\n";
  EXPECT_NE(names.find("example.org/some/image:v2"), std::string::npos) << names;
  EXPECT_NE(names.find("localhost/layout:v2"), std::string::npos) << names;
  EXPECT_NE(names.find("localhost/root:latest"), std::string::npos) << names;
}

TEST_F(Import, OldDockerArchivesLinkTheirLayers) {
  const auto layer = Tar{}.file("a", "x").bytes();
  test::write_file(work() + "/layer", layer);
  shell("sha256sum layer | cut -d' ' -f1 > sum");
  const auto top = sys::openat(AT_FDCWD, work(), O_RDONLY | O_DIRECTORY);
  const auto sum = read_file_at(top.value().get(), "sum", 100);
  ASSERT_TRUE(sum.ok());
  const auto config = cat(
      R"({"architecture":"amd64","os":"linux","config":{"Cmd":["/a"]},"rootfs":{"type":"layers","diff_ids":["sha256:)",
      trim(sum.value()), R"("]}})");
  const auto manifest =
      R"([{"Config":"c.json","RepoTags":["busybox:old"],"Layers":["1111/layer.tar"]}])";
  const auto archive = Tar{}
                           .dir("2222")
                           .file("2222/layer.tar", layer)
                           .dir("1111")
                           .link("1111/layer.tar", "../2222/layer.tar")
                           .file("c.json", config)
                           .file("manifest.json", manifest);
  test::write_file(work() + "/old.tar", archive.bytes());
  const auto images = import("old.tar");
  ASSERT_TRUE(images.ok()) << images.error().message();
  EXPECT_EQ(images.value()[0].names, std::vector<std::string>{"docker.io/library/busybox:old"});
  EXPECT_EQ(images.value()[0].config.cmd, std::vector<std::string>{"/a"});
  EXPECT_EQ(test::list_tree(images.value()[0].layer_dirs[0], TreeDetail::kShape), "f a x\n");

  // The same with a link that leads out of the archive.
  const auto out = Tar{}
                       .dir("1111")
                       .link("1111/layer.tar", work() + "/layer")
                       .file("c.json", config)
                       .file("manifest.json", manifest);
  test::write_file(work() + "/out.tar", out.bytes());
  const auto refused = import("out.tar");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("No such file"), std::string::npos)
      << refused.error().message();
}

TEST_F(Import, AFailureLeavesNothing) {
  REQUIRE_PROGRAM("/usr/bin/umoci");
  make_layered();
  shell(R"sh(
    gzip -c bundle/rootfs/bin/busybox > not-a-tar.gz
    tar -C bundle/rootfs -czf whole.tar.gz . && head -c 300000 whole.tar.gz > cut.tar.gz
    tar -C bundle/rootfs -cf whole.tar . && head -c 102400 whole.tar > cut.tar
    cp -r oci last-byte; cp -r oci gone; cp -r oci long; cp -r oci truncated
    largest() { ls -S $1/blobs/sha256/* | head -n 1; }
    python3 -c 'import sys; f = open(sys.argv[1], "r+b"); f.seek(-1, 2); b = f.read(1)[0]; f.seek(-1, 2); f.write(bytes([b ^ 1]))' "$(largest last-byte)"
    rm "$(largest gone)"; echo >> "$(largest long)"; truncate -s -1 "$(largest truncated)"
    mkdir empty; : > empty.tar)sh");
  for (const auto* file : {"not-a-tar.gz", "cut.tar.gz", "cut.tar", "last-byte", "gone", "long",
                           "truncated", "empty", "empty.tar", "missing"}) {
    SCOPED_TRACE(file);
    const auto images = import(file);
    EXPECT_FALSE(images.ok());
    if (images.ok()) continue;
    EXPECT_TRUE(images.error().message().starts_with(cat("import '", work(), "/", file, "': ")))
        << images.error().message();
    expect_empty_store();
  }
  // What another image shares stays.
  ASSERT_TRUE(import("oci").ok());
  const auto before = holds();
  EXPECT_FALSE(import("cut.tar.gz").ok());
  EXPECT_FALSE(import("cut.tar").ok());
  EXPECT_EQ(holds(), before);
}

TEST_F(Import, ADirectoryMustBeARootFileSystem) {
  REQUIRE_PROGRAM("/usr/bin/umoci");
  make_layered();
  shell(R"sh(
    mkdir -p any/tmp any/home/user any/data near/files minimal/etc
    cp -r oci near/layout)sh");
  const auto any = import("any");
  ASSERT_FALSE(any.ok());
  EXPECT_EQ(
      any.error().message(),
      cat("import '", work(), "/any': '", work(),
          "/any' is neither an OCI layout (it has no 'oci-layout') nor a root file system (it "
          "has none of bin, etc, lib, lib64, sbin, usr)"));
  EXPECT_EQ(any.error().hint(), "");
  const auto near = import("near");
  ASSERT_FALSE(near.ok());
  EXPECT_EQ(near.error().hint(), cat("did you mean '", work(), "/near/layout'?"));
  expect_empty_store();
  EXPECT_TRUE(import("minimal").ok());
}

TEST_F(Import, BombsAreRefused) {
  shell(R"sh(
    truncate -s 200M zeros; tar -cf - zeros | gzip -1 > bomb.tar.gz
    gzip -1 < bomb.tar.gz > nested.tar.gz.gz
    rm zeros)sh");
  for (const auto* file : {"bomb.tar.gz", "nested.tar.gz.gz"}) {
    SCOPED_TRACE(file);
    const auto images = import(file);
    ASSERT_FALSE(images.ok());
    EXPECT_NE(images.error().message().find("times its size"), std::string::npos)
        << images.error().message();
    expect_empty_store();
  }
}

TEST_F(Import, AFullDiskLeavesNothing) {
  const auto child = ::fork();
  if (child == 0) {
    // In a namespace of its own; the result comes back as the status.
    const auto run = [&]() -> Result<> {
      TRY(sys::unshare(CLONE_NEWNS));
      TRY(sys::set_propagation("/", MS_PRIVATE | MS_REC));
      TRY(sys::mkdirat(AT_FDCWD, store_path(), 0700));
      const auto fs = TRY(sys::fsopen("tmpfs"));
      TRY(sys::fsconfig_string(fs.get(), "size", "4m"));
      TRY(sys::fsconfig_string(fs.get(), "mode", "0700"));
      TRY(sys::fsconfig_create(fs.get()));
      const auto mount = TRY(sys::fsmount(fs.get(), 0));
      TRY(sys::move_mount(mount.get(), "", AT_FDCWD, store_path(), MOVE_MOUNT_F_EMPTY_PATH));
      test::write_file(
          work() + "/big.tar",
          Tar{}.file("a", std::string(3 << 20, 'a')).file("b", std::string(3 << 20, 'b')).bytes());
      auto images = import("big.tar");
      if (images.ok()) return Error::make(Code::kState, "a full disk took it");
      if (images.error().sys_errno() != ENOSPC) return std::move(images).error();
      // 2.5 MB fit as a blob, and not a second time as files.
      test::write_file(work() + "/half.tar", Tar{}.file("a", std::string(5 << 19, 'a')).bytes());
      images = import("half.tar");
      if (images.ok() || images.error().sys_errno() != ENOSPC)
        return Error::make(Code::kState, "half of it did not fail as meant");
      expect_empty_store();
      return {};
    };
    const auto result = run();
    if (!result.ok()) std::fprintf(stderr, "%s\n", result.error().message().c_str());
    ::_exit(result.ok() && !HasFailure() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Import, AtTheSameTime) {
  REQUIRE_PROGRAM("/usr/bin/umoci");
  make_layered();
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const auto child = ::fork();
    if (child == 0) {
      const auto images = i % 2 == 0 ? import("oci", "") : import("bundle/rootfs", cat("copy", i));
      if (!images.ok()) std::fprintf(stderr, "%s\n", images.error().message().c_str());
      ::_exit(images.ok() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const auto child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  auto store = Store::open(store_path());
  const auto image = store->find("oci:v2");
  ASSERT_TRUE(image.ok()) << image.error().message();
  EXPECT_EQ(seen(image.value()), listing("bundle/rootfs"));
  const auto list = store->list();
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list.value().size(), 3U);
}

TEST_F(Import, FindAndRemove) {
  test::write_file(work() + "/one.tar", Tar{}.dir("./").file("a", "1").bytes());
  test::write_file(work() + "/two.tar", Tar{}.dir("./").file("a", "2").bytes());
  const auto one = import("one.tar"), two = import("two.tar", "example.org/team/one:latest");
  ASSERT_TRUE(one.ok() && two.ok());
  auto opened = Store::open(store_path());
  auto& store = opened.value();
  const auto found = [&](const std::string& name) {
    const auto image = store.find(name);
    return image.ok() ? image.value().digest.text() : std::string{to_string(image.error().code())};
  };
  const auto first = one.value()[0].digest, second = two.value()[0].digest;
  EXPECT_EQ(found("localhost/one"), first.text());
  EXPECT_EQ(found("localhost/one:latest"), first.text());
  EXPECT_EQ(found("one"), "invalid") << "two images are called so";
  EXPECT_EQ(found("team/one"), second.text());
  EXPECT_EQ(found("ne"), "not_found");
  EXPECT_EQ(found("one:2"), "not_found");
  EXPECT_EQ(found(first.text()), first.text());
  EXPECT_EQ(found("sha256:" + first.encoded.substr(0, 6)), first.text());
  EXPECT_EQ(found(second.encoded.substr(0, 12)), second.text());
  EXPECT_EQ(found(first.encoded.substr(0, 3)), "not_found");
  EXPECT_EQ(found("sha256:../../../etc/passwd"), "not_found");
  EXPECT_EQ(found("team/one@" + second.text()), second.text());
  EXPECT_EQ(found("team/one@" + first.text()), "not_found");

  const auto busy = store.remove("team/one", {{second.text(), "pod 'web'"}});
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.error().code(), Code::kBusy);
  EXPECT_NE(busy.error().message().find("pod 'web'"), std::string::npos);
  ASSERT_TRUE(import("two.tar", "second").ok());
  EXPECT_TRUE(store.remove("team/one", {{second.text(), "pod 'web'"}}).ok())
      << "another name is left";
  EXPECT_EQ(found("second"), second.text());
  const auto removed = store.remove(second.text(), {});
  ASSERT_TRUE(removed.ok());
  EXPECT_FALSE(removed.value().empty());  // the names that the digest had
  EXPECT_EQ(found(second.text()), "not_found");
  EXPECT_EQ(found("one"), first.text());
  EXPECT_EQ(test::list_tree(one.value()[0].layer_dirs[0], TreeDetail::kShape), "f a 1\n");

  // A name that moves on leaves the old image to its user alone.
  ASSERT_TRUE(import("two.tar", "one").ok());
  EXPECT_TRUE(store.remove("localhost/one", {{first.text(), "pod 'old'"}}).ok());
  EXPECT_EQ(found(first.text()), first.text());
  test::write_file(work() + "/three.tar", Tar{}.file("a", "3").bytes());
  ASSERT_TRUE(import("three.tar").ok());
  EXPECT_TRUE(store.remove("three", {}).ok());
  expect_empty_store();
}

}  // namespace
}  // namespace wherry::image
