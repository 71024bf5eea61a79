#include "base/text.h"

#include <gtest/gtest.h>

namespace wherry {
namespace {

TEST(Text, CatJoinsTextAndNumbers) {
  EXPECT_EQ(cat("pid ", 7, ':', std::string{"x"}), "pid 7:x");
}

TEST(Text, ParseIntTakesTheWholeTextOrNothing) {
  EXPECT_EQ(parse_int<unsigned>("42"), 42U);
  for (const auto* bad : {"", " 1", "1 ", "+1", "-1", "0x1", "1.0", "4294967296"})
    EXPECT_FALSE(parse_int<unsigned>(bad)) << bad;
  EXPECT_EQ(parse_int<int>("-1"), -1);
}

TEST(Text, SplitKeepsEmptyPieces) {
  const auto parts = split("a::b:", ':');
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(parts[1], "");
  EXPECT_EQ(parts[3], "");
}

TEST(Text, Utf8) {
  for (const auto* good :
       {"", "a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x9a\xa2", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(valid_utf8(good)) << good;
  for (const auto* bad :
       {"\x80", "\xc0\xaf", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\xe0\x80\x80"})
    EXPECT_FALSE(valid_utf8(bad)) << hex(bad);
}

TEST(Text, Utf8PrefixEndsWhereTheFirstBadSequenceBegins) {
  EXPECT_EQ(valid_utf8_prefix("abc"), 3U);
  EXPECT_EQ(valid_utf8_prefix("ab\xc3\xa4\xff"), 4U);
  EXPECT_EQ(valid_utf8_prefix("ab\xe2\x82"), 2U);
}

TEST(Text, InQuotesHidesControlBytes) {
  EXPECT_EQ(in_quotes("a\nb\x1b"), "'a\\x0ab\\x1b'");
}

}  // namespace
}  // namespace wherry
