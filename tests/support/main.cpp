// The main of every test program: gtest, and a line for each skip with its reason, for tools/test
// to collect.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>

namespace {
class SkipReporter : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.skipped()) return;
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    std::printf("SKIP %s.%s: %s\n", info->test_suite_name(), info->name(), part.message());
  }
};
}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new SkipReporter);
  signal(SIGPIPE, SIG_IGN);
  return RUN_ALL_TESTS();
}
