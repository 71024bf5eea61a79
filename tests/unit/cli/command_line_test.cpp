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
      {{"pod"}, "'pod' needs a verb: run, check"},
      {{"pod", "frob"}, "'pod' has no verb 'frob'"},
      {{"ps", "--nonesuch"}, "ps: '--nonesuch' is not known here"},
      {{"--nonesuch", "ps"}, "'--nonesuch' is not known here"},
      {{"run", "--memory"}, "run: --memory: a value is missing"},
      {{"run", "--memory", "1g", "--memory", "2g", "x"},
       "run: --memory: it is given more than once"},
      {{"ps", "-o", "json", "-o", "table"}, "ps: --output: it is given more than once"},
      {{"logs", "--tail", "x", "web"}, "logs: --tail: 'x' is not a number"},
      {{"logs", "--tail", "-1", "web"}, "logs: --tail: '-1' must not be negative"},
      {{"logs", "--since", "1s", "web"}, "logs: '--since' is not known here"},
      {{"logs", "web", "db"}, "logs: more than one POD is given"},
      {{"pod", "check", "--frob", "json", "-f", "x"}, "pod check: '--frob' is not known here"},
      {{"stop"}, "stop: POD is required"},
      {{"stop", "--since"}, "stop: '--since' is not known here"},
      {{"inspect"}, "inspect: POD is required"},
      {{"attach"}, "attach: POD is required"},
      {{"pod", "run"}, "pod run: -f FILE is required"},
      {{"image", "import"}, "image import: PATH is required"},
      {{"image", "rm"}, "image rm: NAME is required"},
      {{"shim", "call", "web"}, "shim call: METHOD is required"},
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

TEST(CommandLine, AnUnknownVerbHasANearestOne) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"images"}, "image ls"},
      {{"start"}, "run"},
      {{"lgos"}, "logs"},
      {{"inspekt"}, "inspect"},
      {{"rmi"}, "image rm"},
      {{"image", "list"}, "image ls"},
      {{"image", "load"}, "image import"},
      {{"shim", "inspct"}, "shim inspect"},
      {{"list"}, "ps"},
      {{"check"}, "pod check"},
      {{"image", "remove"}, "image rm"}};
  for (const auto& [words, verb] : cases) {
    const auto line = parse(words);
    ASSERT_FALSE(line.ok());
    EXPECT_EQ(line.error().hint().substr(0, line.error().hint().find('?')),
              cat("did you mean 'wherry ", verb, "'"));
  }
  EXPECT_EQ(parse({"frobnicate"}).error().hint(), "wherry --help lists them");
  EXPECT_EQ(parse({"stop"}).error().hint(),
            "usage: wherry stop [FLAGS] POD[/CONTAINER]...; wherry stop --help tells more");
}

TEST(CommandLine, RootIsNeededByAllThatTouchesTheHost) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"ps"}, {"run", "x"}, {"image", "ls"}, {"info"}, {"rm", "x"}, {"leaks"}})
    EXPECT_TRUE(parse(words).value().needs_root) << join(words, " ");
  EXPECT_FALSE(parse({"version"}).value().needs_root);
  EXPECT_FALSE(parse({"pod", "check", "-f", "x"}).value().needs_root);
  EXPECT_NE(parse({"--help"}).value().text.find("needs root"), std::string::npos);
}

TEST(CommandLine, HelpOfAGroupListsItsVerbs) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"image", "--help"}, {"image", "-h"}, {"help", "image"}}) {
    const auto line = parse(words);
    ASSERT_TRUE(line.ok()) << join(words, " ");
    for (const char* verb : {"image import PATH", "image ls", "image rm"})
      EXPECT_NE(line.value().text.find(verb), std::string::npos) << verb;
    EXPECT_EQ(line.value().text.find("pod run"), std::string::npos);
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
