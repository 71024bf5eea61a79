#include "runtime/container/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>
#include <optional>

#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/timing.h"
#include "mount/stage.h"
#include "runtime/container/id_maps.h"
#include "runtime/container/record.h"
#include "runtime/init/child.h"
#include "runtime/init/process.h"

namespace wherry::container {
namespace {

const char* own_name(int type) {
  switch (type) {
    case CLONE_NEWPID:
      return "/proc/self/ns/pid";
    case CLONE_NEWNET:
      return "/proc/self/ns/net";
    case CLONE_NEWIPC:
      return "/proc/self/ns/ipc";
    case CLONE_NEWUTS:
      return "/proc/self/ns/uts";
    default:
      return "/proc/self/ns/cgroup";
  }
}

// The creator has one thread, so it can go there for the clone and come back.
class Visit {
 public:
  Result<> enter(const std::vector<init::Join>& there) {
    for (const auto& ns : there) {
      auto home = TRY(sys::openat(AT_FDCWD, own_name(ns.type), O_RDONLY));
      TRY(sys::setns(ns.fd.get(), ns.type, ns.name));
      home_.push_back({std::move(home), ns.type, own_name(ns.type)});
    }
    return {};
  }
  Result<> leave() {
    Result<> first;
    for (const auto& ns : home_)
      if (auto left = sys::setns(ns.fd.get(), ns.type, ns.name); !left.ok() && first.ok())
        first = std::move(left);
    home_.clear();
    return first;
  }

