#include "runtime/init/sync.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace wherry::init {
namespace {

using Terminal = Sequence::Terminal;

TEST(Sequence, EveryOrderThatIsRightAndNoOther) {
  const std::vector<Step> all = {Step::kConsole, Step::kReady, Step::kRecorded, Step::kFailed};
  const auto right = [](Terminal terminal, const std::vector<Step>& steps) {
    const std::vector<Step> whole = terminal == Terminal::kYes
                                        ? std::vector{Step::kConsole, Step::kReady, Step::kRecorded}
                                        : std::vector{Step::kReady, Step::kRecorded};
    return steps.size() <= whole.size() && std::equal(steps.begin(), steps.end(), whole.begin());
  };
  for (const auto terminal : {Terminal::kNo, Terminal::kYes})
    for (const auto first : all)
      for (const auto second : all)
        for (const auto third : all) {
          const std::vector steps{first, second, third};
          Sequence sequence{terminal};
          std::vector<Step> taken;
          bool ok = true;
          for (const auto step : steps) {
            ok = ok && sequence.accept(step).ok();
            taken.push_back(step);
            EXPECT_EQ(ok, right(terminal, taken))
                << to_string(first) << to_string(second) << to_string(third);
            if (!ok) break;
          }
          EXPECT_EQ(ok && taken.back() == Step::kRecorded, sequence.done() && ok);
        }
}

TEST(Message, ComesBackAsItWas) {
  Message message;
  message.step = Step::kFailed;
  message.where = Where::kMounts;
  message.err = ENOENT;
  message.code = static_cast<std::uint8_t>(Code::kNotFound);
  message.text = "mount '/x': no";
  const auto back = decode(encode(message));
  ASSERT_TRUE(back.ok());
  const auto error = to_error(back.value());
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.sys_errno(), ENOENT);
  EXPECT_EQ(error.message(), "mount '/x': no");
  EXPECT_EQ(error.step(), "mounts");
}

TEST(Message, RubbishIsRefused) {
  Message message;
  message.step = Step::kReady;
  const auto good = encode(message);
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(decode(std::string_view{good}.substr(0, size)).ok());
  for (const std::size_t at : {0U, 2U, 12U}) {
    auto bad = good;
    bad[at] = '\x7f';
    EXPECT_FALSE(decode(bad).ok()) << at;
  }
  EXPECT_FALSE(decode(good + std::string(kMostText + 1, 'x')).ok());
}

TEST(Message, ALongTextIsCut) {
  Message message;
  message.step = Step::kFailed;
  message.text.assign(100000, 'x');
  const auto back = decode(encode(message));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().text.size(), kMostText);
}

TEST(Channel, TheEndOfThePeerIsSeenAtOnce) {
  auto pair = Channel::make();
  ASSERT_TRUE(pair.ok());
  pair->second.close();
  const auto got = pair->first.receive(Deadline::in(Millis{5000}));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Code::kProtocol);
}

TEST(Channel, ADeadlineEndsTheWait) {
  auto pair = Channel::make();
  ASSERT_TRUE(pair.ok());
  const auto got = pair->first.receive(Deadline::in(Millis{10}));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Code::kTimeout);
}

}  // namespace
}  // namespace wherry::init
