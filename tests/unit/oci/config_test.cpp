// What is accepted with a word, specs that were built, and the small pure functions.
#include "oci/config.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "oci/state.h"

namespace wherry::oci {
namespace {

std::string with(std::string_view more) {
  return cat(R"({"ociVersion": "1.3.0", "root": {"path": "r"})", more, "}");
}

TEST(Config, VersionsThatAreReadWithANote) {
  const std::pair<const char*, const char*> cases[] = {
      {"1.0.0", ""},
      {"1.0.2-dev", ""},
      {"1.3.0+build.5", ""},
      {"1.4.0", "is newer than 1.3"},
      {"1.99.0-rc.1", "is newer than 1.3"},
      {"0.5.0-dev", "is a draft of before 1.0.0"},
      {"1.0.0-rc2-dev", "is a draft of"},
  };
  for (const auto& [version, note] : cases) {
    auto got = parse_config(cat(R"({"ociVersion": ")", version, R"(", "root": {"path": "r"}})"));
    ASSERT_TRUE(got.ok()) << got.error().message();
    EXPECT_EQ(got->notes.size(), *note ? 1U : 0U) << version;
    for (const auto& line : got->notes) EXPECT_NE(line.find(note), std::string::npos) << line;
  }
}

TEST(Config, NotesSayWhereAndWhat) {
  auto got = parse_config(with(R"(,
  "platform": {"os": "linux"}, "HostName": "x",
  "mounts": [{"destination": "data", "type": "tmpfs", "source": "t"}],
  "windows": {},
  "linux": {"namespaces": [{"type": "mount"}], "resources": {"oomScoreAdj": 5}})"));
  ASSERT_TRUE(got.ok()) << got.error().message();
  const std::vector<std::string> expected = {
      "config.json:2:15: /platform: unknown member is ignored",
      "config.json:2:44: /HostName: unknown member is ignored; the specification writes 'hostname'",
      "config.json:3:30: /mounts/0/destination: is relative, which is deprecated: it is taken from "
      "'/'",
      "config.json:4:14: /windows: section for another platform is ignored",
      "config.json:5:77: /linux/resources/oomScoreAdj: unknown member is ignored",
  };
  EXPECT_EQ(got->notes, expected);
}

TEST(Config, NullMeansAbsentWhereAMemberIsOptional) {
  auto got = parse_config(with(
      R"(, "hooks": null, "mounts": null, "process": null, "linux": {"resources": null, "seccomp": null})"));
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_FALSE(got->spec.process.has_value());
  EXPECT_FALSE(got->spec.linux_->resources.has_value());
}

TEST(Config, ADeviceNumberOfMinusOneIsAny) {
  auto got = parse_config(with(
      R"(, "linux": {"resources": {"devices": [{"allow": true, "type": "c", "major": 5, "minor": -1}]}})"));
  ASSERT_TRUE(got.ok()) << got.error().message();
  const auto& rule = got->spec.linux_->resources->devices.at(0);
  EXPECT_EQ(rule.major, 5);
  EXPECT_FALSE(rule.minor.has_value());
}

TEST(Config, ProcessAlone) {
  auto got = parse_process(
      R"({"args": ["id"], "cwd": "/", "user": {"uid": 7, "gid": 8}, "env": ["A=b=c"]})", "p.json");
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_EQ(got->user.uid, 7U);
  EXPECT_EQ(got->env.at(0), "A=b=c");
  auto again = parse_process(dump_json(to_json(got.value())));
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again.value() == got.value());

  const auto bad = parse_process("{\"args\": [],\n \"cwd\": \"x\"}", "p.json");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message(),
            "p.json:1:10: /args: must name a program: it is missing or empty\n"
            "p.json:2:9: /cwd: must be an absolute path, not 'x'");
}

TEST(Config, ABuiltSpecIsHeldToTheSameRules) {
  Spec spec;
  spec.oci_version = "1.3.0";
  spec.root = Root{.path = "rootfs"};
  EXPECT_TRUE(validate(spec).empty());
  spec.process.emplace();
  spec.process->args = {"a"};
  spec.process->env = {std::string{"A=\0b", 4}};
  spec.process->cwd = "/";
  spec.annotations[std::string{"k\0/~", 4}] = "v";
  spec.linux_.emplace().cgroups_path = "a/../b";
  std::vector<std::string> lines;
  for (const auto& problem : validate(spec)) lines.push_back(to_string(problem));
  const std::vector<std::string> expected = {
      "/linux/cgroupsPath: must not hold a '..': 'a/../b'",
      "/process/env/0: a NUL character cannot be part of any value",
      "/annotations/k\\x00~1~0: a NUL character cannot be part of a key",
  };
  EXPECT_EQ(lines, expected);
}

TEST(Config, EmptyStructuresSurviveTheRoundTrip) {
  Spec spec;
  spec.oci_version = "1.3.0";
  spec.root = Root{.path = "r"};
  auto& process = spec.process.emplace();
  process.console_size.emplace();
  process.args = {"a"};
  process.cwd = "/";
  process.capabilities.emplace();
  process.oom_score_adj = 0;
  spec.linux_.emplace().resources.emplace();
  auto& memory = spec.linux_->resources->memory.emplace();
  memory.limit = 0;
  memory.disable_oom_killer = false;
  spec.linux_->resources->pids_limit = 0;
  spec.linux_->resources->network_class_id = 0;
  auto got = parse_config(dump_json(to_json(spec)));
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_TRUE(got->spec == spec);
}

TEST(Config, ProblemAsText) {
  EXPECT_EQ(to_string(Problem{"/a\nb\x1b", 0, 0, "is bad", {}}), "/a\\x0ab\\x1b: is bad");
  EXPECT_EQ(to_string(Problem{"/a", 3, 5, "is bad", "f"}), "f:3:5: /a: is bad");
  EXPECT_EQ(to_string(Problem{"/a", 0, 0, "is bad", {}}), "/a: is bad");
  EXPECT_EQ(to_string(Problem{"", 1, 1, "is bad", "f"}), "f:1:1: is bad");
}

TEST(Config, SysctlPathsAndOwners) {
  const std::pair<const char*, const char*> good[] = {
      {"net.ipv4.ip_forward", "net/ipv4/ip_forward"},
      {"net/ipv4/ip_forward", "net/ipv4/ip_forward"},
      {"net.ipv4.conf.eth0/1.forwarding", "net/ipv4/conf/eth0.1/forwarding"},
      {"net/ipv4/conf/eth0.1/forwarding", "net/ipv4/conf/eth0.1/forwarding"},
  };
  for (const auto& [key, path] : good) EXPECT_EQ(sysctl_path(key), path);
  for (const auto* bad : {"", "kernel", ".", "..", "net.", ".net", "net..x", "/net/x", "net/../x",
                          "net.//.x", "net/./x", "a b.c", "a=b.c", "net.x\n", "net.ipv4;x"})
    EXPECT_FALSE(sysctl_path(bad).has_value()) << bad;
  EXPECT_EQ(sysctl_namespace("net/core/somaxconn"), NamespaceType::kNetwork);
  EXPECT_EQ(sysctl_namespace("fs/mqueue/msg_max"), NamespaceType::kIpc);
  EXPECT_EQ(sysctl_namespace("kernel/shmmax"), NamespaceType::kIpc);
  EXPECT_EQ(sysctl_namespace("kernel/domainname"), NamespaceType::kUts);
  for (const auto* host :
       {"kernel/core_pattern", "vm/overcommit_memory", "fs/file-max", "kernel/shmmax/x", "netx/a"})
    EXPECT_FALSE(sysctl_namespace(host).has_value()) << host;
}

TEST(State, DocumentForEachStatus) {
  State state{.id = "web",
              .status = Status::kRunning,
              .pid = 42,
              .bundle = "/b",
              .annotations = {{"a", "b"}}};
  EXPECT_EQ(
      dump_json(to_json(state)),
      R"({"ociVersion":"1.3.0","id":"web","status":"running","pid":42,"bundle":"/b","annotations":{"a":"b"}})");
  state.status = Status::kStopped;
  state.annotations.clear();
  EXPECT_EQ(dump_json(to_json(state)),
            R"({"ociVersion":"1.3.0","id":"web","status":"stopped","bundle":"/b"})");
}

}  // namespace
}  // namespace wherry::oci
