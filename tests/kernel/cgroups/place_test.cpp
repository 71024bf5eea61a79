// Places on the kernel's own cgroups, whichever driver the host has.
#include "tests/support/place_test.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <chrono>

#include "base/file.h"

namespace wherry::cgroups {
namespace {

using test::PlaceTest;

oci::Resources with_memory(std::int64_t limit) {
  oci::Resources resources;
  resources.memory.emplace().limit = limit;
  return resources;
}

std::string cgroup_of(pid_t pid) {
  auto text = read_file_at(AT_FDCWD, cat("/proc/", pid, "/cgroup"), 65536);
  return text.ok() ? *text : "";
}

TEST_F(PlaceTest, AChildIsBornInAllPartsOfThePlace) {
  auto place = make({});
  ASSERT_OK(place);
  EXPECT_EQ(place->needs_placement(), is_hybrid());
  const auto child = spawn(*place, sleep_forever);
  auto pids = place->processes();
  ASSERT_OK(pids);
  EXPECT_EQ(*pids, std::vector<pid_t>{child.pid});
  // The child puts itself into the v1 parts: wait until it has.
  const auto expected = cat(":", place->path(), "\n");
  const std::vector<std::string> parts =
      is_hybrid() ? std::vector<std::string>{"0:", ":memory", ":cpu", ":pids"}
                  : std::vector<std::string>{"0:"};
  const auto deadline = Deadline::in(Millis{5000});
  for (const auto& part : parts) {
    while (cgroup_of(child.pid).find(cat(part, expected)) == std::string::npos) {
      ASSERT_FALSE(deadline.expired()) << part << " in " << cgroup_of(child.pid);
      ::usleep(1000);
    }
  }
  ASSERT_OK(place->kill());
  EXPECT_EQ(wait(child), 128 + SIGKILL);
  ASSERT_OK(place->wait_empty(Deadline::in(Millis{1000})));
  ASSERT_OK(place->remove(Deadline::in(Millis{1000})));
  EXPECT_FALSE(Place::open(host_, place->path()).ok());
  ASSERT_OK(place->remove(Deadline::in(Millis{0})));  // again is fine
}

// A child places itself into the v1 hierarchies some time after spawn() has come back.
void wait_until_placed(const Place& place) {
  if (!place.needs_placement()) return;
  for (const auto deadline = Deadline::in(Millis{5000}); !deadline.expired();)
    if (const auto procs = place.read("pids", "cgroup.procs"); procs.ok() && !procs.value().empty())
      return;
}

TEST_F(PlaceTest, AProcessThatIsThereAlreadyIsMoved) {
  auto place = make({});
  auto other = make({}, "b");
  ASSERT_OK(place);
  ASSERT_OK(other);
  const auto child = spawn(*other, sleep_forever);
  wait_until_placed(*other);
  ASSERT_OK(place->add_everywhere(child.pid));
  EXPECT_EQ(place->processes().value(), std::vector<pid_t>{child.pid});
  if (is_hybrid()) {
    EXPECT_NE(cgroup_of(child.pid).find(cat(":memory:", place->path())), std::string::npos);
  }
  ASSERT_OK(place->kill());
  EXPECT_EQ(wait(child), 128 + SIGKILL);
}

TEST_F(PlaceTest, CreateRefusesOneThatIsInUseAndRenewsAnEmptyOne) {
  auto resources = oci::Resources{};
  resources.pids_limit = 7;
  auto place = make(resources);
  ASSERT_OK(place);
  const auto child = spawn(*place, sleep_forever);
  auto second = make({});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kExists);
  EXPECT_NE(second.error().message().find(cat("pid ", child.pid)), std::string::npos)
      << second.error().message();
  ASSERT_OK(place->kill());
  wait(child);
  auto third = make({});
  ASSERT_OK(third);
  EXPECT_EQ(third->stats()->pids_max, std::nullopt) << "the old limit is still there";
}

TEST_F(PlaceTest, OnlyItsOwnDirectoriesArePartOfIt) {
  auto place = make({});
  ASSERT_OK(place);
  auto own = place->directories();
  ASSERT_OK(own);
  EXPECT_EQ(own->size(), Place::planned(host_, {"memory", "cpu", "pids"}).size());
  ASSERT_OK(Place::open(host_, place->path(), *own));
  auto next = make({});  // of the same path: the empty one is made anew
  ASSERT_OK(next);
  const auto child = spawn(*next, sleep_forever);
  EXPECT_EQ(Place::open(host_, place->path(), *own).error().code(), Code::kNotFound);
  // Neither the old one's descriptors nor its record harm the one that has its path.
  ASSERT_OK(place->kill());
  ASSERT_OK(place->remove(Deadline::in(Millis{0})));
  ASSERT_OK(Place::remove(host_, place->path(), *own, Deadline::in(Millis{0})));
  ASSERT_OK(Place::remove(host_, place->path(), Place::planned(host_, {"memory", "cpu", "pids"}),
                          Deadline::in(Millis{0})));
  EXPECT_EQ(next->processes().value(), std::vector<pid_t>{child.pid});
  ASSERT_OK(Place::open(host_, next->path(), next->directories().value()));
  ASSERT_OK(next->kill());
  EXPECT_EQ(wait(child), 128 + SIGKILL);
}

TEST_F(PlaceTest, WhatIsLeftOfItIsRemovedByItsRecord) {
  auto place = make({});
  ASSERT_OK(place);
  const auto own = place->directories().value();
  // As if a removal had been killed in between, in either order.
  ASSERT_OK(sys::unlinkat(AT_FDCWD, cat(host_.unified, place->path()), AT_REMOVEDIR));
  ASSERT_OK(Place::remove(host_, place->path(), own, Deadline::in(Millis{1000})));
  for (const auto& [controller, mount_point] : host_.v1)
    EXPECT_FALSE(sys::fstatat(AT_FDCWD, cat(mount_point, place->path())).ok()) << controller;
  ASSERT_OK(Place::remove(host_, place->path(), own, Deadline::in(Millis{0})));  // again is fine
}

TEST_F(PlaceTest, CreateRefusesOneWithGroupsOfOthers) {
  auto place = make({});
  ASSERT_OK(place);
  ASSERT_OK(place->make_leaf("theirs"));
  const auto second = make({});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kExists);
  EXPECT_NE(second.error().message().find("groups"), std::string::npos);
  ASSERT_OK(Place::open(host_, cat(place->path(), "/theirs")));
}

