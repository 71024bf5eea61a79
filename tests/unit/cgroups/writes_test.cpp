#include <gtest/gtest.h>

#include "base/text.h"
#include "cgroups/cgroups.h"

namespace wherry::cgroups {

void PrintTo(const Write& write, std::ostream* out) {
  *out << write.controller << ":" << write.file << "=" << write.value << " " << write.not_below;
}

namespace {

using List = std::vector<Write>;

Hierarchies pure() {
  Hierarchies host;
  host.unified = "/sys/fs/cgroup";
  host.unified_controllers = {"cpuset", "cpu", "io", "memory", "hugetlb", "pids", "rdma"};
  return host;
}

Hierarchies hybrid() {
  Hierarchies host;
  host.driver = Driver::kHybrid;
  host.unified = "/sys/fs/cgroup/unified";
  host.unified_controllers = {"hugetlb"};
  for (const auto* name : {"cpu", "cpuset", "memory", "blkio", "pids", "net_cls", "net_prio"})
    host.v1[name] = cat("/sys/fs/cgroup/", name);
  return host;
}

List writes(const oci::Resources& resources, const Hierarchies& host) {
  auto list = to_writes(resources, host);
  EXPECT_TRUE(list.ok()) << list.error().message();
  return list.ok() ? *list : List{};
}

std::string refusal(const oci::Resources& resources, const Hierarchies& host) {
  auto list = to_writes(resources, host);
  EXPECT_FALSE(list.ok());
  return list.ok() ? "" : list.error().message();
}

oci::Resources memory(std::optional<std::int64_t> limit, std::optional<std::int64_t> swap) {
  oci::Resources resources;
  resources.memory.emplace();
  resources.memory->limit = limit;
  resources.memory->swap = swap;
  return resources;
}

TEST(Memory, LimitAndSwap) {
  struct Case {
    std::optional<std::int64_t> limit, swap;
    List v2, v1;
  };
  const Case cases[] = {
      {{}, {}, {}, {}},
      {1000, {}, {{"", "memory.max", "1000"}}, {{"memory", "memory.limit_in_bytes", "1000"}}},
      {1000,
       1500,
       {{"", "memory.swap.max", "500"}, {"", "memory.max", "1000"}},
       {{"memory", "memory.limit_in_bytes", "1000"},
        {"memory", "memory.memsw.limit_in_bytes", "1500"}}},
      {1000,
       1000,
       {{"", "memory.swap.max", "0"}, {"", "memory.max", "1000"}},
       {{"memory", "memory.limit_in_bytes", "1000"},
        {"memory", "memory.memsw.limit_in_bytes", "1000"}}},
      {1000,
       -1,
       {{"", "memory.swap.max", "max"}, {"", "memory.max", "1000"}},
       {{"memory", "memory.limit_in_bytes", "1000"},
        {"memory", "memory.memsw.limit_in_bytes", "-1"}}},
      {-1,
       {},
       {{"", "memory.swap.max", "max"}, {"", "memory.max", "max"}},
       {{"memory", "memory.limit_in_bytes", "-1"}}},
      {0, 0, {}, {}},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(writes(memory(one.limit, one.swap), pure()), one.v2);
    EXPECT_EQ(writes(memory(one.limit, one.swap), hybrid()), one.v1);
  }
}

TEST(Memory, SwapNeedsALimitThatIsNotAboveIt) {
  for (const auto& host : {pure(), hybrid()}) {
    EXPECT_EQ(refusal(memory({}, 5), host),
              "linux.resources.memory.swap: is memory and swap together and needs memory.limit");
    EXPECT_EQ(refusal(memory(9, 5), host),
              "linux.resources.memory.swap: memory and swap together (5) below memory.limit (9)");
    EXPECT_EQ(refusal(memory(-2, {}), host), "linux.resources.memory.limit: -2 is below -1");
  }
}

TEST(Memory, TheRest) {
  auto resources = memory(1000, {});
  resources.memory->reservation = 500;
  resources.memory->check_before_update = true;
  EXPECT_EQ(writes(resources, pure()),
            (List{{"", "memory.max", "1000", "memory.current"}, {"", "memory.low", "500"}}));
  resources = memory({}, {});
  resources.memory->reservation = 500;
  resources.memory->kernel_tcp = 7;
  resources.memory->swappiness = 60;
  resources.memory->disable_oom_killer = true;
  resources.memory->use_hierarchy = true;
  EXPECT_EQ(writes(resources, hybrid()), (List{{"memory", "memory.soft_limit_in_bytes", "500"},
                                               {"memory", "memory.kmem.tcp.limit_in_bytes", "7"},
                                               {"memory", "memory.swappiness", "60"},
                                               {"memory", "memory.oom_control", "1"}}));
  EXPECT_EQ(refusal(resources, pure()),
            "linux.resources.memory.kernelTCP: needs the v1 memory controller");
  resources.memory->kernel_tcp.reset();
  EXPECT_EQ(refusal(resources, pure()),
            "linux.resources.memory.swappiness: needs the v1 memory controller");
  resources.memory->swappiness.reset();
  EXPECT_EQ(refusal(resources, pure()),
            "linux.resources.memory.disableOOMKiller: needs the v1 memory controller");
  resources.memory->disable_oom_killer = false;
  EXPECT_EQ(writes(resources, pure()), (List{{"", "memory.low", "500"}}));
  resources.memory->kernel = 1;
  EXPECT_EQ(refusal(resources, hybrid()),
            "linux.resources.memory.kernel: the kernel has no such limit any more (Linux 5.16)");
}

TEST(Cpu, WeightOfShares) {
  // Both ends, both defaults; the rest from the published curve 10^((l^2 + 125 l) / 612 - 7 / 34).
  const std::pair<std::uint64_t, std::uint64_t> table[] = {
      {0, 0},         {1, 1},          {2, 1},           {3, 2},      {10, 4},
      {102, 17},      {512, 59},       {1024, 100},      {2048, 174}, {4096, 303},
      {100000, 4340}, {262144, 10000}, {1U << 30, 10000}};
  for (const auto& [shares, weight] : table) EXPECT_EQ(weight_of_shares(shares), weight) << shares;
  for (std::uint64_t shares = 2; shares < 262144; shares += 97)
    ASSERT_LE(weight_of_shares(shares), weight_of_shares(shares + 97));
}

TEST(Cpu, QuotaAndPeriod) {
  struct Case {
    std::optional<std::int64_t> quota;
    std::optional<std::uint64_t> period;
    List v2, v1;
  };
  const Case cases[] = {
      {50000,
       100000,
       {{"", "cpu.max", "50000 100000"}},
       {{"cpu", "cpu.cfs_period_us", "100000"}, {"cpu", "cpu.cfs_quota_us", "50000"}}},
      {50000, {}, {{"", "cpu.max", "50000 100000"}}, {{"cpu", "cpu.cfs_quota_us", "50000"}}},
      {-1, {}, {{"", "cpu.max", "max 100000"}}, {{"cpu", "cpu.cfs_quota_us", "-1"}}},
      {{}, 20000, {{"", "cpu.max", "max 20000"}}, {{"cpu", "cpu.cfs_period_us", "20000"}}},
      {0, 0, {}, {}},
  };
  for (const auto& one : cases) {
    oci::Resources resources;
    resources.cpu.emplace();
    resources.cpu->quota = one.quota;
    resources.cpu->period = one.period;
    EXPECT_EQ(writes(resources, pure()), one.v2);
    EXPECT_EQ(writes(resources, hybrid()), one.v1);
  }
}

TEST(Cpu, TheRest) {
  oci::Resources resources;
  auto& cpu = resources.cpu.emplace();
  cpu.shares = 1024;
  cpu.idle = 1;
  cpu.burst = 7;
  cpu.cpus = "0-1";
  cpu.mems = "0";
  EXPECT_EQ(writes(resources, pure()), (List{{"", "cpu.weight", "100"},
                                             {"", "cpu.idle", "1"},
                                             {"", "cpu.max.burst", "7"},
                                             {"", "cpuset.cpus", "0-1"},
                                             {"", "cpuset.mems", "0"}}));
  EXPECT_EQ(writes(resources, hybrid()), (List{{"cpu", "cpu.shares", "1024"},
                                               {"cpu", "cpu.idle", "1"},
                                               {"cpu", "cpu.cfs_burst_us", "7"},
                                               {"cpuset", "cpuset.cpus", "0-1"},
                                               {"cpuset", "cpuset.mems", "0"}}));
  cpu.realtime_period = 1000000;
  cpu.realtime_runtime = 950000;
  EXPECT_EQ(refusal(resources, pure()),
            "linux.resources.cpu.realtimeRuntime: needs the v1 cpu controller");
}

TEST(Pids, NothingOrLessIsUnlimited) {
  for (const auto& [limit, value] :
       std::vector<std::pair<std::int64_t, std::string>>{{100, "100"}, {0, "max"}, {-1, "max"}}) {
    oci::Resources resources;
    resources.pids_limit = limit;
    EXPECT_EQ(writes(resources, pure()), (List{{"", "pids.max", value}}));
    EXPECT_EQ(writes(resources, hybrid()), (List{{"pids", "pids.max", value}}));
  }
}

TEST(BlockIo, WeightsAndThrottles) {
  oci::Resources resources;
  auto& io = resources.block_io.emplace();
  io.weight = 1000;
  io.weight_device = {{8, 0, 10, {}}};
  io.read_bps = {{8, 0, 1048576}};
  io.write_iops = {{8, 16, 0}};
  EXPECT_EQ(writes(resources, pure()), (List{{"", "io.weight", "default 10000"},
                                             {"", "io.weight", "8:0 1"},
                                             {"", "io.max", "8:0 rbps=1048576"},
                                             {"", "io.max", "8:16 wiops=max"}}));
  EXPECT_EQ(writes(resources, hybrid()),
            (List{{"blkio", "blkio.bfq.weight", "1000"},
                  {"blkio", "blkio.bfq.weight_device", "8:0 10"},
                  {"blkio", "blkio.throttle.read_bps_device", "8:0 1048576"},
                  {"blkio", "blkio.throttle.write_iops_device", "8:16 0"}}));
  io.weight = 9;
  EXPECT_EQ(refusal(resources, pure()), "linux.resources.blockIO.weight: 9 is not in 10 to 1000");
  io.weight = 10;
  io.weight_device[0].leaf_weight = 10;
  EXPECT_EQ(refusal(resources, hybrid()),
            "linux.resources.blockIO.weightDevice[0].leafWeight: the kernel has no leaf weight any "
            "more (Linux 5.0)");
}

TEST(Hugepages, DrivenByV2OnBoth) {
  oci::Resources resources;
  resources.hugepage_limits = {{"2MB", 4194304}};
  const List expected{{"", "hugetlb.2MB.rsvd.max", "4194304"}, {"", "hugetlb.2MB.max", "4194304"}};
  EXPECT_EQ(writes(resources, pure()), expected);
  EXPECT_EQ(writes(resources, hybrid()), expected);
  auto all_v1 = hybrid();
  all_v1.unified_controllers.clear();
  all_v1.v1["hugetlb"] = "/h";
  EXPECT_EQ(writes(resources, all_v1),
            (List{{"hugetlb", "hugetlb.2MB.rsvd.limit_in_bytes", "4194304"},
                  {"hugetlb", "hugetlb.2MB.limit_in_bytes", "4194304"}}));
}

TEST(Hugepages, SizesAreNoPaths) {
  for (const auto* bad : {"", "MB", "2", "02MB", "2MB/../x", "../../x", "2TB", "2mb", "2MB\n"}) {
    oci::Resources resources;
    resources.hugepage_limits = {{"2MB", 1}, {bad, 1}};
    auto list = to_writes(resources, pure());
    ASSERT_FALSE(list.ok()) << bad;
    EXPECT_TRUE(list.error().message().starts_with("linux.resources.hugepageLimits[1].pageSize: "));
  }
}

TEST(Unified, FilesOfTheV2DirectoryOnly) {
  oci::Resources resources;
  resources.unified = {{"memory.high", "1000"}, {"cgroup.max.depth", "3"}};
  EXPECT_EQ(writes(resources, pure()),
            (List{{"", "cgroup.max.depth", "3"}, {"", "memory.high", "1000"}}));
  EXPECT_EQ(refusal(resources, hybrid()),
            "linux.resources.unified['memory.high']: the cgroup2 hierarchy of this host has no "
            "controller 'memory'");
  for (const auto* bad : {"../x", "a/b.c", "/memory.max", "", "memory", ".x", "cgroup.procs",
                          "cgroup.kill", "cgroup.freeze", "cgroup.type", "memory.max\n"}) {
    resources.unified = {{bad, "1"}};
    EXPECT_FALSE(to_writes(resources, pure()).ok()) << bad;
  }
}

TEST(Network, NeedsTheV1Controllers) {
  oci::Resources resources;
  resources.network_class_id = 1048577;
  resources.network_priorities = {{"eth0", 5}};
  EXPECT_EQ(writes(resources, hybrid()), (List{{"net_cls", "net_cls.classid", "1048577"},
                                               {"net_prio", "net_prio.ifpriomap", "eth0 5"}}));
  EXPECT_EQ(refusal(resources, pure()),
            "linux.resources.network.classID: this host has no cgroup controller 'net_cls'");
}

TEST(Rdma, OneLineADevice) {
  oci::Resources resources;
  resources.rdma["mlx5_0"] = {3, 10000};
  EXPECT_EQ(writes(resources, pure()),
            (List{{"", "rdma.max", "mlx5_0 hca_handle=3 hca_object=10000"}}));
  EXPECT_FALSE(to_writes(resources, hybrid()).ok());
}

TEST(Needed, TheUsualOnesAndWhatIsAskedFor) {
  oci::Resources resources;
  EXPECT_EQ(needed_controllers(resources), (std::vector<std::string>{"memory", "cpu", "pids"}));
  resources.cpu.emplace().cpus = "0";
  resources.block_io.emplace();
  resources.unified = {{"misc.max", "x"}, {"memory.high", "1"}, {"cgroup.max.depth", "1"}};
  EXPECT_EQ(needed_controllers(resources),
            (std::vector<std::string>{"memory", "cpu", "pids", "cpuset", "io", "misc"}));
}

}  // namespace
}  // namespace wherry::cgroups
