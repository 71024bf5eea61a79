// Clients that do what ours never do: the pod must not notice, and nothing may stay of it.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "shim/client/client.h"
#include "tests/kernel/shim/pod_fixture.h"

namespace wherry::shim {
namespace {

constexpr Millis kAnswer{10'000};

class HostileClient : public PodTest {
 protected:
  void start() {
    const auto status = run(pod_of("web", sh("sleep 100")));
    ASSERT_TRUE(status.ok()) << status.error().message();
    id_ = status.value().id;
    dir_ = sys::openat(AT_FDCWD, cat(places_.state, "/pods/", id_), O_RDONLY | O_DIRECTORY).value();
  }
  Result<Client> connect() { return Client::connect(dir_.get(), Deadline::in(kAnswer)); }
  Result<Json> ask(const char* method, const char* params, std::span<const int> fds = {}) {
    auto client = connect();
    if (!client.ok()) return std::move(client).error();
    return client->call(method, parse_json(params, "params").value(), fds, Deadline::in(kAnswer));
  }
  // Leaf cgroups of execs, wherever the hierarchies are.
  std::vector<std::string> execs_of(const std::string& top) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator{
             top, std::filesystem::directory_options::skip_permission_denied})
      if (entry.path().string().find(places_.cgroup_parent) != std::string::npos &&
          entry.path().filename().string().starts_with("exec-"))
        found.push_back(entry.path());
    return found;
  }
  std::string phase() { return pods_->status({id_, ""}).value().phase; }

  std::string id_;
  UniqueFd dir_;
};

TEST_F(HostileClient, AWrongTypeDoesNotMeanEverything) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto stopped = ask("stop", R"({"container":["nope"],"grace":0})");
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code(), Code::kInvalid) << stopped.error().message();
  EXPECT_EQ(ask("kill", R"({"container":["x"]})").error().code(), Code::kInvalid);
  EXPECT_EQ(phase(), "Running");
}

TEST_F(HostileClient, ARelayThatIsNoneLeavesNoProcess) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto null = sys::openat(AT_FDCWD, "/dev/null", O_RDWR).value();
  const int fds[] = {null.get()};
  for (const char* method : {"exec", "attach"}) {
    const auto got = ask(method, R"({"argv":["sh","-c","sleep 555"],"tty":true})", fds);
    ASSERT_FALSE(got.ok()) << method;
    EXPECT_EQ(got.error().code(), Code::kInvalid) << got.error().message();
  }
  EXPECT_TRUE(execs_of("/sys/fs/cgroup").empty());
}

TEST_F(HostileClient, ConnectionsThatAskNothingShutNobodyOutInSilence) {
  ASSERT_NO_FATAL_FAILURE(start());
  std::vector<Client> idle;
  for (int i = 0; i < 64; ++i) {
    auto client = connect();
    ASSERT_TRUE(client.ok()) << i;
    idle.push_back(std::move(client).value());
  }
  const auto refused = ask("ping", "{}");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("64 connections are open"), std::string::npos)
      << refused.error().message();
  // One that asks when it has been hung up on already is told as well.
  auto late = connect();
  ASSERT_TRUE(late.ok());
  ::usleep(200'000);
  const auto told =
      late->call("ping", parse_json("{}", "params").value(), {}, Deadline::in(kAnswer));
  ASSERT_FALSE(told.ok());
  EXPECT_NE(told.error().message().find("64 connections are open"), std::string::npos)
      << told.error().message();
  idle.clear();
  bool answered = false;  // the worker has to see their end first
  for (int i = 0; i < 500 && !answered; ++i) {
    answered = ask("ping", "{}").ok();
    if (!answered) ::usleep(10'000);
  }
  EXPECT_TRUE(answered);
}

TEST_F(HostileClient, AThousandWaitsOfOneConnectionAreTooMany) {
  ASSERT_NO_FATAL_FAILURE(start());
  auto client = connect().value();
  const auto none = parse_json("{}", "params").value();
  for (int i = 0; i < 300; ++i)
    ASSERT_TRUE(client.send("wait", none, {}, Deadline::in(kAnswer)).ok());
  const auto first = client.receive(Deadline::in(kAnswer));
  ASSERT_FALSE(first.ok());
  EXPECT_NE(first.error().message().find("256 requests"), std::string::npos)
      << first.error().message();
}

}  // namespace
}  // namespace wherry::shim
