#include "base/timing.h"

#include <gtest/gtest.h>

namespace wherry {
namespace {

using std::chrono::nanoseconds;

TEST(Timing, OffUntilItBegins) {
  ASSERT_FALSE(timing());
  mark_phase("nothing");
  EXPECT_TRUE(phases().empty());
}

TEST(Timing, PhasesOfOneNameInARowAreOne) {
  begin_timing("start");
  EXPECT_TRUE(timing());
  mark_phase("a");
  mark_phase("b");
  mark_phase("b", {{"inner", nanoseconds{5}, {}}});
  mark_phase("a");
  ASSERT_EQ(phases().size(), 4U);
  EXPECT_EQ(phases()[0].name, "start");
  EXPECT_GT(phases()[0].took.count(), 0);
  EXPECT_EQ(phases()[2].name, "b");
  ASSERT_EQ(phases()[2].within.size(), 1U);
  EXPECT_EQ(phases()[3].name, "a");
  restart_timing();
  EXPECT_TRUE(phases().empty());
}

TEST(Timing, PhasesCrossProcesses) {
  const std::vector<Phase> some = {{"mounts", nanoseconds{812345}, {}},
                                   {"root", nanoseconds{0}, {}}};
  EXPECT_EQ(encode_phases(some), "mounts=812345;root=0");
  const auto back = decode_phases("mounts=812345;root=0");
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].name, "mounts");
  EXPECT_EQ(back[0].took, nanoseconds{812345});
  EXPECT_TRUE(decode_phases("").empty());
  EXPECT_EQ(decode_phases("no number=x;no equals;a=1").size(), 1U);
}

TEST(Timing, TheTableHasASum) {
  EXPECT_EQ(table_of({{"a", nanoseconds{1'500'000}, {{"inner", nanoseconds{1'000'000}, {}}}},
                      {"b", nanoseconds{250'000}, {}}}),
            "    1.500 ms  a\n        1.000 ms  inner\n    0.250 ms  b\n    1.750 ms  in all\n");
}

}  // namespace
}  // namespace wherry
