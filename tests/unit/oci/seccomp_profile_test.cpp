#include "oci/seccomp_profile.h"

#include <gtest/gtest.h>

namespace wherry::oci {
namespace {

TEST(SeccompProfile, IsWhatLinuxSeccompIs) {
  const auto profile = parse_seccomp(
      R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "architectures": ["SCMP_ARCH_X86_64"],
          "syscalls": [{"names": ["read", "write"], "action": "SCMP_ACT_ALLOW",
                        "args": [{"index": 0, "value": 2, "op": "SCMP_CMP_EQ"}]}]})",
      "p.json");
  ASSERT_TRUE(profile.ok()) << profile.error().message();
  EXPECT_EQ(profile.value().default_action, "SCMP_ACT_ERRNO");
  EXPECT_EQ(profile.value().default_errno_ret, 38U);
  ASSERT_EQ(profile.value().syscalls.size(), 1U);
  EXPECT_EQ(profile.value().syscalls[0].names, (std::vector<std::string>{"read", "write"}));
  EXPECT_EQ(profile.value().syscalls[0].args.at(0).value, 2U);
}

TEST(SeccompProfile, WhatIsNotUnderstoodIsNotLeftOut) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"syscalls": []})", "defaultAction"},
      {R"({"defaultAction": "SCMP_ACT_FLY"})", "/defaultAction: "},
      {R"({"defaultAction": "SCMP_ACT_ERRNO", "archMap": []})", "/archMap"},
      {R"({"defaultAction": "SCMP_ACT_ERRNO",
           "syscalls": [{"names": ["bpf"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": []}}]})",
       "/syscalls/0/includes"},
      {R"({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": [], "action": "SCMP_ACT_ALLOW"}]})",
       "/syscalls/0/names"},
      {"[]", "object"},
      {"", "p.json:1:1"}};
  for (const auto& [text, part] : cases) {
    const auto profile = parse_seccomp(text, "p.json");
    ASSERT_FALSE(profile.ok()) << text;
    EXPECT_TRUE(profile.error().message().starts_with("p.json:")) << profile.error().message();
    EXPECT_NE(profile.error().message().find(part), std::string::npos) << profile.error().message();
  }
}

}  // namespace
}  // namespace wherry::oci
