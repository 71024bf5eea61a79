// The fuzzers' corpora as an ordinary test: each file, cut short, and with single bytes changed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/fuzz/target.h"

namespace {

using Target = int (*)(const std::uint8_t*, std::size_t);

void run(Target target, const std::string& bytes) {
  target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

void run_corpus(Target target, const char* name) {
  constexpr std::size_t kVariants = 100;
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator{std::string{WHERRY_CORPUS_DIR} + "/" + name}) {
    std::ifstream in{entry.path()};
    std::ostringstream text;
    text << in.rdbuf();
    const auto bytes = text.str();
    run(target, bytes);
    const auto step = bytes.size() / kVariants + 1;
    for (std::size_t i = 0; i < bytes.size(); i += step) {
      run(target, bytes.substr(0, i));
      auto changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
      run(target, changed);
    }
    ++files;
  }
  EXPECT_GE(files, 4U) << name;
}

TEST(Corpus, Config) {
  run_corpus(fuzz_config, "config");
}
TEST(Corpus, Image) {
  run_corpus(fuzz_image, "image");
}

}  // namespace
