// Longer lives: restarts, init containers, out of memory, volumes, many at once, a keeper that is
// killed.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/json.h"
#include "base/process.h"
#include "pod_fixture.h"

namespace wherry::shim {
namespace {

constexpr Millis kWait{30'000};

class PodLife : public PodTest {
 protected:
  bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 1'000; ++i, ::usleep(10'000))
      if (holds()) return true;
    return false;
  }
  std::vector<std::string> event_types(const std::string& pod_id) {
    std::vector<std::string> types;
    const auto read = pods_->events({}, [&](const Json& event) -> Result<> {
      if (json_string_or(event, "pod", "") == pod_id)
        types.push_back(json_string_or(event, "type", ""));
      return {};
    });
    EXPECT_TRUE(read.ok());
    return types;
  }
};

TEST_F(PodLife, RestartsOnFailureWithALogOfEachRun) {
  auto pod = pod_of("again", sh("echo run; test -e /data/third && exit 0; test -e /data/second && "
                                ": > /data/third; : > /data/second; exit 1"));
  pod.restart = pod::Restart::kOnFailure;
  pod.volumes.push_back({"data", pod::Volume::Kind::kEmptyDir, false, {}, {}, {}});
  pod.containers[0].mounts.push_back({"data", "/data", "", false, ""});
  pod.annotations["io.wherry.test"] = "1";
  const auto status = run(pod);
  ASSERT_TRUE(status.ok()) << status.error().message();
  // The first restart is at once; the next one waits for its back-off.
  ASSERT_TRUE(eventually([&] {
    return pods_->status({status.value().id, ""}).value().containers[0].restarts >= 1;
  }));
  ASSERT_TRUE(eventually([&] {
    const auto now = pods_->status({status.value().id, ""});
    return now.ok() && now.value().containers[0].reason == "CrashLoopBackOff";
  }));
  EXPECT_EQ(log_of(status.value().id, "main"), "run\n");
  EXPECT_TRUE(
      pods_->stop({status.value().id, ""}, std::chrono::seconds{0}, Deadline::in(kWait)).ok());
}

TEST_F(PodLife, InitContainersComeFirstAndInOrder) {
  auto pod = pod_of("init", sh("cat /data/said"));
  pod.volumes.push_back({"data", pod::Volume::Kind::kEmptyDir, true, {}, {}, {}});
  pod.init_containers.push_back(container_of("one", sh("echo one > /data/said")));
  pod.init_containers.push_back(container_of("two", sh("echo two >> /data/said")));
  for (auto* list : {&pod.init_containers, &pod.containers})
    for (auto& container : *list) container.mounts.push_back({"data", "/data", "", false, ""});
  const auto ran = run_attached(pod);
  ASSERT_TRUE(ran.code.ok()) << ran.code.error().message();
  EXPECT_EQ(ran.code.value(), 0);
  EXPECT_EQ(ran.out, "one\ntwo\n");
}

TEST_F(PodLife, OutOfMemoryIsTold) {
  auto pod = pod_of("hog", sh("x=a; while true; do x=$x$x$x$x; done"));
  pod.containers[0].limits.memory_bytes = 16U << 20;
  const auto status = run(pod);
  ASSERT_TRUE(status.ok()) << status.error().message();
  const auto code = pods_->wait({status.value().id, ""}, Deadline::in(kWait));
  ASSERT_TRUE(code.ok()) << code.error().message();
  EXPECT_EQ(code.value(), 137);
  ASSERT_TRUE(eventually([&] {
    return pods_->status({status.value().id, ""}).value().sandbox == "NOTREADY";
  }));
  const auto after = pods_->status({status.value().id, ""});
  EXPECT_TRUE(after.value().oom_killed);
  EXPECT_EQ(after.value().containers[0].reason, "OOMKilled");
  const auto types = event_types(status.value().id);
  const auto oom = std::find(types.begin(), types.end(), "container.oom");
  const auto exited = std::find(types.begin(), types.end(), "container.exited");
  ASSERT_NE(oom, types.end());
  EXPECT_LT(oom, exited) << "OOM comes before exit";
}

TEST_F(PodLife, OneThatRemovesItselfLeavesNothingWithoutAClient) {
  auto pod = pod_of("gone", sh("sleep 0.1"));
  pod.remove_when_done = true;
  const auto status = run(pod);
  ASSERT_TRUE(status.ok()) << status.error().message();
  ASSERT_TRUE(eventually([&] { return pods_->status({status.value().id, ""}).ok() == false; }));
  ASSERT_TRUE(eventually([&] { return pods_->leaks().value().empty(); }));
}

