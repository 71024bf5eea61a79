// exec: a second process in a running container, in a leaf cgroup of its own.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/container/container.h"
#include "runtime/container/launch.h"
#include "runtime/container/planner.h"
#include "runtime/container/record.h"
#include "runtime/init/sync.h"

namespace wherry::container {
namespace {

// The namespaces that init has of its own, as setns(2) takes them from its pidfd (Linux 5.8). The
// PID namespace is not among them: it is entered last, by a second process.
int own_namespaces(const oci::Spec& spec) {
  int flags = 0;
  for (const auto& ns : spec.linux_->namespaces) {
    switch (ns.type) {
      case oci::NamespaceType::kNetwork:
        flags |= CLONE_NEWNET;
        break;
      case oci::NamespaceType::kMount:
        flags |= CLONE_NEWNS;
        break;
      case oci::NamespaceType::kIpc:
        flags |= CLONE_NEWIPC;
        break;
      case oci::NamespaceType::kUts:
        flags |= CLONE_NEWUTS;
        break;
      case oci::NamespaceType::kCgroup:
        flags |= CLONE_NEWCGROUP;
        break;
      // With the others in one call: the kernel enters the user namespace first and asks for its
      // capabilities in it or, for those that the host owns, for ours.
      case oci::NamespaceType::kUser:
        flags |= CLONE_NEWUSER;
        break;
      case oci::NamespaceType::kTime:
        flags |= 0x80;  // CLONE_NEWTIME (Linux 5.6)
        break;
      case oci::NamespaceType::kPid:
        break;
    }
  }
  return flags;
}

// process.execCPUAffinity.initial: the CPUs of the creator while it makes the process, which
// inherits them and is born in the container's cgroup.
class InitialAffinity {
 public:
  static Result<InitialAffinity> take(const std::optional<oci::ExecCpuAffinity>& wanted) {
    InitialAffinity affinity;
    if (!wanted || wanted->initial.empty()) return affinity;
    const auto cpus = TRY(cpu_set(wanted->initial, "process.execCPUAffinity.initial"));
    cpu_set_t before;
    if (::sched_getaffinity(0, sizeof before, &before) < 0) return Error::sys("sched_getaffinity");
    if (::sched_setaffinity(0, sizeof cpus, &cpus) < 0)
      return Error::sys("sched_setaffinity", "process.execCPUAffinity.initial");
    affinity.before_ = before;
    return affinity;
  }
  void give_back() {
    if (before_) ::sched_setaffinity(0, sizeof *before_, &*before_);
    before_.reset();
  }

