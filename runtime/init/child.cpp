#include "runtime/init/child.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/text.h"
#include "base/timing.h"
#include "cgroups/cgroups.h"
#include "mount/stage.h"
#include "runtime/init/credentials.h"
#include "runtime/init/hooks.h"
#include "runtime/init/payload.h"
#include "runtime/init/process.h"

namespace wherry::init {
namespace {

constexpr auto kCreatorAnswers = Millis{60000};
constexpr int kNewTime = 0x80;  // CLONE_NEWTIME (Linux 5.6); sched.h has it or not

// Which step it is at, for errors and for --timing.
class Progress {
 public:
  void at(Where where) {
    mark_phase(to_string(where_));
    where_ = where;
  }
  Where now() const { return where_; }

 private:
  Where where_ = Where::kJoin;
};

Result<> close_to_others(const Plan& plan, int channel) {
  // Before joining: after it a process in there may look at us (CVE-2016-9962).
  TRY(sys::prctl(PR_SET_DUMPABLE, 0));
  TRY(keep_only_planned(plan, channel));
  return {};
}

Result<> join(Plan& plan) {
  // For the second process of an exec alone, and by the host's rights: the pid namespace need not
  // belong to the user namespace that is entered next.
  if (plan.pid_namespace) TRY(sys::setns(plan.pid_namespace.get(), CLONE_NEWPID, "pid namespace"));
  for (auto& ns : plan.joins) {
    TRY(sys::setns(ns.fd.get(), ns.type, ns.name));
    ns.fd.reset();
  }
  return {};
}

// What a process cannot write for itself: the maps of its user namespace, and, since it is not
// dumpable, nothing below its own /proc.
Result<> get_maps(const Plan& plan, const Channel& channel) {
  if (plan.new_time_namespace) TRY(sys::unshare(kNewTime, "time namespace"));
  if (plan.new_user_namespace || plan.new_time_namespace) {
    TRY(channel.send({.step = Step::kNeedMaps, .text = {}, .fd = {}}));
    const auto answer = TRY(channel.receive(Deadline::in(kCreatorAnswers)));
    if (answer.step != Step::kMapped)
      return Error::make(Code::kProtocol,
                         cat("message '", to_string(answer.step), "' out of its turn"));
  }
  if (plan.user_namespace) TRY(become_root_inside());
  if (plan.new_ipc_namespace) TRY(sys::unshare(CLONE_NEWIPC, "ipc namespace"));
  if (!plan.new_time_namespace) return {};
  // unshare(2) is for children only; this enters it, which also fixes the offsets
  // (time_namespaces(7)).
  const auto own = TRY(sys::openat(AT_FDCWD, "/proc/self/ns/time_for_children", O_RDONLY));
  return sys::setns(own.get(), kNewTime, "time namespace");
}

Result<> place(Plan& plan) {
  TRY(cgroups::place_self(plan.placement));
  plan.placement.clear();
  // After placement: a cgroup namespace takes the process's groups of this moment as its roots.
  if (plan.new_cgroup_namespace) return sys::unshare(CLONE_NEWCGROUP, "cgroup namespace");
  return {};
}

Result<> prepare_working_directory(const Plan& plan, int root) {
  // As runc does: a missing one is made, so that WORKDIR of an image without it works. A read-only
  // or odd place is told later by the chdir that needs it.
  make_dirs(root, plan.cwd).ignore("chdir tells");
  return {};
}

// runtime-spec, config.md: prestart and createRuntime run in the namespaces of the creator, then
// createContainer in ours, with a path that is the creator's; all before the root is entered.
Result<> run_create_hooks(const HookPlan& hooks, const Channel& channel) {
  if (!hooks.creator_is_asked) return {};
  TRY(channel.send({.step = Step::kMounted, .text = {}, .fd = {}}));
  // The creator's hooks may take as long as they like: its end is the end of the channel.
  const auto answer = TRY(channel.receive(Deadline::never()));
  if (answer.step != Step::kHooksRun)
    return Error::make(Code::kProtocol,
                       cat("message '", to_string(answer.step), "' out of its turn"));
  auto state = hooks.state;
  state.status = oci::Status::kCreating;
  state.pid = ::getpid();
  return run_hooks("createContainer", hooks.create_container, state, "/",
                   Deadline::in(hooks.create_wait));
}

Result<> build_root(Plan& plan, Progress& progress, const Channel& channel, UniqueFd& terminal) {
  auto& root = *plan.root;
  const int fd = root.root.get();
  progress.at(Where::kMounts);
  TRY(mount::do_mounts(fd, root.mounts, root.cgroups));
  progress.at(Where::kDevices);
  TRY(plan.user_namespace ? mount::bind_devices(fd, root.devices, root.device_binds)
                          : mount::make_devices(fd, root.devices));
  if (plan.terminal) {
    progress.at(Where::kConsole);
    auto console = TRY(mount::make_console(fd, plan.console_size, plan.uid));
    terminal = std::move(console.slave);
    TRY(channel.send({.step = Step::kConsole, .text = {}, .fd = std::move(console.master)}));
  }
  if (plan.hooks) {
    progress.at(Where::kHooks);
    TRY(run_create_hooks(*plan.hooks, channel));
  }
  progress.at(Where::kMasks);
  TRY(prepare_working_directory(plan, fd));
  TRY(mount::mask_paths(fd, root.masked_paths));
  TRY(mount::make_read_only(fd, root.readonly_paths));
  if (root.read_only) TRY(mount::make_root_read_only(fd));
  progress.at(Where::kEnterRoot);
  TRY(mount::enter_root(fd));
  return mount::set_root_propagation(root.propagation, root.propagation_recursive);
}

// The table of contents: everything that can fail before the gate, in order.
Result<> set_up(Plan& plan, const Channel& channel, Progress& progress) {
  progress.at(Where::kJoin);
  TRY(close_to_others(plan, channel.fd()));
  UniqueFd procfs;
  if (!plan.root) procfs = TRY(open_procfs(plan));  // of an exec: before it is in there
  TRY(join(plan));
  UniqueFd attach_at;
  // Before the ids of a user namespace are taken, to which the way there may be closed.
  if (plan.root && !plan.root->stage_at.empty())
    TRY(mount::take_staged(plan.root->stage_at, plan.root->trees()));
  if (plan.root && !plan.root->attach_at.empty())
    attach_at = TRY(sys::openat(AT_FDCWD, plan.root->attach_at, O_PATH | O_DIRECTORY));
  progress.at(Where::kMaps);
  TRY(get_maps(plan, channel));
  progress.at(Where::kSession);
  TRY(new_session());
  if (plan.root) {
    progress.at(Where::kIsolate);
    TRY(mount::isolate(plan.root->propagation));
    procfs = TRY(open_procfs(plan));
    progress.at(Where::kRoot);
    TRY(mount::attach_root(plan.root->root.get(), attach_at.get()));
  }
  progress.at(Where::kPlace);
  TRY(place(plan));
  UniqueFd terminal;
  if (plan.root) {
    TRY(build_root(plan, progress, channel, terminal));
  } else if (plan.terminal) {
    progress.at(Where::kConsole);
    terminal = TRY(open_exec_terminal(plan, channel));
  }
  progress.at(Where::kHostname);
  TRY(set_names(plan));
  if (plan.new_network) TRY(bring_up_loopback());
  progress.at(Where::kSysctl);
  TRY(set_sysctls(plan, procfs));
  progress.at(Where::kLimits);
  TRY(set_own(plan, procfs));
  procfs.reset();
  progress.at(Where::kKeyring);
  TRY(new_keyring(plan));
  progress.at(Where::kWorkingDirectory);
  TRY(enter_working_directory(plan.cwd));
  progress.at(Where::kDescriptors);
  return arrange_descriptors(plan, channel.fd(), terminal);
}

[[noreturn]] void give_up(const Channel& channel, Where where, const Error& error) {
  channel.send(failure(where, error)).ignore("the creator is gone: nobody is left to tell");
  ::_exit(1);
}

}  // namespace

void become_container(Plan& plan, Channel& channel) {
  restart_timing();
  Progress progress;
  ::umask(0);  // modes of what is made in the root are exact
  if (auto done = set_up(plan, channel, progress); !done.ok())
    give_up(channel, progress.now(), done.error());
  const auto program = find_program(plan);
  if (!program.ok()) give_up(channel, Where::kExec, program.error());
  progress.at(Where::kReady);
  const auto times = timing() ? encode_phases(phases()) : "";
  if (!channel.send({.step = Step::kReady, .where = Where::kReady, .text = times, .fd = {}}).ok())
    ::_exit(1);
  // The creator's end means that there is no record of us: nobody could ever find us again.
  const auto recorded = channel.receive(Deadline::in(kCreatorAnswers));
  if (!recorded.ok() || recorded.value().step != Step::kRecorded) ::_exit(1);
  if (plan.gate) {
    channel.close();
    run_behind_gate(plan, program.value());
  }
  if (plan.pid_namespace) run_in_pid_namespace(plan, program.value(), channel);
  run_at_once(plan, program.value(), channel);
}

}  // namespace wherry::init
