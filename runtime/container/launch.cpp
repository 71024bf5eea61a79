#include "runtime/container/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>
#include <optional>

#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/container/record.h"
#include "runtime/init/child.h"

namespace wherry::container {
namespace {

// setns(2) into a PID namespace moves only children made later, so the creator goes there for the
// clone and comes back.
class PidNamespaceVisit {
 public:
  static Result<PidNamespaceVisit> enter(const UniqueFd& there) {
    PidNamespaceVisit visit;
    if (!there) return visit;
    visit.home_ = TRY(sys::openat(AT_FDCWD, "/proc/self/ns/pid", O_RDONLY));
    TRY(sys::setns(there.get(), CLONE_NEWPID, "pid namespace"));
    return visit;
  }
  Result<> leave() {
    if (!home_) return {};
    return sys::setns(home_.get(), CLONE_NEWPID, "own pid namespace");
  }

 private:
  UniqueFd home_;
};

// ENOSPC of clone3 is a limit on namespaces or pid namespaces nested too deep; the error names
// which it may be (REL-39).
Error explain_clone(Error error, std::uint64_t flags) {
  const int err = error.sys_errno();
  if (err == EAGAIN)
    return std::move(error).hint(
        "pids.max of the cgroup, RLIMIT_NPROC or kernel.pid_max is reached");
  if (err != ENOSPC && err != EUSERS) return error;
  struct Limit {
    std::uint64_t flag;
    const char* name;
  };
  constexpr std::array kLimits = {Limit{CLONE_NEWNS, "mnt"}, Limit{CLONE_NEWPID, "pid"},
                                  Limit{CLONE_NEWNET, "net"}, Limit{CLONE_NEWIPC, "ipc"},
                                  Limit{CLONE_NEWUTS, "uts"}};
  std::string text = "a limit is reached:";
  for (const auto& limit : kLimits) {
    if ((flags & limit.flag) == 0) continue;
    const auto name = cat("user.max_", limit.name, "_namespaces");
    const auto value =
        read_file_at(AT_FDCWD, cat("/proc/sys/user/max_", limit.name, "_namespaces"), 64);
    text += cat(" ", name, " = ", value.ok() ? trim(value.value()) : std::string_view{"?"});
  }
  return std::move(error).context(text).hint(
      "raise the sysctl whose number of namespaces is used up; pid namespaces nest 32 deep at the "
      "most");
}

Result<Cloned> clone_child(Launch& launch) {
  auto visit = TRY(PidNamespaceVisit::enter(launch.pid_namespace));
  CloneArgs args;
  args.flags =
      launch.clone_flags | (launch.clone_parent ? static_cast<std::uint64_t>(CLONE_PARENT) : 0);
  args.cgroup_fd = launch.cgroup_fd;
  auto cloned = clone_process(args);
  if (cloned.ok() && cloned->pid == 0) return cloned;
  if (auto left = visit.leave(); !left.ok()) {
    if (cloned.ok()) sys::pidfd_send_signal(cloned->pidfd.get(), SIGKILL).ignore("it is to go");
    return std::move(left).error();
  }
  if (!cloned.ok()) return explain_clone(std::move(cloned).error(), launch.clone_flags);
  return cloned;
}

// What the hooks take is not taken from the child's time.
Result<> run_hooks(const Launch& launch, const Launched& child, Deadline& deadline) {
  const auto before = boot_time();
  TRY(launch.run_hooks(child.pid));
  const auto taken = std::chrono::ceil<Millis>(boot_time() - before);
  deadline = deadline.plus(taken + launch.child_hooks);
  return child.channel.send({.step = init::Step::kHooksRun, .text = {}, .fd = {}});
}

Result<> converse(const Launch& launch, Launched& child, Deadline deadline) {
  using init::Step;
  const auto& plan = launch.plan;
  init::Sequence sequence{
      {.terminal = plan.terminal, .hooks = plan.hooks && plan.hooks->creator_is_asked}};
  while (true) {
    auto message = TRY(child.channel.receive(deadline));
    TRY(sequence.accept(message.step));
    if (message.step == Step::kConsole) {
      child.console = std::move(message.fd);
    } else if (message.step == Step::kMounted) {
      TRY(run_hooks(launch, child, deadline));
      TRY(sequence.accept(Step::kHooksRun));
    } else {
      return {};  // ready
    }
  }
}

}  // namespace

Result<Launched> launch_child(Launch& launch, Deadline deadline) {
  auto [ours, theirs] = TRY(init::Channel::make());
  // Above the descriptors that are preserved, which keep their numbers.
  TRY(theirs.move_above(3 + static_cast<int>(launch.plan.preserve_fds)));
  auto cloned = TRY(clone_child(launch));
  if (cloned.pid == 0) init::become_container(launch.plan, theirs);
  theirs.close();
  launch.plan.gate.reset();
  launch.plan.result.reset();
  Launched child{cloned.pid, std::move(cloned.pidfd), {}, std::move(ours)};
  if (auto talked = converse(launch, child, deadline); !talked.ok()) {
    abandon(child, deadline);
    return std::move(talked).error();
  }
  return child;
}

void abandon(const Launched& child, Deadline deadline) {
  sys::pidfd_send_signal(child.pidfd.get(), SIGKILL).ignore("it may be gone already");
  sys::poll_one(child.pidfd.get(), POLLIN, deadline.sooner(Millis{5000}))
      .ignore("the cgroup's removal waits as well");
  sys::waitid_pidfd(child.pidfd.get(), WEXITED | WNOHANG)
      .ignore("with CLONE_PARENT it is not ours to reap");
}

void remove_files(int record_dir) {
  for (const auto* name : {kGateFile, kResultFile, kHooksFile, kRecordFile})
    sys::unlinkat(record_dir, name, 0).ignore("it may not be there");
}

std::vector<oci::DeviceRule> with_default_devices(const std::vector<oci::DeviceRule>& rules) {
  auto all = rules;
  const auto allow = [&](std::int64_t major, std::optional<std::int64_t> minor) {
    oci::DeviceRule rule;
    rule.allow = true;
    rule.type = "c";
    rule.major = major;
    rule.minor = minor;
    rule.access = "rwm";
    all.push_back(rule);
  };
  for (const std::int64_t minor : {3, 5, 7, 8, 9})
    allow(1, minor);         // null, zero, full, random, urandom
  allow(5, 0);               // tty
  allow(5, 1);               // console
  allow(5, 2);               // ptmx
  allow(136, std::nullopt);  // pts
  return all;
}

}  // namespace wherry::container
