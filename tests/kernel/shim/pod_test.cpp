#include <signal.h>

#include "base/process.h"
#include "pod_fixture.h"

namespace wherry::shim {
namespace {

constexpr Millis kWait{20'000};

TEST_F(PodTest, RunsAttachedWithItsExitCode) {
  const auto ran = run_attached(pod_of("web", sh("echo out; echo err >&2; exit 7")));
  ASSERT_TRUE(ran.code.ok()) << ran.code.error().message();
  EXPECT_EQ(ran.code.value(), 7);
  EXPECT_EQ(ran.out, "out\n");
  EXPECT_EQ(ran.err, "err\n");
}

TEST_F(PodTest, AKilledOneIs128AndTheSignal) {
  const auto ran = run_attached(pod_of("web", sh("kill -9 $$")));
  ASSERT_TRUE(ran.code.ok()) << ran.code.error().message();
  // The kernel refuses a namespace's init its own SIGKILL, so it goes on to the end.
  EXPECT_EQ(ran.code.value(), 0);
  const auto status = run(pod_of("other", sh("sleep 100")));
  ASSERT_TRUE(status.ok()) << status.error().message();
  ASSERT_EQ(::kill(status.value().containers[0].pid, SIGKILL), 0);
  const auto code = pods_->wait({status.value().id, ""}, Deadline::in(kWait));
  ASSERT_TRUE(code.ok()) << code.error().message();
  EXPECT_EQ(code.value(), 137);
}

TEST_F(PodTest, StdinIsPassedOn) {
  auto pod = pod_of("cat", {"/bin/cat"});
  pod.containers[0].stdin_open = pod.containers[0].stdin_once = true;
  const std::string input(300'000, 'x');
  const auto ran = run_attached(pod, input);
  ASSERT_TRUE(ran.code.ok()) << ran.code.error().message();
  EXPECT_EQ(ran.out, input);
}

TEST_F(PodTest, AMissingProgramIsToldAndNothingStays) {
  const auto ran = run(pod_of("web", {"/nonesuch"}));
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(exit_code_of_failure(ran.error()), 127) << ran.error().message();
  EXPECT_NE(ran.error().message().find("/nonesuch"), std::string::npos) << ran.error().message();
  EXPECT_TRUE(pods_->list().value().empty());
  // The name is free at once.
  EXPECT_TRUE(run(pod_of("web", sh("true"))).ok());
}

TEST_F(PodTest, ANameIsTakenOnce) {
  ASSERT_TRUE(run(pod_of("web", sh("sleep 100"))).ok());
  const auto second = run(pod_of("web", sh("true")));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kExists) << second.error().message();
}

TEST_F(PodTest, TwoContainersShareNetworkAndHostname) {
  auto pod = pod_of("pair", sh("hostname; exec sleep 100"));
  pod.containers.push_back(container_of("side", sh("hostname; exec sleep 100")));
  const auto status = run(pod);
  ASSERT_TRUE(status.ok()) << status.error().message();
  ASSERT_EQ(status.value().containers.size(), 2U);
  for (const char* ns : {"net", "ipc", "uts"}) {
    const auto first =
        sys::readlinkat(AT_FDCWD, cat("/proc/", status.value().containers[0].pid, "/ns/", ns));
    const auto second =
        sys::readlinkat(AT_FDCWD, cat("/proc/", status.value().containers[1].pid, "/ns/", ns));
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(first.value(), second.value()) << ns;
  }
  for (int i = 0; i < 200 && log_of(status.value().id, "side").empty(); ++i) ::usleep(10'000);
  EXPECT_EQ(log_of(status.value().id, "side"), "pair\n");
}

TEST_F(PodTest, ExecsWithDescriptorsAndCode) {
  const auto status = run(pod_of("web", sh("sleep 100")));
  ASSERT_TRUE(status.ok()) << status.error().message();
  const auto out = sys::memfd_create("out", 0).value();
  ExecRequest request;
  request.argv = sh("echo $GREETING; exit 9");
  request.env = {"GREETING=hello"};
  request.stdio = {0, out.get(), 2};
  const auto code = pods_->exec({status.value().id, ""}, request, Deadline::in(kWait));
  ASSERT_TRUE(code.ok()) << code.error().message();
  EXPECT_EQ(code.value(), 9);
  ::lseek(out.get(), 0, SEEK_SET);
  EXPECT_EQ(sys::read_to_end(out.get(), 1000).value(), "hello\n");
}

TEST_F(PodTest, ADirectoryIsNotPassedIntoAContainer) {
  const auto status = run(pod_of("web", sh("sleep 100")));
  ASSERT_TRUE(status.ok()) << status.error().message();
  const auto dir = sys::openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY).value();
  ExecRequest request;
  request.argv = sh("true");
  request.interactive = true;
  request.stdio = {dir.get(), 1, 2};
  const auto refused = pods_->exec({status.value().id, ""}, request, Deadline::in(kWait));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kDenied) << refused.error().message();
}

TEST_F(PodTest, StopsAndStaysUntilItIsRemoved) {
  const auto status = run(pod_of(
      "web", sh("trap 'echo bye; exit 3' TERM; echo ready; while true; do sleep 0.05; done")));
  ASSERT_TRUE(status.ok()) << status.error().message();
  const Target target{status.value().id, ""};
  for (int i = 0; i < 200 && log_of(target.pod_id, "main") != "ready\n"; ++i) ::usleep(10'000);
  const auto stopped = pods_->stop(target, std::chrono::seconds{5}, Deadline::in(kWait));
  ASSERT_TRUE(stopped.ok()) << stopped.error().message();
  const auto after = pods_->status(target);
  ASSERT_TRUE(after.ok()) << after.error().message();
  EXPECT_EQ(after.value().sandbox, "NOTREADY");
  EXPECT_EQ(after.value().containers[0].exit_code, 3);
  EXPECT_EQ(log_of(target.pod_id, "main"), "ready\nbye\n");
  EXPECT_TRUE(pods_->stop(target, std::nullopt, Deadline::in(kWait)).ok())
      << "stopping it again succeeds";
  EXPECT_TRUE(pods_->remove(target, Pods::Force::kNo, Deadline::in(kWait)).ok());
  EXPECT_EQ(pods_->status(target).error().code(), Code::kNotFound);
}

TEST_F(PodTest, NobodyElseMayConnect) {
  const auto status = run(pod_of("web", sh("sleep 100")));
  ASSERT_TRUE(status.ok()) << status.error().message();
  const auto dir = sys::fstatat(AT_FDCWD, cat(places_.state, "/pods/", status.value().id));
  const auto socket =
      sys::fstatat(AT_FDCWD, cat(places_.state, "/pods/", status.value().id, "/shim.sock"));
  ASSERT_TRUE(dir.ok() && socket.ok());
  EXPECT_EQ(dir.value().st_mode & 0777, 0700U);
  EXPECT_EQ(socket.value().st_mode & 0777, 0600U);
  const auto sockets = read_file_at(AT_FDCWD, "/proc/net/unix", 1 << 20);
  ASSERT_TRUE(sockets.ok());
  EXPECT_EQ(sockets.value().find("@wherry"), std::string::npos);
}

}  // namespace
}  // namespace wherry::shim