TEST_F(PlaceTest, PathsMayNotLeave) {
  for (const auto* bad : {"/../x", "/wherry-test-cg/../../x", "wherry-test-cg", "/a//b"})
    EXPECT_EQ(Place::create(host_, bad, {}).error().code(), Code::kInvalid) << bad;
  auto place = make({});
  ASSERT_OK(place);
  for (const auto* bad : {"../x", "a/b", "..", "", "a\nb"})
    EXPECT_EQ(place->make_leaf(bad).error().code(), Code::kInvalid) << bad;
  EXPECT_FALSE(place->read("", "../cgroup.procs").ok());
  EXPECT_FALSE(place->apply({{"", "../a/cgroup.freeze", "1"}}).ok());
}

TEST_F(PlaceTest, FreezeAndThaw) {
  auto place = make({});
  ASSERT_OK(place);
  const auto child = spawn(*place, [] {
    while (true) {
    }
    return 0;
  });
  ASSERT_OK(place->freeze(Deadline::in(Millis{5000})));
  EXPECT_TRUE(place->frozen().value());
  const auto before = place->stats()->cpu_usage_usec;
  ::usleep(50000);
  EXPECT_EQ(place->stats()->cpu_usage_usec, before);
  ASSERT_OK(place->thaw());
  const auto deadline = Deadline::in(Millis{5000});
  while (place->stats()->cpu_usage_usec == before && !deadline.expired()) ::usleep(1000);
  EXPECT_GT(place->stats()->cpu_usage_usec, before);
  // A frozen group can be killed.
  ASSERT_OK(place->freeze(Deadline::in(Millis{5000})));
  ASSERT_OK(place->kill());
  EXPECT_EQ(wait(child), 128 + SIGKILL);
}

