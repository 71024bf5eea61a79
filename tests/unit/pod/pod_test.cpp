// pod.json: random pods come back as they were.
#include "runtime/pod/pod.h"

#include <gtest/gtest.h>

#include <random>

#include "base/json.h"
#include "base/text.h"

namespace wherry::pod {
namespace {

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_{seed} {}

  Pod pod() {
    Pod p;
    p.id = text();
    p.name = text();
    p.ns = text();
    p.uid = text();
    for (auto i = pick(3); i > 0; --i) p.labels[cat("l", i)] = text();
    for (auto i = pick(3); i > 0; --i) p.annotations[cat("a", i)] = text();
    for (auto i = pick(3); i > 0; --i) p.init_containers.push_back(container());
    for (auto i = pick(3); i > 0; --i) p.containers.push_back(container());
    for (auto i = pick(3); i > 0; --i) p.volumes.push_back(volume());
    p.restart = word<Restart>(3);
    p.grace = std::chrono::seconds{pick(100)};
    p.network = word<Network>(3);
    p.pid_mode = word<PidMode>(3);
    p.host_ipc = coin();
    p.hostname = text();
    p.dns = {coin(), texts(), texts(), texts()};
    for (auto i = pick(3); i > 0; --i) p.host_aliases.emplace_back(text(), texts());
    for (auto i = pick(3); i > 0; --i) p.sysctls[cat("s", i)] = text();
    for (auto i = pick(3); i > 0; --i) p.supplemental_groups.push_back(number<std::uint32_t>());
    p.fs_group = maybe<std::uint32_t>();
    p.limits = limits();
    p.remove_when_done = coin();
    p.created = text();
    return p;
  }

 private:
  std::size_t pick(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>{0, n - 1}(random_);
  }
  bool coin() { return pick(2) == 0; }
  template <class T>
  T number() {
    const T choices[] = {0, 1, 42, std::numeric_limits<T>::max()};
    return choices[pick(4)];
  }
  template <class T>
  std::optional<T> maybe() {
    return coin() ? std::optional<T>{number<T>()} : std::nullopt;
  }
  std::optional<bool> maybe_bool() { return coin() ? std::optional<bool>{coin()} : std::nullopt; }
  template <class E>
  E word(std::size_t n) {
    return static_cast<E>(pick(n));
  }
  std::string text() {
    const char* choices[] = {"", "web", "\xc3\xa4", "a\nb\"c\\", "=", "0", "null"};
    return choices[pick(7)];
  }
  std::vector<std::string> texts() {
    std::vector<std::string> out;
    for (auto i = pick(3); i > 0; --i) out.push_back(text());
    return out;
  }
  Limits limits() {
    return {maybe<std::uint64_t>(), maybe<std::uint64_t>(), maybe<std::uint64_t>(),
            maybe<std::uint64_t>(), maybe<std::int64_t>()};
  }
  Volume volume() {
    return {text(), word<Volume::Kind>(2),    coin(), maybe<std::uint64_t>(),
            text(), word<Volume::HostType>(8)};
  }
  Container container() {
    Container c;
    c.name = text();
    c.image = text();
    c.rootfs_dir = text();
    c.command = texts();
    c.args = texts();
    c.working_dir = text();
    for (auto i = pick(3); i > 0; --i) c.env.emplace_back(text(), text());
    if (coin())
      c.ports.push_back({text(), text(), number<std::uint16_t>(), number<std::uint16_t>(), text()});
    if (coin()) c.mounts.push_back({text(), text(), text(), coin(), text()});
    if (coin()) c.devices.push_back({text(), text(), text()});
    c.limits = limits();
    auto& s = c.security;
    s.run_as_user = maybe<std::uint32_t>();
    s.run_as_group = maybe<std::uint32_t>();
    s.user = text();
    s.run_as_non_root = maybe_bool();
    s.privileged = maybe_bool();
    s.read_only_root = maybe_bool();
    s.allow_privilege_escalation = maybe_bool();
    s.cap_add = texts();
    s.cap_drop = texts();
    s.seccomp = word<SeccompMode>(3);
    s.seccomp_profile = text();
    s.unmasked_proc = coin();
    c.stdin_open = coin();
    c.stdin_once = coin();
    c.tty = coin();
    if (coin()) c.restart = word<Restart>(3);
    c.stop_signal = text();
    return c;
  }

  std::mt19937_64 random_;
};

TEST(PodJson, RandomPodsComeBack) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const auto json = to_json(Maker{seed}.pod());
    const auto text = dump_json(json);
    auto parsed = parse_json(text, "pod.json");
    ASSERT_TRUE(parsed.ok()) << text;
    auto pod = pod_from_json(parsed.value());
    ASSERT_TRUE(pod.ok()) << pod.error().message() << text;
    ASSERT_TRUE(dump_json(to_json(pod.value())) == text) << "seed " << seed;
  }
}

TEST(PodJson, MembersAreWhereTheyBelong) {
  Pod pod;
  pod.name = "web";
  pod.grace = std::chrono::seconds{0};
  pod.fs_group = 0;
  pod.containers.resize(1);
  pod.containers[0].security.privileged = false;
  auto back = pod_from_json(to_json(pod));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->name, "web");
  EXPECT_EQ(back->grace.count(), 0);
  EXPECT_EQ(back->fs_group, 0U);
  EXPECT_EQ(back->containers[0].security.privileged, false);
  EXPECT_FALSE(back->containers[0].security.run_as_user);
}

TEST(PodJson, WrongOnesAreNamed) {
  const std::pair<const char*, const char*> rows[] = {
      {"[]", "pod record: must be an object"},
      {"{}", "pod record: not a version that is known here"},
      {R"({"v":1,"name":7})", "pod record: /name: must be a string"},
      {R"({"v":1,"fsGroup":-1})", "pod record: /fsGroup: must be a whole number in range"},
      {R"({"v":1,"fsGroup":4294967296})", "pod record: /fsGroup: must be a whole number in range"},
      {R"({"v":1,"restart":"Sometimes"})",
       "pod record: /restart: 'Sometimes' is not one of its words"},
      {R"({"v":1,"containers":[{"ports":[{"hostPort":65536}]}]})",
       "pod record: /containers/0/ports/0/hostPort: must be a whole number in range"},
      {R"({"v":1,"labels":[]})", "pod record: /labels: must be an object"}};
  for (const auto& [text, message] : rows) {
    auto json = parse_json(text, "pod.json");
    ASSERT_TRUE(json.ok());
    auto pod = pod_from_json(json.value());
    ASSERT_FALSE(pod.ok()) << text;
    EXPECT_EQ(pod.error().message(), message);
  }
}

}  // namespace
}  // namespace wherry::pod
