// wherry-shim: the worker of one pod. Started by its keeper and never by hand.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/protocol/removal.h"
#include "shim/worker/server.h"
#include "shim/worker/supervisor.h"
#include "shim/worker/surroundings.h"

namespace wherry::shim {
namespace {

constexpr Millis kHandOverWait{10'000};
constexpr Millis kCgroupWait{2'000};
constexpr Millis kLastReplyWait{5'000};
constexpr std::size_t kLongestRecord = 16 * 1024 * 1024;

Result<UniqueFd> need(KeeperLink& keeper, const char* name) {
  auto fd = keeper.take(name);
  if (!fd) return Error::make(Code::kProtocol, cat("the keeper holds no '", name, "'"));
  return std::move(*fd);
}

void log_to(int state_dir) {
  auto file = sys::openat(state_dir, "shim.log", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  if (!file.ok()) return;
  static UniqueFd sink;
  sink = std::move(file).value();
  set_log_sink({sink.get(), LogLevel::kWarning, LogFormat::kText});
}

Result<Context> make_context(KeeperLink keeper) {
  Context context{TRY(EventLoop::create()), std::move(keeper), {}, {}, {}, {}};
  context.state_dir = TRY(need(context.keeper, kStateFd));
  context.root_dir = TRY(need(context.keeper, kRootFd));
  log_to(context.state_dir.get());
  auto plan = read_file_at(context.state_dir.get(), kPlanFile, kLongestRecord);
  // A client took the whole pod away, and the worker before us with it: nothing is left to keep.
  if (!plan.ok() && plan.error().code() == Code::kNotFound && context.keeper.runs() > 1)
    context.keeper.bye();
  context.plan = TRY(boot_plan_from_json(TRY(parse_json(TRY(std::move(plan)), kPlanFile))));
  return context;
}

// False: the record is gone, which means that a worker before us was removing the pod.
Result<bool> load_pod(Context& context) {
  const auto text = read_file_at(context.root_dir.get(), kPodFile, kLongestRecord);
  if (!text.ok() && text.error().code() == Code::kNotFound && context.keeper.runs() > 1)
    return false;
  context.pod = TRY(pod::pod_from_json(TRY(
      parse_json(TRY(read_file_at(context.root_dir.get(), kPodFile, kLongestRecord)), kPodFile))));
  return true;
}

Result<> remove_files(const Context& context) {
  detach_memory_volumes(context);
  return remove_pod_files(context.plan.root, context.plan.state, context.plan.id, context.plan.ns,
                          context.plan.name);
}

// The cgroup that we are in can only go when we are not in it any more. A move by hand costs the
// kernel 10 ms, so a client in the foreground, which outlives us, does without it.
void remove_cgroups(Context& context) {
  const auto remove = [&]() -> Result<> {
    if (context.keeper.alive()) TRY(leave_pod_cgroup(context.keeper.keeper_pid()));
    TRY(leave_pod_cgroup(::getpid()));
    return remove_pod_cgroups(context.plan.cgroup_parent + "/" + context.plan.id,
                              Deadline::in(kCgroupWait));
  };
  const auto removed = remove();
  if (!removed.ok()) LOG(kWarning, "cgroups: ", removed.error().message());
}

// In this order: what the pod had on the host goes first, and who waits for its end hears of it
// last.
Result<> wind_up(Context& context, Supervisor& supervisor, Server& server) {
  const bool to_client = supervisor.has_foreground();
  const bool failed = supervisor.failed_to_start();
  if (supervisor.removed() && !failed) {
    const auto removed = remove_files(context);
    if (!removed.ok()) LOG(kError, removed.error().message());
  }
  if (!to_client && !failed) remove_cgroups(context);
  supervisor.answer_failure();  // its reader removes what is left
  supervisor.tell_end_waiters();
  supervisor.release_foreground();
  server.close();
  const auto deadline = Deadline::in(kLastReplyWait);
  while (supervisor.has_waited_clients() ||
         ((supervisor.has_clients() || !server.idle()) && !deadline.expired()))
    TRY(context.loop.run_once(supervisor.has_waited_clients() ? Deadline::never() : deadline));
  context.keeper.bye();
  return {};
}

Result<> work(Context& context) {
  auto supervisor =
      TRY(context.keeper.runs() > 1 &&
                  read_file_at(context.state_dir.get(), kMachineFile, kLongestRecord).ok()
              ? Supervisor::recovered(context)
              : Supervisor::fresh(context));
  auto server = TRY(Server::open(*supervisor, TRY(need(context.keeper, kListenFd))));
  TRY(context.loop.watch(context.keeper.fd(), EPOLLIN,
                         [&, fd = context.keeper.fd()](std::uint32_t) {
                           supervisor->on_keeper();
                           if (!context.keeper.alive()) context.loop.unwatch(fd);
                         }));
  supervisor->begin();
  while (!supervisor->ended()) TRY(context.loop.run_once(Deadline::never()));
  return wind_up(context, *supervisor, *server);
}

Result<> run() {
  auto keeper = TRY(KeeperLink::open(UniqueFd{keeper::kWorkerSocket}, Deadline::in(kHandOverWait)));
  auto context = TRY(make_context(std::move(keeper)));
  if (!TRY(load_pod(context))) {
    TRY(remove_files(context));
    remove_cgroups(context);
    context.keeper.bye();
    return {};
  }
  auto worked = work(context);
  if (worked.ok() || context.keeper.runs() > 1) return worked;
  // Nothing has been made yet, or what was made is in the records: the starter takes it away.
  if (auto ready = context.keeper.take(kReadyFd)) {
    sys::write_all(ready->get(), dump_json({{"error", error_to_json(worked.error())}}) + "\n")
        .ignore("the starter has gone away");
    context.keeper.bye();
  }
  return worked;
}

}  // namespace
}  // namespace wherry::shim

int main() {
  ::umask(077);
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_NAME, "wherry-shim");
  try {
    const auto done = wherry::shim::run();
    if (done.ok()) return 0;
    LOG(kError, done.error().message());
  } catch (const std::exception& error) {
    LOG(kError, "unexpected: ", error.what());
  }
  return 1;
}