TEST_F(PodLife, ManyAtOnce) {
  std::vector<pid_t> children;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto pod = pod_of(cat("many-", i), sh("exit 3"));
      pod.remove_when_done = true;
      const auto code = pods_->run_attached(pod, {0, 1, 2});
      if (!code.ok()) ::fprintf(stderr, "%s\n", code.error().message().c_str());
      ::_exit(code.ok() && code.value() == 3 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const auto child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(pods_->list().value().empty());
}

TEST_F(PodLife, WithoutItsKeeperTheWorkerGoesOn) {
  const auto status = run(pod_of("web", sh("sleep 0.5; echo end; exit 8")));
  ASSERT_TRUE(status.ok()) << status.error().message();
  ASSERT_EQ(::kill(status.value().keeper_pid, SIGKILL), 0);
  ExecRequest request;
  request.argv = sh("exit 3");
  const auto executed = pods_->exec({status.value().id, ""}, request, Deadline::in(kWait));
  ASSERT_TRUE(executed.ok()) << executed.error().message();
  EXPECT_EQ(executed.value(), 3);
  const auto code = pods_->wait({status.value().id, ""}, Deadline::in(kWait));
  // Linux 6.15 tells the code to whoever held the pidfd; before it, nobody can.
  EXPECT_TRUE(code.ok() ? code.value() == 8 : code.error().code() == Code::kState);
  EXPECT_EQ(log_of(status.value().id, "main"), "end\n");
  ASSERT_TRUE(eventually([&] {
    return pods_->status({status.value().id, ""}).value().sandbox == "NOTREADY";
  }));
}

TEST_F(PodLife, AStreamThatSomebodyKeepsOpenDoesNotHoldTheExit) {
  auto pod = pod_of("left", sh("sleep 100 & echo done; exit 2"));
  pod.pid_mode = pod::PidMode::kHost;  // the sleeper does not end with init
  const auto status = run(pod);
  ASSERT_TRUE(status.ok()) << status.error().message();
  const auto code = pods_->wait({status.value().id, ""}, Deadline::in(Millis{6'000}));
  ASSERT_TRUE(code.ok()) << code.error().message();
  EXPECT_EQ(code.value(), 2);
  EXPECT_EQ(log_of(status.value().id, "main"), "done\n");
}

TEST_F(PodLife, AShortTerminalRunGivesAllItsOutput) {
  auto pod = pod_of("tty", sh("seq 1 2000; exit 4"));
  pod.containers[0].tty = pod.containers[0].stdin_open = true;
  const auto ran = run_attached(pod);
  ASSERT_TRUE(ran.code.ok()) << ran.code.error().message();
  EXPECT_EQ(ran.code.value(), 4);
  std::string expected;
  for (int i = 1; i <= 2000; ++i) expected += std::to_string(i) + "\r\n";
  EXPECT_EQ(ran.out, expected);
}

TEST_F(PodLife, EveryExitCodeComesThrough) {
  const auto status = run(pod_of("codes", sh("sleep 100")));
  ASSERT_TRUE(status.ok()) << status.error().message();
  for (const int wanted : {0, 1, 2, 125, 126, 127, 128, 129, 137, 254, 255}) {
    ExecRequest request;
    request.argv = sh(cat("exit ", wanted));
    const auto code = pods_->exec({status.value().id, ""}, request, Deadline::in(kWait));
    ASSERT_TRUE(code.ok()) << code.error().message();
    EXPECT_EQ(code.value(), wanted);
  }
  for (const int signum : {1, 2, 9, 15}) {
    ExecRequest request;
    request.argv = sh(cat("kill -", signum, " $$; sleep 1"));
    const auto code = pods_->exec({status.value().id, ""}, request, Deadline::in(kWait));
    ASSERT_TRUE(code.ok()) << code.error().message();
    EXPECT_EQ(code.value(), 128 + signum);
  }
  ExecRequest missing;
  missing.argv = {"/nonesuch"};
  const auto failed = pods_->exec({status.value().id, ""}, missing, Deadline::in(kWait));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(exit_code_of_failure(failed.error()), 127) << failed.error().message();
}

}  // namespace
}  // namespace wherry::shim
