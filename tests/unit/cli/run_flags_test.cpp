#include "tools/wherry/run_flags.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry::cli {
namespace {

RunOptions with_image() {
  RunOptions options;
  options.operands = {"image"};
  return options;
}

std::string refusal(const RunOptions& options) {
  const auto pod = pod_of_flags(options);
  return pod.ok() ? "" : pod.error().message();
}

TEST(ParseSize, Units) {
  EXPECT_EQ(parse_size("64m").value(), 64U << 20);
  EXPECT_EQ(parse_size("1.5G").value(), 3ULL << 29);
  EXPECT_EQ(parse_size("10").value(), 10U);
  EXPECT_EQ(parse_size("10b").value(), 10U);
  EXPECT_EQ(parse_size("2KiB").value(), 2048U);
  EXPECT_EQ(parse_size("2kb").value(), 2048U);
  for (const char* bad :
       {"", "m", "1x", "-1m", "1m1", "1.2.3m", "1bb", "99999999t", "inf", "1e3", ".", "0x10"})
    EXPECT_FALSE(parse_size(bad).ok()) << bad;
}

TEST(RunFlags, Defaults) {
  const auto pod = pod_of_flags(with_image());
  ASSERT_TRUE(pod.ok());
  const auto& container = pod.value().containers.at(0);
  EXPECT_EQ(container.image, "image");
  EXPECT_EQ(pod.value().restart, pod::Restart::kNever);
  EXPECT_EQ(pod.value().grace.count(), 10);
  EXPECT_EQ(container.security.allow_privilege_escalation, false);
  EXPECT_EQ(container.security.seccomp, pod::SeccompMode::kRuntimeDefault);
  EXPECT_FALSE(pod.value().remove_when_done);
}

TEST(RunFlags, EntrypointAndCommand) {
  auto options = with_image();
  options.operands = {"image", "a", "b"};
  auto pod = pod_of_flags(options).value();
  EXPECT_TRUE(pod.containers[0].command.empty());
  EXPECT_EQ(pod.containers[0].args, (std::vector<std::string>{"a", "b"}));
  options.entrypoint = "sh";
  pod = pod_of_flags(options).value();
  EXPECT_EQ(pod.containers[0].command, (std::vector<std::string>{"sh"}));
  EXPECT_EQ(pod.containers[0].args, (std::vector<std::string>{"a", "b"}));
  options.entrypoint = "";
  pod = pod_of_flags(options).value();
  EXPECT_EQ(pod.containers[0].command, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(pod.containers[0].args.empty());
  options.entrypoint = R"(["x", "y"])";
  EXPECT_EQ(pod_of_flags(options).value().containers[0].command,
            (std::vector<std::string>{"x", "y"}));
  options.operands = {"image"};
  options.entrypoint = "";
  EXPECT_FALSE(pod_of_flags(options).ok());
}

TEST(RunFlags, TheCommandMayStandBehindDashes) {
  auto options = with_image();
  options.operands = {"image", "--", "ls", "--"};
  EXPECT_EQ(pod_of_flags(options).value().containers[0].args,
            (std::vector<std::string>{"ls", "--"}));
  EXPECT_EQ(command_after_first({"web", "--", "id"}), (std::vector<std::string>{"id"}));
  EXPECT_TRUE(command_after_first({"web", "--"}).empty());
  EXPECT_TRUE(command_after_first({}).empty());
}

TEST(RunFlags, WhatIsNegativeOrNoJsonIsToldPlainly) {
  auto options = with_image();
  options.cpus = "-1";
  EXPECT_EQ(refusal(options), "--cpus: '-1' must be positive");
  options = with_image();
  options.memory = "-1m";
  EXPECT_EQ(refusal(options), "--memory: '-1m' must be positive");
  options = with_image();
  options.entrypoint = R"(["sh")";
  EXPECT_EQ(refusal(options),
            "--entrypoint at line 1, column 6: unexpected end of input; expected ']'");
  options.entrypoint = R"([sh])";
  EXPECT_EQ(refusal(options), "--entrypoint at line 1, column 2: invalid literal");
}

TEST(RunFlags, RootfsTakesThePlaceOfTheImage) {
  RunOptions options;
  options.rootfs = "/srv/root";
  options.operands = {"ls", "-l"};
  const auto pod = pod_of_flags(options).value();
  EXPECT_EQ(pod.containers[0].rootfs_dir, "/srv/root");
  EXPECT_EQ(pod.containers[0].args, (std::vector<std::string>{"ls", "-l"}));
}

TEST(RunFlags, Volumes) {
  auto options = with_image();
  options.volumes = {"/tmp:/a:ro", "/tmp:/b:rslave", "/tmp:/c"};
  const auto pod = pod_of_flags(options).value();
  ASSERT_EQ(pod.volumes.size(), 3U);
  const auto& mounts = pod.containers[0].mounts;
  EXPECT_EQ(mounts[0].mount_path, "/a");
  EXPECT_TRUE(mounts[0].read_only);
  EXPECT_EQ(mounts[1].propagation, "rslave");
  EXPECT_FALSE(mounts[2].read_only);
  for (const char* bad : {"/tmp", "name:/x", "/tmp:x", "/tmp:/x:z", "/tmp:/x:noexec",
                          "/nonesuch:/x", ":/x", "/tmp:", "/tmp:/x:ro:rw"}) {
    options.volumes = {bad};
    EXPECT_NE(refusal(options).find("-v: "), std::string::npos) << bad;
  }
}

TEST(RunFlags, LimitsAndDevices) {
  auto options = with_image();
  options.memory = "64m";
  options.cpus = "0.5";
  options.pids_limit = -1;
  options.devices = {"/dev/null:/dev/x:r", "/dev/zero"};
  const auto pod = pod_of_flags(options).value();
  const auto& container = pod.containers[0];
  EXPECT_EQ(container.limits.memory_bytes, 64U << 20);
  EXPECT_EQ(container.limits.cpu_milli, 500U);
  EXPECT_EQ(container.limits.pids, -1);
  EXPECT_EQ(container.devices[0].container_path, "/dev/x");
  EXPECT_EQ(container.devices[0].permissions, "r");
  EXPECT_EQ(container.devices[1].permissions, "rwm");
  for (const char* bad : {"0", "0.001", "x", "-1", "1e9", ""}) {
    options.cpus = bad;
    EXPECT_FALSE(pod_of_flags(options).ok()) << bad;
  }
}

TEST(RunFlags, EnvironmentTakesOurOwn) {
  ::setenv("WHERRY_TEST_TAKEN", "x y", 1);
  ::unsetenv("WHERRY_TEST_NONE");
  const auto env = environment_of({"A=b=c", "WHERRY_TEST_TAKEN", "WHERRY_TEST_NONE", "E="}).value();
  ASSERT_EQ(env.size(), 3U);
  EXPECT_EQ(env[0], (std::pair<std::string, std::string>{"A", "b=c"}));
  EXPECT_EQ(env[1].second, "x y");
  EXPECT_EQ(env[2].second, "");
  EXPECT_FALSE(environment_of({"=x"}).ok());
}

TEST(RunFlags, RefusesByName) {
  const auto expect = [](auto set, const char* part) {
    auto options = with_image();
    set(options);
    EXPECT_NE(refusal(options).find(part), std::string::npos) << part << ": " << refusal(options);
  };
  expect([](auto& o) { o.network = "bridge"; }, "'bridge'");
  expect([](auto& o) { o.restart = "on-failure:3"; }, "'on-failure:3'");
  expect([](auto& o) { o.rm = true, o.restart = "always"; }, "--rm");
  expect([](auto& o) { o.security = {"apparmor=x"}; }, "apparmor");
  expect([](auto& o) { o.security = {"no-new-privileges=maybe"}; }, "maybe");
  expect([](auto& o) { o.memory = "4k"; }, "'4k'");
  expect([](auto& o) { o.workdir = "tmp"; }, "-w");
  expect([](auto& o) { o.stop_signal = "NONESUCH"; }, "NONESUCH");
  expect([](auto& o) { o.operands.clear(); }, "an image is missing");
}

TEST(RunFlags, SecurityOptions) {
  auto options = with_image();
  options.security = {"no-new-privileges=false", "seccomp=unconfined"};
  auto security = pod_of_flags(options).value().containers[0].security;
  EXPECT_EQ(security.allow_privilege_escalation, true);
  EXPECT_EQ(security.seccomp, pod::SeccompMode::kUnconfined);
  char path[] = "/tmp/wherry-profile.XXXXXX";
  const UniqueFd file{::mkstemp(path)};
  ASSERT_TRUE(sys::write_all(file.get(), R"({"defaultAction":"SCMP_ACT_ALLOW"})").ok());
  options.security = {"no-new-privileges", cat("seccomp=", path)};
  auto with_profile = pod_of_flags(options);
  ::unlink(path);
  ASSERT_TRUE(with_profile.ok()) << with_profile.error().message();
  security = with_profile.value().containers[0].security;
  EXPECT_EQ(security.allow_privilege_escalation, false);
  EXPECT_EQ(security.seccomp_profile, path);
  const auto missing = pod_of_flags(options);  // it is read before anything is made
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message().find(path), std::string::npos) << missing.error().message();
}

}  // namespace
}  // namespace wherry::cli
