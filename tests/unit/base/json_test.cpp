#include "base/json.h"

#include <gtest/gtest.h>

#include "base/capability.h"

namespace wherry {
namespace {

TEST(ParseJson, ErrorsArePlainAndHaveTheirPlace) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"(["sh")", "it at line 1, column 6: unexpected end of input; expected ']'"},
      {"{\n  x}", "it at line 2, column 3: invalid literal; expected string literal"},
      {"", "it at line 1, column 1: unexpected end of input; expected '[', '{', or a literal"},
      {"[1e999]", "number overflow parsing '1e999'"},
      {"\"\xff\"", "invalid string: ill-formed UTF-8 byte"},
      {R"({"a": 1, "a": 2})", "it: the key 'a' stands twice"}};
  for (const auto& [text, message] : cases) {
    const auto parsed = parse_json(text, "it");
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.error().message().find(message), std::string::npos)
        << parsed.error().message();
    EXPECT_EQ(parsed.error().message().find("exception"), std::string::npos);
    EXPECT_EQ(parsed.error().message().find("parse error"), std::string::npos);
  }
}

TEST(CapabilityName, ByNumber) {
  EXPECT_EQ(capability_name(0), "CAP_CHOWN");
  EXPECT_EQ(capability_name(24), "CAP_SYS_RESOURCE");
  EXPECT_EQ(capability_name(40), "CAP_CHECKPOINT_RESTORE");
  EXPECT_EQ(capability_name(41), "capability 41");
}

}  // namespace
}  // namespace wherry
