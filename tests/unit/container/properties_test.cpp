// Words of the specification as the kernel's numbers.
#include <gtest/gtest.h>

#include "runtime/container/planner.h"

namespace wherry::container {
namespace {

init::Properties planned(const oci::Process& process, const oci::Linux& linux_) {
  init::Properties out;
  const auto done = plan_properties(process, linux_, out);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message());
  return out;
}

TEST(Properties, NothingAskedNothingSet) {
  const auto out = planned({}, {});
  EXPECT_FALSE(out.scheduler || out.io_priority || out.personality || out.memory_policy);
  EXPECT_TRUE(out.labels.empty());
}

TEST(Properties, Scheduler) {
  oci::Process process;
  process.scheduler = oci::Scheduler{"SCHED_RR", -3, 7, {"SCHED_FLAG_RESET_ON_FORK"}, 1, 2, 3};
  const auto out = planned(process, {});
  EXPECT_EQ(out.scheduler->policy, 2U);
  EXPECT_EQ(out.scheduler->nice, -3);
  EXPECT_EQ(out.scheduler->priority, 7U);
  EXPECT_EQ(out.scheduler->flags, 1U);
  EXPECT_EQ(out.scheduler->runtime, 1U);
  EXPECT_EQ(out.scheduler->deadline, 2U);
  EXPECT_EQ(out.scheduler->period, 3U);
  EXPECT_TRUE(out.scheduler_ends_at_fork());
}

TEST(Properties, OnlyTwoSchedulersEndAtAFork) {
  for (const auto* policy : {"SCHED_OTHER", "SCHED_FIFO", "SCHED_BATCH", "SCHED_DEADLINE"}) {
    oci::Process process;
    process.scheduler = oci::Scheduler{policy, 0, 0, {}, 0, 0, 0};
    EXPECT_EQ(planned(process, {}).scheduler_ends_at_fork(),
              std::string_view{policy} == "SCHED_DEADLINE");
  }
}

TEST(Properties, IoPriorityIsClassAndLevel) {
  oci::Process process;
  process.io_priority = oci::IoPriority{"IOPRIO_CLASS_BE", 6};
  EXPECT_EQ(planned(process, {}).io_priority, 2 << 13 | 6);
}

TEST(Properties, MemoryPolicyOverMoreThanOneWord) {
  oci::Linux linux_;
  linux_.memory_policy = oci::MemoryPolicy{"MPOL_BIND", "0-1,64", {"MPOL_F_STATIC_NODES"}};
  const auto out = planned({}, linux_);
  EXPECT_EQ(out.memory_policy->mode, 2 | 1 << 15);
  EXPECT_EQ(out.memory_policy->nodes, (std::vector<unsigned long>{3, 1}));
}

TEST(Properties, UnknownWordsNameTheirField) {
  oci::Process process;
  process.io_priority = oci::IoPriority{"IOPRIO_CLASS_NONE", 6};
  init::Properties out;
  const auto done = plan_properties(process, {}, out);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message(), "process.ioPriority.class: 'IOPRIO_CLASS_NONE' is not known");
}

TEST(CpuSet, Lists) {
  const auto set = cpu_set("0-2, 5", "field");
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(CPU_COUNT(&set.value()), 4);
  EXPECT_TRUE(CPU_ISSET(5, &set.value()));
  for (const auto* bad : {"3-1", "x", "1-", "99999", "-1", "1,,2"})
    EXPECT_FALSE(cpu_set(bad, "field").ok()) << bad;
}

}  // namespace
}  // namespace wherry::container
