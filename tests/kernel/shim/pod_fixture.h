// Pods on a root directory of busybox, in places of the test's own; nothing may be left of them.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "cgroups/cgroups.h"
#include "shim/pods.h"
#include "shim/protocol/removal.h"

namespace wherry::shim {

class PodTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    const std::string tag = random_hex(4);
    base_ = cat("/tmp/wherry-shim-", tag);
    places_.root = base_ + "/root";
    places_.state = base_ + "/state";
    places_.cgroup_parent = "/wherry-test-shim-" + tag;
    make_root();
    auto pods = Pods::open(places_);
    ASSERT_TRUE(pods.ok()) << pods.error().message();
    pods_.emplace(std::move(pods).value());
  }

  void TearDown() override {
    if (!pods_) return;
    const auto left = pods_->list();
    ASSERT_TRUE(left.ok()) << left.error().message();
    for (const auto& pod : left.value()) {
      const auto removed =
          pods_->remove({pod.id, ""}, Pods::Force::kYes, Deadline::in(Millis{20'000}));
      EXPECT_TRUE(removed.ok()) << removed.error().message();
    }
    const auto leaks = pods_->leaks();
    ASSERT_TRUE(leaks.ok()) << leaks.error().message();
    EXPECT_TRUE(leaks.value().empty()) << dump_json_pretty(leaks.value());
    remove_pod_cgroups(places_.cgroup_parent, Deadline::in(Millis{5'000}))
        .ignore("leaks() has told");
    EXPECT_TRUE(remove_tree(AT_FDCWD, base_).ok());
  }

  void make_root() {
    const std::string root = base_ + "/rootfs";
    for (const auto& dir : {base_, root, root + "/bin", root + "/tmp", root + "/etc"})
      ASSERT_TRUE(sys::mkdirat(AT_FDCWD, dir, 0755).ok()) << dir;
    const auto busybox = read_file_at(AT_FDCWD, "/bin/busybox", 16 * 1024 * 1024);
    ASSERT_TRUE(busybox.ok()) << "the test needs a static busybox";
    const auto bin = sys::openat(AT_FDCWD, root + "/bin", O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(bin.ok());
    ASSERT_TRUE(replace_file(bin.value().get(), "busybox", busybox.value(), 0755).ok());
    for (const char* applet :
         {"sh", "true", "sleep", "cat", "echo", "seq", "id", "stty", "tty", "dd", "hostname", "ip"})
      ASSERT_TRUE(sys::symlinkat("busybox", AT_FDCWD, cat(root, "/bin/", applet)).ok());
    rootfs_ = root;
  }

  pod::Pod pod_of(const std::string& name, std::vector<std::string> command) const {
    pod::Pod pod;
    pod.name = name;
    pod.restart = pod::Restart::kNever;
    pod.grace = std::chrono::seconds{1};
    pod.containers.push_back(container_of("main", std::move(command)));
    return pod;
  }
  pod::Container container_of(const std::string& name, std::vector<std::string> command) const {
    pod::Container container;
    container.name = name;
    container.rootfs_dir = rootfs_;
    container.command = std::move(command);
    container.env = {{"PATH", "/bin"}};
    return container;
  }
  static std::vector<std::string> sh(const std::string& script) {
    return {"/bin/sh", "-c", script};
  }

  Result<PodStatus> run(pod::Pod pod) {
    return pods_->run(std::move(pod), Deadline::in(Millis{20'000}));
  }
  std::string log_of(const std::string& pod_id, const std::string& container) {
    std::string text;
    const auto read = pods_->logs({pod_id, container}, {},
                                  [&](bool, std::string_view, std::string_view line) -> Result<> {
                                    text.append(line).append("\n");
                                    return {};
                                  });
    return read.ok() ? text : "no log: " + read.error().message();
  }
  // What a process of ours prints when it runs attached.
  struct Attached {
    Result<int> code = 0;
    std::string out, err;
  };
  Attached run_attached(pod::Pod pod, const std::string& input = {});

  std::string base_, rootfs_;
  Places places_;
  std::optional<Pods> pods_;
};

inline PodTest::Attached PodTest::run_attached(pod::Pod pod, const std::string& input) {
  const auto file = [](const std::string& name) { return sys::memfd_create(name, 0).value(); };
  const auto in = file("in"), out = file("out"), err = file("err");
  EXPECT_TRUE(sys::write_all(in.get(), input).ok());
  ::lseek(in.get(), 0, SEEK_SET);
  Attached result;
  result.code = pods_->run_attached(std::move(pod), {in.get(), out.get(), err.get()});
  ::lseek(out.get(), 0, SEEK_SET);
  ::lseek(err.get(), 0, SEEK_SET);
  result.out = sys::read_to_end(out.get(), 64 << 20).value();
  result.err = sys::read_to_end(err.get(), 64 << 20).value();
  return result;
}

}  // namespace wherry::shim
