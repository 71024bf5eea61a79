#include "shim/worker/params.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace wherry::shim {
namespace {

Result<> check(const char* text) {
  const auto params = parse_json(text, "params");
  EXPECT_TRUE(params.ok()) << text;
  return check_params(params.value());
}

TEST(Params, TheRightTypesPass) {
  EXPECT_TRUE(check("{}").ok());
  EXPECT_TRUE(check(R"({"container":"web","grace":0,"argv":["sh","-c",""],"env":["A=","B=c=d"],
                        "tty":false,"rows":24,"columns":80,"user":"","cwd":"/","signal":"TERM",
                        "what a newer client sends":[1]})")
                  .ok());
}

// A parameter of the wrong type must never be taken for one that is missing: no container means
// all.
TEST(Params, AWrongTypeIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"container":["web"]})", "'container'"},
      {R"({"container":null})", "'container'"},
      {R"({"container":"a\u0000b"})", "'container'"},
      {R"({"grace":"x"})", "'grace'"},
      {R"({"grace":-1})", "'grace'"},
      {R"({"grace":1.5})", "'grace'"},
      {R"({"signal":9})", "'signal'"},
      {R"({"argv":"sh"})", "'argv'"},
      {R"({"argv":["a",1]})", "'argv'"},
      {R"({"argv":["a\u0000b"]})", "'argv'"},
      {R"({"env":["FOO"]})", "'env'"},
      {R"({"env":["=x"]})", "'env'"},
      {R"({"tty":1})", "'tty'"},
      {R"({"rows":65536})", "'rows'"},
      {R"({"columns":-1})", "'columns'"},
      {R"({"user":0})", "'user'"},
      {R"({"cwd":{}})", "'cwd'"},
  };
  for (const auto& [text, name] : cases) {
    const auto got = check(text);
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_EQ(got.error().code(), Code::kInvalid) << text;
    EXPECT_NE(got.error().message().find(name), std::string::npos) << got.error().message();
  }
}

}  // namespace
}  // namespace wherry::shim
