#include "runtime/init/sync.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace wherry::init {
namespace {

// Each selection of the optional exchanges has one right order; every other message, at every place
// of it, is refused.
TEST(Sequence, EveryOrderThatIsRightAndNoOther) {
  const std::vector<Step> all = {Step::kNeedMaps, Step::kMapped,   Step::kConsole,
                                 Step::kMounted,  Step::kHooksRun, Step::kReady,
                                 Step::kRecorded, Step::kEntered,  Step::kFailed};
  for (unsigned parts = 0; parts < 8; ++parts) {
    const bool maps = (parts & 1U) != 0, terminal = (parts & 2U) != 0, hooks = (parts & 4U) != 0;
    std::vector<Step> order;
    if (maps) order = {Step::kNeedMaps, Step::kMapped};
    if (terminal) order.push_back(Step::kConsole);
    if (hooks) order.push_back(Step::kMounted), order.push_back(Step::kHooksRun);
    order.push_back(Step::kReady), order.push_back(Step::kRecorded);
    for (std::size_t good = 0; good <= order.size(); ++good)
      for (const auto next : all) {
        Sequence sequence{{.maps = maps, .terminal = terminal, .hooks = hooks}};
        for (std::size_t i = 0; i < good; ++i) ASSERT_TRUE(sequence.accept(order[i]).ok());
        EXPECT_EQ(sequence.done(), good == order.size());
        const bool right = good < order.size() && order[good] == next;
        EXPECT_EQ(sequence.accept(next).ok(), right) << parts << ' ' << to_string(next);
      }
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

TEST(Message, TheHintComesWithIt) {
  const auto error = Error::make(Code::kDenied, "no").hint("ask for it");
  const auto back = decode(encode(failure(Where::kLimits, error)));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(to_error(back.value()).message(), "no");
  EXPECT_EQ(to_error(back.value()).hint(), "ask for it");
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