TEST_F(PlaceTest, KillTakesAForkBomb) {
  auto resources = oci::Resources{};
  resources.pids_limit = 60;
  auto place = make(resources);
  ASSERT_OK(place);
  const auto child = spawn(*place, [] {
    while (true) ::fork();
    return 0;
  });
  const auto filled = Deadline::in(Millis{20000});
  while (place->stats()->pids_current.value_or(0) < 60 && !filled.expired()) ::usleep(1000);
  EXPECT_EQ(place->stats()->pids_current, 60U);
  ASSERT_OK(place->kill());
  EXPECT_EQ(wait(child), 128 + SIGKILL);
  ASSERT_OK(place->wait_empty(Deadline::in(Millis{5000})));
}

TEST_F(PlaceTest, PidsLimit) {
  auto resources = oci::Resources{};
  resources.pids_limit = 3;
  auto place = make(resources);
  ASSERT_OK(place);
  EXPECT_EQ(place->stats()->pids_max, 3U);
  const auto child = spawn(*place, [] {
    int made = 0;
    while (made < 10) {
      const pid_t pid = ::fork();
      if (pid < 0) break;
      if (pid == 0) sleep_forever();
      ++made;
    }
    return errno == EAGAIN ? made : 99;
  });
  EXPECT_EQ(wait(child), 2);
}

TEST_F(PlaceTest, OutOfMemoryIsCountedAndReported) {
  constexpr std::int64_t kLimit = 16 << 20;
  auto resources = with_memory(kLimit);
  auto place = make(resources);
  ASSERT_OK(place);
  ASSERT_EQ(place->stats()->memory_max, static_cast<std::uint64_t>(kLimit));
  auto events = place->open_oom_events();
  ASSERT_OK(events);
  EXPECT_EQ(place->oom_count()->kills, 0U);
  const auto child = spawn(*place, [] {
    constexpr std::size_t kSize = 64 << 20;
    auto* memory = static_cast<volatile char*>(
        ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (std::size_t i = 0; i < kSize; i += 4096) memory[i] = 1;
    return 0;
  });
  EXPECT_EQ(wait(child), 128 + SIGKILL);
  const short interest = is_hybrid() ? POLLIN : POLLPRI;
  auto woken = sys::poll_one(events->get(), interest, Deadline::in(Millis{5000}));
  ASSERT_OK(woken);
  EXPECT_NE(*woken & interest, 0);
  EXPECT_EQ(place->oom_count()->kills, 1U);
}

TEST_F(PlaceTest, RemovalIsNoOutOfMemory) {
  auto place = make(with_memory(16 << 20));
  ASSERT_OK(place);
  auto events = place->open_oom_events();
  ASSERT_OK(events);
  ASSERT_OK(place->remove(Deadline::in(Millis{1000})));
  auto count = place->oom_count();
  ASSERT_FALSE(count.ok());
  EXPECT_EQ(count.error().code(), Code::kNotFound);
}

TEST_F(PlaceTest, MemoryAndSwapAreRaisedAndLoweredInOneUpdate) {
  auto resources = with_memory(32 << 20);
  resources.memory->swap = 32 << 20;
  if (is_hybrid() &&
      !sys::fstatat(AT_FDCWD, host_.v1["memory"] + "/memory.memsw.limit_in_bytes").ok())
    GTEST_SKIP() << "needs swap accounting in the v1 memory controller";
  auto place = make(resources);
  ASSERT_OK(place);
  for (const std::int64_t limit : {64 << 20, 16 << 20, 128 << 20}) {
    resources.memory->limit = limit;
    resources.memory->swap = limit;
    auto applied = place->apply(to_writes(resources, host_).value());
    ASSERT_OK(applied);
    EXPECT_EQ(place->stats()->memory_max, static_cast<std::uint64_t>(limit));
  }
}

TEST_F(PlaceTest, CheckBeforeUpdate) {
  auto resources = with_memory(64 << 20);
  auto place = make(resources);
  ASSERT_OK(place);
  if (is_hybrid()) GTEST_SKIP() << "memory.checkBeforeUpdate concerns v2 only";
  const auto child = spawn(*place, [] {
    std::string memory(32 << 20, 'x');
    ::pause();
    return memory[5] == 'x' ? 0 : 1;
  });
  const auto deadline = Deadline::in(Millis{10000});
  while (place->stats()->memory_current.value_or(0) < 32 << 20 && !deadline.expired())
    ::usleep(1000);
  resources.memory->limit = 8 << 20;
  resources.memory->check_before_update = true;
  auto applied = place->apply(to_writes(resources, host_).value());
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().code(), Code::kState);
  ASSERT_OK(place->kill());
  EXPECT_EQ(wait(child), 128 + SIGKILL);
}

