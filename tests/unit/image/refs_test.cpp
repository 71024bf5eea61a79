#include "runtime/image/refs.h"

#include <gtest/gtest.h>

#include "runtime/image/store.h"

namespace wherry::image {
namespace {

TEST(Reference, FullForm) {
  const std::pair<const char*, const char*> cases[] = {
      {"web", "localhost/web:latest"},
      {"web:1", "localhost/web:1"},
      {"team/web", "localhost/team/web:latest"},
      {"localhost/web", "localhost/web:latest"},
      {"localhost:5000/web:1", "localhost:5000/web:1"},
      {"docker.io/busybox", "docker.io/library/busybox:latest"},
      {"docker.io/team/web", "docker.io/team/web:latest"},
      {"Example.org/a/b__c/d-e--f:T_1.x-y", "Example.org/a/b__c/d-e--f:T_1.x-y"},
  };
  for (const auto& [text, full] : cases) {
    const auto result = normalise_reference(text);
    ASSERT_TRUE(result.ok()) << text << ": " << result.error().message();
    EXPECT_EQ(result.value(), full);
  }
}

TEST(Reference, WhatIsNoName) {
  for (const auto* text : {"",
                           ":",
                           "web:",
                           ":1",
                           "Web",
                           "/web",
                           "web/",
                           "a//b",
                           "../a",
                           "a/../b",
                           "a/.b",
                           "a.",
                           "-a",
                           "a___b",
                           "a..b",
                           "web:-1",
                           "web@sha256:1",
                           "we b",
                           "web\n",
                           "host:port/web",
                           "host:99999/web",
                           "-h.x/web",
                           "a%b",
                           "a:b:c"})
    EXPECT_FALSE(normalise_reference(text).ok()) << text;
  EXPECT_FALSE(normalise_reference("web:" + std::string(129, 't')).ok());
  EXPECT_FALSE(normalise_reference(std::string(300, 'n')).ok());
  EXPECT_FALSE(normalise_reference("web@sha256:" + std::string(64, '0')).ok())
      << "a digest is no name to store";
}

TEST(Reference, Matching) {
  struct Case {
    const char *stored, *asked;
    bool matches;
  };
  const Case cases[] = {
      {"localhost/web:latest", "web", true},
      {"localhost/web:latest", "web:latest", true},
      {"localhost/web:1", "web", false},
      {"localhost/web:1", "web:1", true},
      {"localhost/web:latest", "eb", false},
      {"example.org/team/web:latest", "team/web", true},
      {"example.org/team/web:latest", "am/web", false},
      {"example.org/team/web:latest", "example.org/team/web", true},
      {"example.org/team/web:latest", "team", false},
      {"localhost/web:1", "localhost/web", false},
  };
  for (const auto& c : cases) {
    const auto asked = parse_reference(c.asked);
    ASSERT_TRUE(asked.ok()) << c.asked;
    EXPECT_EQ(matches(c.stored, asked.value()), c.matches) << c.stored << " asked as " << c.asked;
  }
}

}  // namespace
}  // namespace wherry::image