 private:
  std::vector<init::Join> home_;
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
  constexpr std::array kLimits = {Limit{CLONE_NEWNS, "mnt"},  Limit{CLONE_NEWPID, "pid"},
                                  Limit{CLONE_NEWNET, "net"}, Limit{CLONE_NEWIPC, "ipc"},
                                  Limit{CLONE_NEWUTS, "uts"}, Limit{CLONE_NEWUSER, "user"}};
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

// By its pidfd, since the one who made it may stand in another PID namespace than we.
Result<pid_t> pid_of(const UniqueFd& pidfd) {
  const auto info = TRY(read_file_at(AT_FDCWD, cat("/proc/self/fdinfo/", pidfd.get()), 4096));
  for (const auto line : split(info, '\n'))
    if (line.starts_with("Pid:"))
      if (const auto pid = parse_int<pid_t>(trim(line.substr(4))); pid && *pid > 0) return *pid;
  return Error::make(Code::kProtocol, "the process in between made none");
}

// What the process in between does: the trees of the root get their flags locked by the copy of its
// mount namespace, and a user namespace that is joined is entered, from which there is no way back.
Result<Cloned> clone_from_between(Launch& launch, CloneArgs args) {
  TRY(sys::prctl(PR_SET_DUMPABLE, 0));
  auto& root = *launch.plan.root;
  TRY_CTX(mount::stage(root.stage_at, root.trees()), "mounts for a user namespace");
  if (launch.user_namespace) {
    TRY(sys::setns(launch.user_namespace.get(), CLONE_NEWUSER, "user namespace"));
    // New capabilities have made it dumpable again where fs.suid_dumpable says so.
    TRY(sys::prctl(PR_SET_DUMPABLE, 0));
  }
  // As its own sibling or, for a reaper above us, as its orphan.
  if (launch.clone_parent)
    args.flags &= ~static_cast<std::uint64_t>(CLONE_PARENT);
  else
    args.flags |= CLONE_PARENT;
  return clone_process(args);
}

// The child comes back from here as from a clone.
Result<Cloned> clone_inside(Launch& launch, const CloneArgs& args) {
  auto [ours, theirs] = TRY(sys::socketpair(SOCK_SEQPACKET));
  const auto middle = TRY(clone_process({}));
  if (middle.pid == 0) {
    auto child = clone_from_between(launch, args);
    if (child.ok() && child->pid == 0) return child;
    const int fd = child.ok() ? child->pidfd.get() : -1;
    auto told =
        child.ok()
            ? sys::sendmsg(theirs.get(), "child", {&fd, 1})
            : sys::sendmsg(theirs.get(),
                           init::encode(init::failure(init::Where::kNamespaces, child.error())));
    ::_exit(told.ok() ? 0 : 1);
  }
  theirs.reset();
  std::array<char, init::kMostText + 64> text{};
  auto received = sys::recvmsg(ours.get(), text);
  TRY(sys::waitid_pidfd(middle.pidfd.get(), WEXITED));
  auto answer = TRY(std::move(received));
  if (answer.fds.empty()) {
    if (answer.size == 0) return Error::make(Code::kProtocol, "the process in between died");
    return init::to_error(TRY(init::decode({text.data(), answer.size})));
  }
  Cloned child;
  child.pidfd = std::move(answer.fds.front());
  child.pid = TRY(pid_of(child.pidfd));
  return child;
}

Result<Cloned> clone_child(Launch& launch) {
  Visit visit;
  auto entered = visit.enter(launch.visits);
  CloneArgs args;
  args.flags =
      launch.clone_flags | (launch.clone_parent ? static_cast<std::uint64_t>(CLONE_PARENT) : 0);
  args.cgroup_fd = launch.cgroup_fd;
  const bool between = launch.plan.user_namespace && launch.plan.root;
  auto cloned = !entered.ok() ? Result<Cloned>{std::move(entered).error()}
                : between     ? clone_inside(launch, args)
                              : clone_process(args);
  if (cloned.ok() && cloned->pid == 0) return cloned;
  if (auto left = visit.leave(); !left.ok()) {
    if (cloned.ok()) sys::pidfd_send_signal(cloned->pidfd.get(), SIGKILL).ignore("it is to go");
    return std::move(left).error();
  }
  if (!cloned.ok()) return explain_clone(std::move(cloned).error(), launch.clone_flags);
  return cloned;
}

Result<> write_maps(const Launch& launch, const Launched& child) {
  const auto process = TRY(open_process(child.pid, child.pidfd));
  TRY(write_id_maps(process.get(), launch.maps.uids, launch.maps.gids));
  TRY(write_time_offsets(process.get(), launch.maps.time_offsets));
  return child.channel.send({.step = init::Step::kMapped, .text = {}, .fd = {}});
}

// With a user namespace: from outside, with the capabilities that the child does not have.
Result<> set_from_outside(const Launch& launch, const Launched& child) {
  const auto& plan = launch.plan;
  if (!plan.user_namespace) return {};
  const auto process = TRY(open_process(child.pid, child.pidfd));
  if (auto set = init::set_limits(plan, child.pid, process.get()); !set.ok())
    return std::move(set).error().step(to_string(init::Where::kLimits));
  if (plan.terminal) return {};
  if (const auto uid = TRY(outside_uid(process.get(), plan.uid)))
    init::give_pipes(plan.stdio, *uid);
  return {};
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
  init::Sequence sequence{{.maps = plan.new_user_namespace || plan.new_time_namespace,
                           .terminal = plan.terminal,
                           .hooks = plan.hooks && plan.hooks->creator_is_asked}};
  while (true) {
    auto message = TRY(child.channel.receive(deadline));
    TRY(sequence.accept(message.step));
    if (message.step == Step::kConsole) {
      child.console = std::move(message.fd);
    } else if (message.step == Step::kNeedMaps) {
      TRY(write_maps(launch, child));
      TRY(sequence.accept(Step::kMapped));
    } else if (message.step == Step::kMounted) {
      TRY(run_hooks(launch, child, deadline));
      TRY(sequence.accept(Step::kHooksRun));
    } else {
      mark_phase("init, up to the gate", decode_phases(message.text));
      return set_from_outside(launch, child);  // ready
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
  mark_phase("clone");
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