TEST_F(PlaceTest, CpuQuotaIsKept) {
  oci::Resources resources;
  resources.cpu.emplace().quota = 20000;
  resources.cpu->period = 100000;
  auto place = make(resources);
  ASSERT_OK(place);
  const auto start = boot_time();
  const auto child = spawn(*place, [] {
    while (true) {
    }
    return 0;
  });
  ::usleep(2000000);
  const auto used = place->stats()->cpu_usage_usec.value_or(0);
  const auto elapsed =
      std::chrono::duration_cast<std::chrono::microseconds>(boot_time() - start).count();
  // 20 % and a period of grace; more than that is no quota. A busy machine may give less.
  EXPECT_LE(used, static_cast<std::uint64_t>(elapsed) / 5 + 60000) << "of " << elapsed;
  EXPECT_GT(place->stats()->nr_throttled.value_or(0), 0U);
  ASSERT_OK(place->kill());
  EXPECT_EQ(wait(child), 128 + SIGKILL);
}

TEST_F(PlaceTest, CpusetsTakeProcesses) {
  if (!has("cpuset")) GTEST_SKIP() << "needs the cpuset controller";
  oci::Resources resources;
  resources.cpu.emplace().cpus = "0";
  auto place = make(resources);
  ASSERT_OK(place);
  const auto child = spawn(*place, [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) < 0) return 99;
    return CPU_COUNT(&set) == 1 && CPU_ISSET(0, &set) ? 0 : 1;
  });
  EXPECT_EQ(wait(child), 0);
}

TEST_F(PlaceTest, ASettingTheKernelRefusesNamesFileAndValue) {
  auto place = make({});
  ASSERT_OK(place);
  const auto controller = is_hybrid() ? "pids" : "";
  auto applied = place->apply({{controller, "pids.max", "many"}});
  ASSERT_FALSE(applied.ok());
  EXPECT_NE(applied.error().message().find("pids.max = many"), std::string::npos)
      << applied.error().message();
}

TEST_F(PlaceTest, ALeafIsKilledAlone) {
  auto place = make({});
  ASSERT_OK(place);
  const auto init = spawn(*place, sleep_forever);
  auto leaf_fd = place->make_leaf("exec1");
  ASSERT_OK(leaf_fd);
  auto leaf = Place::open(host_, place->path() + "/exec1");
  ASSERT_OK(leaf);
  const auto child = spawn(*leaf, sleep_forever);
  EXPECT_EQ(place->processes()->size(), 2U);
  ASSERT_OK(leaf->kill());
  EXPECT_EQ(wait(child), 128 + SIGKILL);
  ASSERT_OK(leaf->remove(Deadline::in(Millis{1000})));
  EXPECT_EQ(place->processes().value(), std::vector<pid_t>{init.pid});
  ASSERT_OK(place->kill());
  EXPECT_EQ(wait(init), 128 + SIGKILL);
}

