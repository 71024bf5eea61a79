// JSON itself: limits, encodings, and the place that a syntax error tells.
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "oci/config.h"
#include "oci/node.h"

namespace wherry::oci {
namespace {

struct Broken {
  std::string_view json;
  std::string_view message;  // its beginning, behind "f:"
};

const Broken kBroken[] = {
    {"", "1:1: parse error: premature EOF"},
    {" \n ", "2:2: parse error: premature EOF"},
    {"{]", "1:2: parse error"},
    {"{\"a\":1,}", "1:8: parse error"},
    {"{\"a\":1 \"b\":2}", "1:8: parse error"},
    {"{\"a\" 1}", "1:6: /a: parse error"},
    {"{\"a\":[1,\n  2,\n  x]}", "3:3: /a/2: lexical error"},
    {"{\"a\":{\"b\":[{}, {\"c\": tru}]}}", "1:25: /a/b/1/c: lexical error"},
    {"{\"a\":\n\"b\n\"}", "2:3: /a: lexical error: invalid character inside string"},
    {"{\"a\":\"\\x\"}", "1:8: /a: lexical error"},
    {"{\"a\":\"\\u12g4\"}", "1:11: /a: lexical error"},
    {"{\"a\":1} {}", "1:9: parse error: trailing garbage"},
    {"{\"a\":1}x", "1:8: parse error: trailing garbage"},
    {"{'a':1}", "1:2: lexical error"},
    {"{\"a\":01}", "1:7: parse error"},
    {"{\"a\":+1}", "1:6: /a: lexical error"},
    {"{\"a\":.5}", "1:6: /a: lexical error"},
    {"{\"a\":1.}", "1:8: /a: lexical error"},
    {"{\"a\":-}", "1:7: /a: lexical error"},
    {"{\"a\":NaN}", "1:6: /a: lexical error"},
    {"{\"a\":1", "1:7: parse error: premature EOF"},
    {"{\"a\":\"b", "1:8: /a: parse error: premature EOF"},
    {"{\"a\":[", "1:7: /a/0: parse error: premature EOF"},
    {"{\"a\":1/* */}", "1:7: lexical error"},
    {"\xef\xbb\xbf{}", "1:1: begins with a byte order mark"},
    {"{\"a\":\"\xff\"}", "1:7: byte 0xff is not valid UTF-8 here"},
    {"{\"a\":\n \"ab\xc3\"}", "2:5: byte 0xc3 is not valid UTF-8 here"},
    {"{\"a\":\"\xc0\xaf\"}", "1:7: byte 0xc0 is not valid UTF-8 here"},
    {"{\"a\":\"\xed\xa0\x80\"}", "1:7: byte 0xed is not valid UTF-8 here"},
    {"{\"\xf4\x90\x80\x80\":1}", "1:3: byte 0xf4 is not valid UTF-8 here"},
    {"{\"a\":\"x\\ud800\"}", "1:8: half of a surrogate pair"},
    {"{\"a\":\"\\udc00\"}", "1:7: half of a surrogate pair"},
    {"{\"a\":\"\\ud800\\u0041\"}", "1:7: half of a surrogate pair"},
    {"{\"a\":\"\\ud800\\", "1:7: half of a surrogate pair"},
    {"{\"a\":\"x\\u0000y\"}", "1:8: a NUL character"},
    {"{\"a\\u0000\":1}", "1:4: a NUL character"},
    {std::string_view{"{\"a\":\"\0\"}", 9}, "1:7: /a: lexical error"},
    {std::string_view{"{\"a\":1}\0", 8}, "1:8: "},
    {"{\"a\":1,\n \"b\":2,\n \"a\":3}", "3:6: /a: the same key stands twice"},
    {"{\"a\":{\"x\":{\"k\":[],\"k\":[]}}}", "1:23: /a/x/k: the same key stands twice"},
    {"{\"a\":1,\"\\u0061\":3}", "1:17: /a: the same key stands twice"},
    {"[{\"\":1,\"\":2}]", "1:11: /0/: the same key stands twice"},
};

TEST(Syntax, ErrorsTellLineColumnAndPointer) {
  for (const auto& broken : kBroken) {
    const auto got = parse_tree(broken.json, "f");
    ASSERT_FALSE(got.ok()) << broken.json;
    EXPECT_TRUE(got.error().message().starts_with(cat("f:", broken.message)))
        << broken.json << "\n  " << got.error().message();
    EXPECT_FALSE(has_control(got.error().message())) << in_quotes(got.error().message());
  }
}

TEST(Syntax, ValuesAndPlaces) {
  const std::string_view json =
      "{ \"a~b/c\" : [ true,\n-12.50e+3 , \"x\\ty\\ud83d\\udea2\" ] , \"n\":null}";
  const auto got = parse_tree(json, "f");
  ASSERT_TRUE(got.ok()) << got.error().message();
  const auto& root = got.value();
  const auto& number = find_node(root, "/a~0b~1c/1");
  EXPECT_EQ(number.text, "-12.50e+3");
  EXPECT_EQ(json.substr(number.offset, 3), "-12");
  const auto& text = find_node(root, "/a~0b~1c/2");
  EXPECT_EQ(text.text, "x\ty\xf0\x9f\x9a\xa2");
  EXPECT_EQ(json[text.offset], '"');
  EXPECT_EQ(find_node(root, "/n").type, Node::Type::kNull);
  EXPECT_EQ(&find_node(root, "/a~0b~1c/7"), &find_node(root, "/a~0b~1c"));
  EXPECT_EQ(&find_node(root, ""), &root);
}

TEST(Syntax, ATopLevelThatIsNoObject) {
  for (const auto* json : {"5", "[]", "\"x\"", "null", "true"}) {
    const auto got = parse_config(json);
    ASSERT_FALSE(got.ok()) << json;
    EXPECT_TRUE(got.error().message().starts_with("config.json:1:1: must be an object, not "))
        << got.error().message();
  }
}

std::string nested(std::size_t levels) {
  return R"({"ociVersion":"1.0.0","root":{"path":"r"},"x":)" + std::string(levels, '[') +
         std::string(levels, ']') + "}";
}

// SEC-55: depth at most 64, size at most 16 MiB, duplicate keys, invalid UTF-8 with its offset,
// integers in range.
TEST(Syntax, Sec55Limits) {
  EXPECT_TRUE(parse_config(nested(63)).ok());
  const auto deep = parse_config(nested(64));
  ASSERT_FALSE(deep.ok());
  EXPECT_NE(deep.error().message().find("is nested more than 64 levels deep"), std::string::npos)
      << deep.error().message();
  EXPECT_FALSE(parse_config(std::string(1'000'000, '[')).ok());
  EXPECT_FALSE(parse_config(std::string(1'000'000, '{')).ok());

  std::string good = R"({"ociVersion":"1.0.0","root":{"path":"r"}})";
  good.append(kLargest - good.size(), ' ');
  EXPECT_TRUE(parse_config(good).ok());
  const auto large = parse_config(good + " ");
  ASSERT_FALSE(large.ok());
  EXPECT_NE(large.error().message().find("is 16777217 bytes long; at most 16777216 are read"),
            std::string::npos);

  std::string many = "[";
  while (many.size() < 2 * kMostValues) many += "1,";
  const auto values = parse_tree(many + "1]", "f");
  ASSERT_FALSE(values.ok());
  EXPECT_NE(values.error().message().find("holds more than 262144 values"), std::string::npos);
  EXPECT_FALSE(
      parse_config(R"({"ociVersion":"1.0.0","root":{"path":"r"},"root":{"path":"r"}})").ok());
}

TEST(Syntax, Sec55IntegersKeepTheirWholeRange) {
  const auto text = [](const char* soft, const char* secs) {
    return cat(R"({"ociVersion":"1.0.0","root":{"path":"r"},"process":{"cwd":"/","args":["a"],
      "rlimits":[{"type":"RLIMIT_CPU","soft":)",
               soft, R"(,"hard":18446744073709551615}]},"linux":{
      "namespaces":[{"type":"time"}],"timeOffsets":{"boottime":{"secs":)",
               secs, "}}}}");
  };
  auto got = parse_config(text("18446744073709551615", "-9223372036854775808"));
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_EQ(got->spec.process->rlimits[0].soft, UINT64_MAX);
  EXPECT_EQ(got->spec.linux_->time_offsets.at("boottime").secs, INT64_MIN);
  EXPECT_FALSE(parse_config(text("18446744073709551616", "0")).ok());
  EXPECT_FALSE(parse_config(text("0", "-9223372036854775809")).ok());
  EXPECT_TRUE(parse_config(text("0", "-0")).ok());
}

// Cut anywhere, and with any one byte replaced: an answer each time, and a message when it is no.
TEST(Syntax, Sec55CutAndDamagedDocuments) {
  const std::string good = dump_json(to_json(
      parse_config(
          R"({"ociVersion":"1.0.0","root":{"path":"r"},"process":{"cwd":"/","args":["a","\u00e4"],"env":["A=b"],"user":{"uid":1}},
          "linux":{"namespaces":[{"type":"mount"}],"resources":{"memory":{"limit":-1}},"maskedPaths":["/x"]}})")
          .value()
          .spec));
  ASSERT_TRUE(parse_config(good).ok());
  for (std::size_t i = 0; i < good.size(); ++i) {
    const auto cut = parse_config(good.substr(0, i));
    ASSERT_FALSE(cut.ok()) << i;
    EXPECT_TRUE(cut.error().message().starts_with("config.json:1:")) << cut.error().message();
    for (const char byte : {'\0', '"', '\\', '{', ']', ',', '0', '\xff', '\xe2'}) {
      auto damaged = good;
      damaged[i] = byte;
      const auto got = parse_config(damaged);
      if (!got.ok()) {
        EXPECT_TRUE(got.error().message().starts_with("config.json:1:")) << got.error().message();
      }
    }
  }
}

}  // namespace
}  // namespace wherry::oci
