// The worker is killed while its containers live, write and end: nothing may be lost and no verb is
// needed.
#include <signal.h>

#include "base/json.h"
#include "base/process.h"
#include "pod_fixture.h"

namespace wherry::shim {
namespace {

constexpr Millis kWait{30'000};

class WorkerKill : public PodTest {
 protected:
  // The worker that the status names; a new one after each kill.
  pid_t worker_of(const std::string& id) {
    const auto status = pods_->status({id, ""});
    return status.ok() ? status.value().shim_pid : 0;
  }
  pid_t await_other_worker(const std::string& id, pid_t old) {
    for (int i = 0; i < 1'000; ++i, ::usleep(10'000))
      if (const auto now = worker_of(id); now != 0 && now != old) return now;
    return 0;
  }
};

TEST_F(WorkerKill, TheLogIsWholeAndTheCodeRight) {
  const auto status = run(pod_of("web", sh("seq 1 300000; exit 5")));
  ASSERT_TRUE(status.ok()) << status.error().message();
  const auto& id = status.value().id;
  int kills = 0;
  for (int i = 0; i < 5; ++i) {
    const auto worker = worker_of(id);
    if (worker == 0 || ::kill(worker, SIGKILL) != 0) break;
    ++kills;
    ::usleep(30'000);
  }
  EXPECT_GT(kills, 0);
  const auto code = pods_->wait({id, ""}, Deadline::in(kWait));
  ASSERT_TRUE(code.ok()) << code.error().message();
  EXPECT_EQ(code.value(), 5);
  std::string expected;
  for (int i = 1; i <= 300'000; ++i) expected += std::to_string(i) + "\n";
  EXPECT_EQ(log_of(id, "main"), expected) << "after " << kills << " kills";
}

TEST_F(WorkerKill, AnExitWhileThereIsNoWorkerIsKept) {
  const auto status = run(pod_of("web", sh("sleep 0.3; echo last; exit 9")));
  ASSERT_TRUE(status.ok()) << status.error().message();
  const auto& id = status.value().id;
  // Two deaths within a short time: the next start waits, and the container ends in the gap.
  const auto first = worker_of(id);
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  const auto second = await_other_worker(id, first);
  ASSERT_NE(second, 0);
  ASSERT_EQ(::kill(second, SIGKILL), 0);
  const auto code = pods_->wait({id, ""}, Deadline::in(kWait));
  ASSERT_TRUE(code.ok()) << code.error().message();
  EXPECT_EQ(code.value(), 9);
  EXPECT_EQ(log_of(id, "main"), "last\n");
}

TEST_F(WorkerKill, ContainersDoNotNotice) {
  const auto status = run(pod_of("web", sh("while true; do echo tick; sleep 0.02; done")));
  ASSERT_TRUE(status.ok()) << status.error().message();
  const auto& id = status.value().id;
  const auto pid = status.value().containers[0].pid;
  const auto before = identify(pid);
  ASSERT_TRUE(before.ok());
  const auto old = worker_of(id);
  ASSERT_EQ(::kill(old, SIGKILL), 0);
  ASSERT_NE(await_other_worker(id, old), 0);
  const auto after = identify(pid);
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after.value().start_ticks, before.value().start_ticks);
  // The new worker can do all that the old one could.
  ExecRequest request;
  request.argv = sh("exit 4");
  const auto code = pods_->exec({id, ""}, request, Deadline::in(kWait));
  ASSERT_TRUE(code.ok()) << code.error().message();
  EXPECT_EQ(code.value(), 4);
  EXPECT_TRUE(pods_->stop({id, ""}, std::chrono::seconds{0}, Deadline::in(kWait)).ok());
}

TEST_F(WorkerKill, KeeperAndWorkerTogetherLeaveNothingUnremovable) {
  const auto status = run(pod_of("web", sh("sleep 100")));
  ASSERT_TRUE(status.ok()) << status.error().message();
  ASSERT_EQ(::kill(status.value().keeper_pid, SIGKILL), 0);
  ASSERT_EQ(::kill(status.value().shim_pid, SIGKILL), 0);
  for (int i = 0; i < 500 && pods_->status({status.value().id, ""}).value().phase != "Unknown"; ++i)
    ::usleep(10'000);
  const auto after = pods_->status({status.value().id, ""});
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after.value().phase, "Unknown");
  EXPECT_FALSE(after.value().containers[0].exit_code.has_value()) << "unknown is not a number";
  EXPECT_FALSE(pods_->leaks().value().empty());
  const auto removed =
      pods_->remove({status.value().id, ""}, Pods::Force::kYes, Deadline::in(kWait));
  EXPECT_TRUE(removed.ok()) << removed.error().message();
}

TEST_F(WorkerKill, AStoppedWorkerDoesNotStopTheOthers) {
  const auto mute = run(pod_of("mute", sh("sleep 100")));
  const auto other = run(pod_of("other", sh("sleep 100")));
  ASSERT_TRUE(mute.ok() && other.ok());
  ASSERT_EQ(::kill(mute.value().shim_pid, SIGSTOP), 0);
  const auto list = pods_->list();
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list.value().size(), 2U);
  const auto stopped = pods_->stop({mute.value().id, ""}, std::nullopt, Deadline::in(Millis{300}));
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code(), Code::kTimeout) << stopped.error().message();
  EXPECT_TRUE(pods_->remove({mute.value().id, ""}, Pods::Force::kYes, Deadline::in(kWait)).ok());
}

// The worker dies at each step of a start; whatever was done is found, and the pod comes up all the
// same.
class WorkerDiesAt : public WorkerKill, public testing::WithParamInterface<const char*> {};

TEST_P(WorkerDiesAt, ThePodComesUpAllTheSame) {
  ASSERT_EQ(::setenv("WHERRY_FAULT", cat(GetParam(), "=kill").c_str(), 1), 0);
  const auto status = run(pod_of("web", sh("echo up; sleep 100")));
  ::unsetenv("WHERRY_FAULT");
  ASSERT_TRUE(status.ok()) << status.error().message();
  EXPECT_EQ(status.value().phase, "Running");
  for (int i = 0; i < 300 && log_of(status.value().id, "main").empty(); ++i) ::usleep(10'000);
  EXPECT_EQ(log_of(status.value().id, "main"), "up\n");
}

INSTANTIATE_TEST_SUITE_P(Steps, WorkerDiesAt,
                         testing::Values("engine_create", "engine_created", "engine_start"));

TEST_F(WorkerKill, DyingInTheExitKeepsTheCode) {
  for (const char* step : {"exit_record", "log_commit", "engine_destroy"}) {
    ASSERT_EQ(::setenv("WHERRY_FAULT", cat(step, "=kill").c_str(), 1), 0);
    const auto status = run(pod_of(cat("web-", step), sh("echo said; exit 6")));
    ::unsetenv("WHERRY_FAULT");
    ASSERT_TRUE(status.ok()) << status.error().message();
    const auto code = pods_->wait({status.value().id, ""}, Deadline::in(kWait));
    ASSERT_TRUE(code.ok()) << step << ": " << code.error().message();
    EXPECT_EQ(code.value(), 6) << step;
    EXPECT_EQ(log_of(status.value().id, "main"), "said\n") << step;
  }
}

}  // namespace
}  // namespace wherry::shim
