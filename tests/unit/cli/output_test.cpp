#include "tools/wherry/output.h"

#include <gtest/gtest.h>

namespace wherry::cli {
namespace {

// SEC-65: names, labels and messages may come from a container or from an image.
TEST(Harmless, ControlBytesAreShownNotSent) {
  EXPECT_EQ(harmless("plain \xc3\xa9 \xe2\x82\xac"), "plain \xc3\xa9 \xe2\x82\xac");
  EXPECT_EQ(harmless("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(harmless("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(harmless("a\rb\nc\x7f"), "a\\x0db\\x0ac\\x7f");
  EXPECT_EQ(harmless("\xc2\x9b"
                     "31m"),
            "\\x9b31m");  // CSI as one character
  EXPECT_EQ(harmless("\xff\xc3"), "\\xff\\xc3");
}

TEST(Table, AlignsByCharacters) {
  Table table{{"NAME", "X"}};
  table.add({"caf\xc3\xa9", "1"});
  table.add({"long name", "2"});
  EXPECT_EQ(table.text(), "NAME       X\ncaf\xc3\xa9       1\nlong name  2\n");
}

TEST(Human, Sizes) {
  EXPECT_EQ(human_size(0), "0 B");
  EXPECT_EQ(human_size(999), "999 B");
  EXPECT_EQ(human_size(1500), "1.5 kB");
  EXPECT_EQ(human_size(1'100'000), "1.1 MB");
}

TEST(Human, Ages) {
  EXPECT_EQ(age_of("nonsense"), "");
  EXPECT_EQ(age_of("2000-01-01T00:00:00Z").back(), 'd');
}

}  // namespace
}  // namespace wherry::cli