 private:
  std::optional<cpu_set_t> before_;
};

bool has_pid_namespace(const oci::Spec& spec) {
  for (const auto& ns : spec.linux_->namespaces)
    if (ns.type == oci::NamespaceType::kPid) return true;
  return false;
}

Result<Launch> plan_exec(const Record& record, const oci::Spec& spec, const UniqueFd& init,
                         const ExecOptions& options, Deadline deadline) {
  Launch launch;
  auto& plan = launch.plan;
  TRY(check_mapped(options.process, *spec.linux_));
  const auto root =
      sys::openat(AT_FDCWD, cat("/proc/", record.init.pid, "/root"), O_PATH | O_DIRECTORY);
  TRY(plan_process(options.process, root.ok() ? root.value().get() : -1, plan));
  TRY(plan_properties(options.process, *spec.linux_, plan.properties));
  if (const auto& affinity = options.process.exec_cpu_affinity;
      affinity && !affinity->final.empty())
    plan.properties.affinity = TRY(cpu_set(affinity->final, "process.execCPUAffinity.final"));
  TRY(plan_seccomp(spec, options.seccomp_cache, plan, deadline));
  init::Join namespaces;
  namespaces.fd = TRY(sys::dup(init.get()));
  namespaces.type = own_namespaces(spec);
  plan.user_namespace = (namespaces.type & CLONE_NEWUSER) != 0;
  namespaces.name = "namespaces of init";
  plan.joins.push_back(std::move(namespaces));
  plan.id = record.id;
  // Init's own cannot be joined from outside, and the caller's is not for a container (SEC-37).
  plan.new_keyring = true;
  plan.preserve_fds = options.preserve_fds;
  if (has_pid_namespace(spec))
    plan.pid_namespace =
        TRY(sys::openat(AT_FDCWD, cat("/proc/", record.init.pid, "/ns/pid"), O_RDONLY));
  // The process that joins is ours to reap; the one that it makes falls to our own reaper at its
  // end, which has the same effect as CLONE_PARENT.
  plan.child_of_creator = !options.clone_parent;
  launch.clone_parent = options.clone_parent && !plan.pid_namespace;
  return launch;
}

Error not_running() {
  return Error::make(Code::kState, "it is not running");
}

Error out_of_turn(init::Step step) {
  return Error::make(Code::kProtocol, cat("message '", init::to_string(step), "' out of its turn"));
}

// After kReady. The payload's process and who it is: the child itself, or the one that the child
// has made in the pid namespace.
Result<ProcessIdentity> let_go(Launched& child, bool second, const init::Properties& properties,
                               Deadline deadline) {
  const init::Message go{.step = init::Step::kRecorded, .text = {}, .fd = {}};
  if (!second) {
    auto identity = TRY(identify(child.pid));
    TRY(child.channel.send(go));
    return identity;
  }
  TRY(child.channel.send(go));
  auto entered = TRY(child.channel.receive(deadline));
  if (entered.step != init::Step::kEntered) return out_of_turn(entered.step);
  auto identity = TRY(identify(entered.pid));
  if (properties.scheduler_ends_at_fork()) TRY(init::set_scheduling(properties, entered.pid));
  TRY(child.channel.send(go));
  TRY(sys::poll_one(child.pidfd.get(), POLLIN, deadline));
  TRY(sys::waitid_pidfd(child.pidfd.get(), WEXITED));
  child.pidfd = std::move(entered.fd);
  return identity;
}

}  // namespace

Result<Executed> exec(int record_dir, const oci::Spec& spec, ExecOptions options,
                      Deadline deadline) {
  const auto record = TRY(load_record(record_dir));
  auto init = open_pidfd(record.init);
  if (!init.ok()) return not_running();
  if (sys::openat(record_dir, kGateFile, O_WRONLY | O_NONBLOCK | O_NOFOLLOW).ok())
    return Error::make(Code::kState, "it has not been started");
  auto launch = TRY(plan_exec(record, spec, *init, options, deadline));
  UniqueFd null;
  TRY(plan_stdio(options.stdio, launch.plan, null));
  const auto hierarchies = TRY(cgroups::discover());
  const auto place = TRY(cgroups::Place::open(hierarchies, record.cgroup, record.directories));
  if (TRY(place.frozen())) return Error::make(Code::kState, "it is paused");
  launch.plan.placement = TRY(place.open_self_placement());
  const auto leaf_name = cat("exec-", random_hex(6));
  auto leaf = TRY(place.make_leaf(leaf_name));
  launch.cgroup_fd = leaf.get();
  const auto leaf_path = cat(record.cgroup, "/", leaf_name);
  auto run = [&]() -> Result<Executed> {
    const bool second = static_cast<bool>(launch.plan.pid_namespace);
    auto affinity = TRY(InitialAffinity::take(options.process.exec_cpu_affinity));
    auto launched = launch_child(launch, deadline);
    affinity.give_back();
    auto child = TRY(std::move(launched));
    auto identity = let_go(child, second, launch.plan.properties, deadline);
    if (!identity.ok()) {
      abandon(child, deadline);
      return std::move(identity).error();
    }
    return Executed{std::move(identity).value(), std::move(child.pidfd), std::move(child.console),
                    std::move(child.channel),    std::move(leaf),        leaf_path};
  };
  auto executed = run();
  if (executed.ok()) return executed;
  finish_exec(record_dir, leaf_path, Deadline::in(Millis{5000}))
      .ignore("the first error is the one to tell");
  // init may have ended meanwhile, with its namespaces: that is the better answer.
  if (!open_pidfd(record.init).ok()) return not_running();
  return executed;
}

Result<> Executed::outcome(Deadline deadline) const {
  const auto last = channel.receive(deadline);
  if (last.ok()) return out_of_turn(last.value().step);
  if (last.error().code() == Code::kProtocol) return {};  // the end, without a word: execve
  return Error::rebuilt(last.error().code(), last.error().sys_errno(), last.error().message())
      .step(last.error().step());
}

Result<> finish_exec(int, const std::string& leaf_path, Deadline deadline) {
  const auto hierarchies = TRY(cgroups::discover());
  auto leaf = cgroups::Place::open(hierarchies, leaf_path);
  if (!leaf.ok())
    return leaf.error().code() == Code::kNotFound ? Result<>{} : Result<>{std::move(leaf).error()};
  TRY(leaf->kill());
  TRY(leaf->wait_empty(deadline));
  return leaf->remove(deadline);
}

}  // namespace wherry::container
