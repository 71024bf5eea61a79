#include "tools/wherry/command_line.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/text.h"

namespace wherry::cli {
namespace {

Result<CommandLine> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "wherry");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse_command_line(static_cast<int>(words.size()), argv.data());
}

TEST(CommandLine, GlobalFlagsStandBeforeTheVerb) {
  const auto line = parse({"--root", "/a", "--state=/b", "ps", "-a"});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line.value().global.places.root, "/a");
  EXPECT_EQ(line.value().global.places.state, "/b");
  EXPECT_TRUE(line.value().verb);
  EXPECT_FALSE(parse({"ps", "--root", "/a"}).ok());
}

TEST(CommandLine, FlagsOfRunEndAtTheImage) {
  EXPECT_TRUE(
      parse({"run", "-it", "--rm", "-e", "A=b", "--memory=1g", "image", "ls", "--nonesuch"}).ok());
  EXPECT_TRUE(parse({"run", "-ie", "-x", "image"}).ok());  // -x is the value of -e
  EXPECT_TRUE(parse({"run", "--", "image", "--rm"}).ok());
  EXPECT_FALSE(parse({"run", "--nonesuch", "image"}).ok());
  EXPECT_FALSE(parse({"run", "-ix", "image"}).ok());
}

TEST(CommandLine, FlagsOfOtherVerbsStandAnywhere) {
  EXPECT_TRUE(parse({"logs", "web", "-f", "--tail", "3"}).ok());
  EXPECT_TRUE(parse({"rm", "a", "-f", "b"}).ok());
}

TEST(CommandLine, EveryRefusalNamesTheWordAndTheHelp) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"frobnicate"}, "there is no verb 'frobnicate'"},
      {{"pod"}, "'pod' needs a verb"},
      {{"pod", "frob"}, "'pod' has no verb 'frob'"},
      {{"ps", "--nonesuch"}, "'--nonesuch' is not known here"},
      {{"run", "--memory"}, "--memory: a value is missing"},
      {{"logs", "--tail", "x", "web"}, "--tail: 'x' is not a number"},
      {{}, "a verb is missing"},
  };
  for (const auto& [words, message] : cases) {
    const auto line = parse(words);
    ASSERT_FALSE(line.ok()) << message;
    EXPECT_EQ(line.error().message(), message);
    EXPECT_FALSE(line.error().hint().empty()) << message;
    EXPECT_EQ(line.error().code(), Code::kInvalid);
  }
}

TEST(CommandLine, HelpIsText) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--help"}, {"help"}, {"help", "run"}, {"run", "--help"}, {"pod", "run", "-h"}}) {
    const auto line = parse(words);
    ASSERT_TRUE(line.ok()) << join(words, " ");
    EXPECT_FALSE(line.value().verb);
    EXPECT_NE(line.value().text.find("Usage: wherry"), std::string::npos);
    EXPECT_NE(line.value().text.find("Example"), std::string::npos);
  }
  EXPECT_TRUE(parse({"run", "image", "--help"}).value().verb);  // the command's own
}

}  // namespace
}  // namespace wherry::cli
