// The main of every test program: gtest, and a line for each skip with its reason, for tools/test
// to collect.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>

namespace {
class SkipReporter : public testing::EmptyTestEventListener {
  // At the end of the test: while a part is reported gtest holds its lock, and to ask it for the
  // current test would wait for that lock for ever.
  void OnTestEnd(const testing::TestInfo& test) override {
    for (int i = 0; i < test.result()->total_part_count(); ++i) {
      const auto& part = test.result()->GetTestPartResult(i);
      if (part.skipped())
        std::printf("SKIP %s.%s: %s\n", test.test_suite_name(), test.name(), part.message());
    }
  }
};
}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new SkipReporter);
  signal(SIGPIPE, SIG_IGN);
  return RUN_ALL_TESTS();
}
