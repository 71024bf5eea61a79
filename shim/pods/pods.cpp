// Pods: finding, listing, and the verbs that a worker carries out.
#include "shim/pods.h"

#include <sys/socket.h>

#include <algorithm>

#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "oci/config.h"
#include "shim/client/client.h"
#include "shim/client/terminal.h"
#include "shim/pods/asking.h"
#include "shim/pods/ending.h"
#include "shim/pods/starter.h"
#include "shim/pods/store_paths.h"
#include "shim/pods/verdict.h"
#include "shim/protocol/boot_plan.h"
#include "shim/protocol/removal.h"

namespace wherry {
namespace {

using namespace shim;

constexpr Millis kSignalWait{5'000};
constexpr Millis kReleaseWait{5'000};
constexpr std::size_t kIdBytes = 32;

Result<> check_places(const Places& places) {
  for (const auto& [what, path] :
       {std::pair{"--root", &places.root}, std::pair{"--state", &places.state},
        std::pair{"--cgroup-parent", &places.cgroup_parent}})
    if (path->empty() || path->front() != '/' || path->back() == '/')
      return Error::make(
          Code::kInvalid,
          cat(what, " '", *path, "' must be an absolute path without a slash at its end"));
  return {};
}

// Others may not even pass through: below are the files of images, set-user-ID ones among them, and
// the sockets (CVE-2021-41103, CVE-2024-25621).
Result<> open_secret_dir(const std::string& path) {
  const auto dir = TRY(open_private_dir(path));
  const auto st = TRY(sys::fstat(dir.get(), path));
  if ((st.st_mode & 0077) == 0) return {};
  return Error::make(Code::kDenied, cat("'", path, "' is open to others"))
      .hint(cat("chmod 0700 ", path));
}

void complete(pod::Pod& pod) {
  if (pod.id.empty()) pod.id = random_hex(kIdBytes);
  if (pod.created.empty()) pod.created = rfc3339_now();
  if (pod.name.empty()) pod.name = pod.id.substr(0, 12);
}

const ContainerStatus* find_container(const PodStatus& status, const std::string& name) {
  for (const auto& container : status.containers)
    if (name.empty() ? !container.init : container.name == name) return &container;
  return nullptr;
}

Json container_param(const Target& target) {
  Json params = Json::object();
  if (!target.container.empty()) params["container"] = target.container;
  return params;
}

Result<int> known_code(const std::optional<int>& code, const std::string& what) {
  if (code) return *code;
  return Error::make(Code::kState, cat(what, " has ended and its exit code is not known"));
}

// A process that was begun is not begun twice.
Result<Json> exec_reply(Result<Json> reply) {
  if (reply.ok() || !is_hang_up(reply.error())) return reply;
  return Error::make(
      Code::kState, "the pod's worker has ended while the process ran: its exit code is not known");
}

Result<int> code_in(const Json& reply, const std::string& what) {
  const auto code = json_int(reply, "exitCode");
  return known_code(code.ok() ? std::optional{static_cast<int>(code.value())} : std::nullopt, what);
}

// After the worker's last word: its keeper ends, and the cgroup that both were in can go.
void clear_up(const Places& places, const std::string& id, const ProcessIdentity& keeper) {
  if (const auto pidfd = open_pidfd(keeper); pidfd.ok())
    sys::poll_one(pidfd.value().get(), POLLIN, Deadline::in(kReleaseWait))
        .ignore("remove tells what is left");
  remove_pod_cgroups(pod_cgroup(places, id), Deadline::in(kReleaseWait))
      .ignore("`wherry leaks` shows what is left");
}

}  // namespace

Result<Pods> Pods::open(Places places) {
  TRY(check_places(places));
  TRY_CTX(open_secret_dir(places.root), "store");
  TRY_CTX(open_secret_dir(places.state), "state");
  return Pods{std::move(places)};
}

// ---- run
// ---------------------------------------------------------------------------------------------------------

Result<PodStatus> Pods::run(pod::Pod pod, Deadline deadline) {
  complete(pod);
  const auto launched = TRY(launch(places_, pod, -1));
  auto status = TRY(await_start(places_, pod, launched, deadline)).status;
  TRY(check_started(status));
  return status;
}

Result<int> Pods::run_attached(pod::Pod pod, std::array<int, 3> stdio) {
  complete(pod);
  if (pod.containers.empty()) return Error::make(Code::kInvalid, "the pod has no container");
  const auto& primary = pod.containers.front();
  auto [ours, theirs] = TRY(sys::socketpair(SOCK_SEQPACKET));
  RelayOptions options;
  options.stdio = stdio;
  options.interactive = primary.stdin_open;
  options.tty = primary.tty;
  if (const auto size = window_size(stdio[0]); size && primary.tty)
    TRY(send_size(ours.get(),
                  *size));  // waits in the socket for the worker: known before the first byte
  const auto launched = TRY(launch(places_, pod, theirs.get()));
  theirs.reset();
  const auto answer = TRY(await_start(places_, pod, launched, Deadline::never()));
  TRY(check_started(answer.status));
  if (!primary.tty)
    options.on_signal = [&](int signum) {
      kill({pod.id, primary.name}, std::to_string(signum), Deadline::in(kSignalWait))
          .ignore("it may have ended");
    };
  const auto outcome = TRY(run_relay(std::move(ours), options));
  using How = RelayOutcome::How;
  switch (outcome.how) {
    case How::kExited:
      clear_up(places_, pod.id, answer.shims.keeper);
      return known_code(outcome.exit_code, cat("container '", primary.name, "'"));
    case How::kDetached:
      return 0;
    case How::kDropped:  // the rest of the output is in the log only; the exit code is still wanted
      return wait({pod.id, primary.name}, Deadline::never());
    case How::kClosed:
      break;
  }
  return Error::make(Code::kProtocol, cat("the shim of pod '", pod.name, "' has gone away"));
}

Result<int> Pods::attach(const Target& target, std::array<int, 3> stdio) {
  const auto pod = TRY(load_pod(places_, target.pod_id));
  const auto view = TRY(view_pod(places_, target.pod_id));
  const auto* container = find_container(view.status, target.container);
  if (container == nullptr)
    return Error::make(Code::kNotFound, cat("the pod has no container '", target.container, "'"));
  const auto found = std::find_if(pod.containers.begin(), pod.containers.end(),
                                  [&](const auto& one) { return one.name == container->name; });
  auto [ours, theirs] = TRY(sys::socketpair(SOCK_SEQPACKET));
  RelayOptions options;
  options.stdio = stdio;
  if (found != pod.containers.end()) {
    options.interactive = found->stdin_open;
    options.tty = found->tty;
  }
  auto client = TRY(reach_worker(places_, target.pod_id, Deadline::never()));
  TRY(client.call("attach", {{"container", container->name}}, std::array{theirs.get()},
                  Deadline::in(kAnswerWait)));
  theirs.reset();
  const auto outcome = TRY(run_relay(std::move(ours), options));
  if (outcome.how == RelayOutcome::How::kDetached) return 0;
  if (outcome.how == RelayOutcome::How::kExited)
    return known_code(outcome.exit_code, cat("container '", container->name, "'"));
  return wait({target.pod_id, container->name}, Deadline::never());
}

// ---- finding
// -----------------------------------------------------------------------------------------------------

Result<Target> Pods::resolve(const std::string& text, const std::string& ns) const {
  Target target;
  const auto slash = text.find('/');
  const auto pod = text.substr(0, slash);
  if (slash != std::string::npos) target.container = text.substr(slash + 1);
  if (pod.empty()) return Error::make(Code::kInvalid, cat("'", text, "' names no pod"));
  if (check_name("the name", pod).ok())
    if (const auto id = TRY(id_of_name(places_, ns, pod))) target.pod_id = *id;
  if (target.pod_id.empty()) {
    std::vector<std::string> matching;
    for (auto& id : TRY(all_ids(places_)))
      if (id.compare(0, pod.size(), pod) == 0) matching.push_back(std::move(id));
    if (matching.size() > 1)
      return Error::make(Code::kInvalid,
                         cat("'", pod, "' is the beginning of ", matching.size(), " ids"));
    if (matching.empty())
      return Error::make(Code::kNotFound,
                         cat("there is no pod '", pod, "' in namespace '", ns, "'"))
          .hint(TRY(where_else(places_, pod)));
    target.pod_id = matching.front();
  }
  if (!target.container.empty()) {
    const auto record = TRY(load_pod(places_, target.pod_id));
    const auto has = [&](const auto& list) {
      return std::any_of(list.begin(), list.end(),
                         [&](const auto& one) { return one.name == target.container; });
    };
    if (!has(record.containers) && !has(record.init_containers))
      return Error::make(Code::kNotFound,
                         cat("pod '", pod, "' has no container '", target.container, "'"));
  }
  return target;
}

Result<std::vector<PodStatus>> Pods::list() const {
  std::vector<PodStatus> out;
  for (const auto& id : TRY(all_ids(places_))) {
    auto view = view_pod(places_, id);
    if (view.ok()) {
      out.push_back(std::move(view.value().status));
    } else if (view.error().code() != Code::kNotFound) {  // removed in between: nothing to tell
      PodStatus broken;
      broken.id = id;
      broken.phase = "Unknown";
      broken.sandbox = "NOTREADY";
      broken.reason = view.error().message();
      out.push_back(std::move(broken));
    }
  }
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.created < b.created; });
  return out;
}

Result<PodStatus> Pods::status(const Target& target) const {
  return TRY(view_pod(places_, target.pod_id)).status;
}

Result<Json> Pods::inspect(const Target& target) const {
  const auto view = TRY(view_pod(places_, target.pod_id));
  Json out = to_json(view.status);
  out["spec"] = pod::to_json(TRY(load_pod(places_, target.pod_id)));
  Json configs = Json::object();
  for (const auto& container : view.status.containers) {
    const auto path = cat(pod_path(places_.state, target.pod_id), "/", kContainersDir, "/",
                          container.name, "/config.json");
    const auto text = read_file_at(AT_FDCWD, path, 16 * 1024 * 1024);
    if (!text.ok()) continue;
    if (auto config = parse_json(text.value(), "config.json"); config.ok())
      configs[container.name] = std::move(config).value();
  }
  out["configs"] = std::move(configs);
  return out;
}

// ---- verbs
// -------------------------------------------------------------------------------------------------------

Result<int> Pods::wait(const Target& target, Deadline deadline,
                       std::optional<std::chrono::seconds> asked) const {
  const auto view = TRY(view_pod(places_, target.pod_id));
  const auto& name = target.container;
  if (!name.empty() && find_container(view.status, name) == nullptr)
    return Error::make(Code::kNotFound, cat("the pod has no container '", name, "'"));
  if (!view.alive) return code_at_the_end(view.status, name);
  const auto late = cat(words_for(view.status, name), " still runs",
                        asked ? cat(" after ", asked->count(), " s") : "");
  auto reply = ask(places_, target.pod_id, "wait", container_param(target), deadline, late);
  if (!reply.ok() && !is_gone(reply.error())) return std::move(reply).error();
  if (reply.ok())
    if (const auto code = json_int(reply.value(), "exitCode"); code.ok())
      return static_cast<int>(code.value());
  // It has ended before it could say so, or nobody can tell: what it wrote last is there.
  const auto last = view_pod(places_, target.pod_id);
  return code_at_the_end(last.ok() ? last.value().status : view.status, name);
}

Result<> Pods::kill(const Target& target, const std::string& signal, Deadline deadline) const {
  Json params = container_param(target);
  params["signal"] = signal;
  auto client = TRY(reach_worker(places_, target.pod_id, deadline));
  TRY(client.call("kill", params, {}, deadline));
  return {};
}
Result<int> Pods::exec(const Target& target, ExecRequest request, Deadline deadline) {
  Json params = container_param(target);
  params["argv"] = request.argv;
  params["env"] = request.env;
  params["tty"] = request.tty;
  if (!request.user.empty()) params["user"] = request.user;
  if (!request.cwd.empty()) params["cwd"] = request.cwd;
  auto client = TRY(reach_worker(places_, target.pod_id, deadline));
  if (!request.tty) {
    const auto null = TRY(sys::openat(AT_FDCWD, "/dev/null", O_RDONLY));
    const std::array<int, 3> fds{request.interactive ? request.stdio[0] : null.get(),
                                 request.stdio[1], request.stdio[2]};
    return code_in(TRY(exec_reply(client.call("exec", params, fds, deadline))), "the process");
  }
  auto [ours, theirs] = TRY(sys::socketpair(SOCK_SEQPACKET));
  if (const auto size = window_size(request.stdio[0])) {
    params["rows"] = size->rows;
    params["columns"] = size->columns;
  }
  TRY(client.send("exec", params, std::array{theirs.get()}, Deadline::in(kAnswerWait)));
  theirs.reset();
  RelayOptions options;
  options.stdio = request.stdio;
  options.interactive = request.interactive;
  options.tty = true;
  const auto outcome = TRY(run_relay(std::move(ours), options));
  if (outcome.how == RelayOutcome::How::kDetached) return 0;
  return code_in(TRY(exec_reply(client.receive(deadline))), "the process");
}

Result<> Pods::stop(const Target& target, std::optional<std::chrono::seconds> grace,
                    Deadline deadline) {
  const auto view = TRY(view_pod(places_, target.pod_id));
  if (!view.alive) {
    TRY(destroy_remains(places_, target.pod_id, deadline));
    return mark_ended(places_, view);
  }
  Json params = container_param(target);
  if (grace) params["grace"] = grace->count();
  auto reply = ask(places_, target.pod_id, "stop", params, deadline,
                   cat(words_for(view.status, target.container), " has not ended in time"));
  // That it is gone is what its end looks like to one who came late.
  if (!reply.ok() && !is_gone(reply.error())) return std::move(reply).error();
  if (!target.container.empty()) return {};
  TRY(await_release(places_, target.pod_id, deadline));
  return remove_pod_cgroups(pod_cgroup(places_, target.pod_id), deadline);
}

Result<> Pods::remove(const Target& target, Force force, Deadline deadline) {
  auto view = TRY(view_pod(places_, target.pod_id));
  auto pod = load_pod(places_, target.pod_id);
  if (view.alive && force == Force::kNo && has_ended(view.status)) {
    // Its shim is about to go: whoever was told of the end may remove the pod.
    await_release(places_, target.pod_id, Deadline::in(kReleaseWait)).ignore("refused below");
    view = TRY(view_pod(places_, target.pod_id));
  }
  if (view.alive && force == Force::kNo)
    return Error::make(Code::kState,
                       cat("pod '", view.status.name, "' is ",
                           view.status.phase == "Running" ? "running" : "not stopped"))
        .hint(cat("wherry stop ", view.status.name, ", or rm -f"));
  if (!view.alive && force == Force::kNo)
    if (const auto running = TRY(still_running(places_, target.pod_id)); !running.empty())
      return Error::make(Code::kState,
                         cat("pod '", view.status.name, "' has lost its shim and container ",
                             running.front(), " still runs"))
          .hint(cat("wherry rm -f ", view.status.name));
  if (view.alive) {
    ask_to_remove(places_, target.pod_id, deadline);
  }
  if (!pod.ok()) {  // an unreadable record is removed like any other; the status tells its name
    pod::Pod unreadable;
    unreadable.id = target.pod_id;
    unreadable.name = view.status.name;
    unreadable.ns = view.status.ns;
    pod = std::move(unreadable);
  }
  return take_away(places_, pod.value(), deadline);
}

}  // namespace wherry
