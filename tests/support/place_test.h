// A fixture for kernel tests that need cgroups: places below a path of the test's own, all gone at
// its end.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "cgroups/cgroups.h"

namespace wherry::test {

// Fails the test and returns nothing when a Result is an error.
#define ASSERT_OK(expr)                                       \
  do {                                                        \
    const auto& asserted = (expr);                            \
    ASSERT_TRUE(asserted.ok()) << asserted.error().message(); \
  } while (false)

class PlaceTest : public testing::Test {
 protected:
  static constexpr const char* kParent = "/wherry-test-cg";

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    auto found = cgroups::discover();
    if (!found.ok()) GTEST_SKIP() << "needs a cgroup2 mount: " << found.error().message();
    host_ = *found;
    path_ = cat(kParent, "/", ::getpid());
  }

  void TearDown() override {
    if (host_.unified.empty()) return;
    for (const auto& path : {path_, std::string{kParent}}) {
      auto place = cgroups::Place::open(host_, path);
      if (!place.ok()) continue;
      EXPECT_TRUE(place->thaw().ok());
      EXPECT_TRUE(place->kill().ok());
      reap_all();
      auto removed = place->remove(Deadline::in(Millis{5000}));
      EXPECT_TRUE(removed.ok()) << removed.error().message();
    }
  }

  bool is_hybrid() const { return host_.driver == cgroups::Driver::kHybrid; }
  bool has(const std::string& controller) const {
    return host_.v1.contains(controller == "io" ? "blkio" : controller) ||
           std::find(host_.unified_controllers.begin(), host_.unified_controllers.end(),
                     controller) != host_.unified_controllers.end();
  }

  Result<cgroups::Place> make(const oci::Resources& resources, const std::string& name = "a") {
    auto place = TRY(cgroups::Place::create(host_, cat(path_, "/", name),
                                            cgroups::needed_controllers(resources)));
    TRY(place.apply(TRY(cgroups::to_writes(resources, host_))));
    return place;
  }

  // A child that is born in the place and runs `body`; its value is the exit status.
  Cloned spawn(const cgroups::Place& place, const std::function<int()>& body) {
    auto files = place.open_self_placement();
    EXPECT_TRUE(files.ok()) << files.error().message();
    CloneArgs args;
    args.cgroup_fd = place.unified_fd();
    auto child = clone_process(args);
    EXPECT_TRUE(child.ok()) << child.error().message();
    if (!child.ok()) return {};
    if (child->pid == 0) {
      constexpr int kNotPlaced = 111;
      ::_exit(cgroups::place_self(*files).ok() ? body() : kNotPlaced);
    }
    return std::move(*child);
  }
  // Exit status, or 128 + signal; -1 when it does not end within ten seconds.
  static int wait(const Cloned& child) {
    auto ready = sys::poll_one(child.pidfd.get(), POLLIN, Deadline::in(Millis{10000}));
    if (!ready.ok() || *ready == 0) return -1;
    auto info = sys::waitid_pidfd(child.pidfd.get(), WEXITED);
    if (!info.ok() || !*info) return -1;
    return (*info)->si_code == CLD_EXITED ? (*info)->si_status : 128 + (*info)->si_status;
  }
  static int sleep_forever() {
    while (true) ::pause();
  }

  cgroups::Hierarchies host_;
  std::string path_;

 private:
  static void reap_all() {
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
  }
};

}  // namespace wherry::test