TEST_F(PlaceTest, AParentWithProcessesIsToldAtOnce) {
  std::string controller = is_hybrid() ? "" : "memory";
  if (is_hybrid() && !host_.unified_controllers.empty()) controller = host_.unified_controllers[0];
  if (controller.empty()) GTEST_SKIP() << "needs a controller in the v2 hierarchy";
  auto parent = Place::create(host_, path_, {});
  ASSERT_OK(parent);
  const auto child = spawn(*parent, sleep_forever);
  const auto start = boot_time();
  auto place = Place::create(host_, cat(path_, "/a"), {controller});
  EXPECT_LT(boot_time() - start, std::chrono::milliseconds{500});
  ASSERT_FALSE(place.ok());
  EXPECT_EQ(place.error().code(), Code::kBusy);
  EXPECT_NE(place.error().message().find(cat("pid ", child.pid)), std::string::npos)
      << place.error().message();
  ASSERT_OK(parent->kill());
  EXPECT_EQ(wait(child), 128 + SIGKILL);
}

TEST_F(PlaceTest, AFailedCreateLeavesNothing) {
  auto broken = host_;
  broken.v1["pids"] = "/proc";  // no cgroup file system
  auto place = Place::create(broken, path_ + "/x", {"memory", "pids"});
  ASSERT_FALSE(place.ok());
  EXPECT_EQ(place.error().code(), Code::kUnsupported);
  EXPECT_FALSE(Place::open(host_, path_).ok()) << "the parents are left";
}

TEST_F(PlaceTest, RemoveTellsWhoIsLeft) {
  auto place = make({});
  ASSERT_OK(place);
  const auto child = spawn(*place, sleep_forever);
  wait_until_placed(*place);
  auto removed = place->remove(Deadline::in(Millis{20}));
  ASSERT_FALSE(removed.ok());
  EXPECT_EQ(removed.error().code(), Code::kTimeout);
  EXPECT_NE(removed.error().message().find(cat("pid ", child.pid)), std::string::npos)
      << removed.error().message();
  auto waited = place->wait_empty(Deadline::in(Millis{20}));
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code(), Code::kTimeout);
  ASSERT_OK(place->kill());
  EXPECT_EQ(wait(child), 128 + SIGKILL);
}

TEST_F(PlaceTest, DeepAndWideTreesAreRemoved) {
  auto place = make({});
  ASSERT_OK(place);
  constexpr int kDepth = 200, kWidth = 20;
  auto at = sys::openat(place->unified_fd(), ".", O_RDONLY | O_DIRECTORY);
  for (int depth = 0; depth < kDepth; ++depth) {
    if (depth % 50 == 0)
      for (int i = 0; i < kWidth; ++i) ASSERT_OK(sys::mkdirat(at->get(), cat("w", i), 0755));
    ASSERT_OK(sys::mkdirat(at->get(), "deep", 0755));
    at = sys::openat(at->get(), "deep", O_RDONLY | O_DIRECTORY);
    ASSERT_OK(at);
  }
  ASSERT_OK(place->remove(Deadline::in(Millis{20000})));
}

TEST_F(PlaceTest, OneThatIsGoneIsStopped) {
  auto place = make({});
  ASSERT_OK(place);
  auto same = Place::open(host_, place->path());
  ASSERT_OK(same);
  ASSERT_OK(same->remove(Deadline::in(Millis{1000})));
  EXPECT_FALSE(place->populated().value());
  EXPECT_FALSE(place->frozen().value());
  EXPECT_TRUE(place->processes()->empty());
  EXPECT_TRUE(place->kill().ok());
  EXPECT_TRUE(place->wait_empty(Deadline::in(Millis{0})).ok());
  EXPECT_EQ(place->stats().error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace wherry::cgroups
