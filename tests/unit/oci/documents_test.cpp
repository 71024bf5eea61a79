// Whole documents of other projects: what is accepted, what is refused, and that nothing is lost on
// the way.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "base/text.h"
#include "oci/config.h"

namespace wherry::oci {
namespace {

namespace fs = std::filesystem;

fs::path shared_data() {
  const char* shared = std::getenv("WHERRY_SHARED");
  return fs::path{shared ? shared : WHERRY_SHARED_DIR} / "data";
}

#define REQUIRE_SHARED(dir)                                                             \
  do {                                                                                  \
    if (!fs::is_directory(dir))                                                         \
      GTEST_SKIP() << "no documents in '" << (dir).string() << "' (set WHERRY_SHARED)"; \
  } while (false)

std::string contents(const fs::path& path) {
  std::ifstream in{path};
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<fs::path> files_in(const fs::path& dir) {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator{dir}) all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

bool says_nothing(const Json& value) {
  return value.is_null() ||
         ((value.is_object() || value.is_array() || value.is_string()) && value.empty()) ||
         value == Json(false) || value == Json(0) || value == Json("");
}

// Every member of `whole` that says something is in `part` with the same value.
void expect_kept(const Json& whole, const Json& part, const std::string& pointer) {
  if (whole.is_object()) {
    for (const auto& [key, value] : whole.items()) {
      const auto below = cat(pointer, '/', key);
      if (says_nothing(value) || (value == Json(-1) && (key == "major" || key == "minor")))
        continue;
      if (below == "/linux/resources/oomScoreAdj" || below == "/platform")
        continue;  // unknown to 1.3
      if (!part.is_object() || !part.contains(key)) {
        bool empty = value.is_object();  // "network": {} and the like
        for (const auto& [inner, inner_value] : value.items())
          empty = empty && says_nothing(inner_value);
        EXPECT_TRUE(empty) << below << " is lost";
        continue;
      }
      expect_kept(value, part[key], below);
    }
  } else if (whole.is_array()) {
    ASSERT_EQ(whole.size(), part.size()) << pointer;
    for (std::size_t i = 0; i < whole.size(); ++i)
      expect_kept(whole[i], part[i], cat(pointer, '/', i));
  } else {
    EXPECT_EQ(whole.dump(), part.dump()) << pointer;
  }
}

void expect_round_trip(const fs::path& file) {
  SCOPED_TRACE(file.string());
  const auto text = contents(file);
  auto first = parse_config(text, file.filename().string());
  ASSERT_TRUE(first.ok()) << first.error().message();
  const auto written = to_json(first->spec);
  auto second = parse_config(dump_json_pretty(written));
  ASSERT_TRUE(second.ok()) << second.error().message();
  EXPECT_TRUE(second->spec == first->spec);
  expect_kept(Json::parse(text), written, "");
}

TEST(Documents, TheSchemasGoodOnesAreAcceptedAndKept) {
  const auto dir = shared_data() / "oci-runtime-schema/test/config/good";
  REQUIRE_SHARED(dir);
  const auto files = files_in(dir);
  EXPECT_GE(files.size(), 5U);
  for (const auto& file : files) expect_round_trip(file);
}

TEST(Documents, TheSchemasBadOnesAreRefused) {
  const auto dir = shared_data() / "oci-runtime-schema/test/config/bad";
  REQUIRE_SHARED(dir);
  const std::pair<const char*, const char*> expected[] = {
      {"invalid-json.json", "invalid-json.json:1:2: parse error"},
      {"linux-hugepage.json",
       ":11:33: /linux/resources/hugepageLimits/0/pageSize: must be a size like"},
      {"linux-netdevice.json",
       ":9:25: /linux/netDevices/eth0/name: must be a string, not a number"},
      {"linux-rdma.json",
       "/linux/resources/rdma/mlx5_1/hcaHandles: must be an integer of 0 to 4294967295, not a "
       "string"},
  };
  for (const auto& [name, message] : expected) {
    const auto got = parse_config(contents(dir / name), name);
    ASSERT_FALSE(got.ok()) << name;
    EXPECT_NE(got.error().message().find(message), std::string::npos) << got.error().message();
  }
}

// Of data/INDEX.tsv: some of these are refused only later, for what is not on the machine.
TEST(Documents, ThoseOfOtherProjects) {
  const auto dir = shared_data() / "oci-configs";
  REQUIRE_SHARED(dir);
  const std::map<std::string, const char*> refused = {
      {"crio-redis-runtimespec.json", "needs a namespace of type 'mount'"},
      {"runtime-spec-bad-hugepage.json", "pageSize"},
      {"runtime-spec-bad-invalid-json.json", ":1:2: parse error"},
      {"runtime-spec-freebsd.json", "meant for freebsd"},
  };
  for (const auto& file : files_in(dir)) {
    const auto found = refused.find(file.filename().string());
    if (found == refused.end()) {
      expect_round_trip(file);
      continue;
    }
    const auto got = parse_config(contents(file), found->first);
    ASSERT_FALSE(got.ok()) << file;
    EXPECT_NE(got.error().message().find(found->second), std::string::npos)
        << got.error().message();
  }
}

}  // namespace
}  // namespace wherry::oci
