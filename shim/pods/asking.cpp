#include "shim/pods/asking.h"

#include <poll.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/pods/store_paths.h"

namespace wherry::shim {
namespace {

constexpr Millis kRemoveWait{5'000};
// However short the caller's own wait is: a worker that is well answers within it.
constexpr Millis kShortestAnswerWait{1'000};
constexpr Millis kDeathWait{1'000};
constexpr char kNotThere[] = "reach worker";  // the step of an error that says so

std::string state_words(char state) {
  switch (state) {
    case 'T':
      return "'T' (stopped)";
    case 't':
      return "'t' (traced)";
    case 'D':
      return "'D' (in the kernel)";
    case 'Z':
      return "'Z' (ended)";
    default:
      return cat("'", std::string(1, state), "'");
  }
}

Error no_answer(const Places& places, const std::string& id, Millis waited) {
  const auto view = view_pod(places, id);
  if (!view.ok())
    return Error::rebuilt(view.error().code(), view.error().sys_errno(), view.error().message());
  const auto& status = view.value().status;
  const auto& worker = view.value().shims.worker;
  const auto seconds = std::max<Millis::rep>(1, (waited.count() + 500) / 1000);
  std::string message =
      cat("the worker of pod '", status.name, "' does not answer within ", seconds, " s");
  std::string hint = cat("wherry shim inspect ", as_argument(status));
  if (!open_pidfd(worker).ok())
    return Error::make(Code::kTimeout, cat(message, ": pid ", worker.pid, " is gone")).hint(hint);
  auto state = process_state(worker.pid);
  message += cat(": pid ", worker.pid, " is in state ", state.ok() ? state_words(*state) : "?");
  if (state.ok() && *state == 'T') hint = cat("kill -CONT ", worker.pid, " lets it go on; ", hint);
  return Error::make(Code::kTimeout, message).hint(hint);
}

Error not_running(const PodStatus& status) {
  const bool ended = status.phase == "Succeeded" || status.phase == "Failed";
  return Error::make(Code::kState,
                     cat("pod '", status.name, "' is not running",
                         ended || status.reason.empty() ? "" : ": ", ended ? "" : status.reason))
      .step(kNotThere);
}

// After a hang-up. One that dies is seen to; it may take the kernel a moment.
bool hangs_up_alive(const ProcessIdentity& worker) {
  const auto pidfd = open_pidfd(worker);
  if (!pidfd.ok()) return false;
  const auto ended = sys::poll_one(pidfd.value().get(), POLLIN, Deadline::in(kDeathWait));
  return ended.ok() && ended.value() == 0;
}

Result<Client> ping(const Places& places, const std::string& id, Deadline deadline) {
  const auto state = TRY(sys::openat(AT_FDCWD, pod_path(places.state, id), O_RDONLY | O_DIRECTORY));
  auto client = TRY(Client::connect(state.get(), deadline));
  TRY(client.call("ping", Json::object(), {}, deadline));
  return client;
}

}  // namespace

std::string as_argument(const PodStatus& status) {
  return status.ns == "default" ? status.name : cat("-n ", status.ns, " ", status.name);
}

Result<Client> reach_worker(const Places& places, const std::string& id, Deadline deadline) {
  const auto most = std::clamp(deadline.left(), kShortestAnswerWait, kAnswerWait);
  const auto until = Deadline::in(most);
  while (true) {
    auto client = ping(places, id, until);
    if (client.ok()) return client;
    const auto& error = client.error();
    if (error.code() == Code::kTimeout) return no_answer(places, id, most);
    if (!is_hang_up(error) && error.code() != Code::kNotFound) return client;
    // Nobody listens, or a worker has died over it: its keeper makes another one.
    const auto view = TRY(view_pod(places, id));
    if (!view.alive || error.code() == Code::kNotFound) return not_running(view.status);
    if (until.expired()) return no_answer(places, id, most);
    if (hangs_up_alive(view.shims.worker))
      return Error::make(Code::kBusy, cat("the worker of pod '", view.status.name,
                                          "' takes no more connections"))
          .hint(cat("wherry shim inspect ", as_argument(view.status)));
  }
}

Result<Json> ask(const Places& places, const std::string& id, const std::string& method,
                 const Json& params, Deadline deadline, const std::string& late) {
  while (true) {
    auto client = TRY(reach_worker(places, id, deadline));
    auto reply = client.call(method, params, {}, deadline);
    if (reply.ok()) return reply;
    if (reply.error().code() == Code::kTimeout) {
      auto error = Error::make(Code::kTimeout, late);
      const auto view = view_pod(places, id);
      if (!view.ok()) return error;
      return std::move(error).hint(cat("wherry inspect ", as_argument(view.value().status)));
    }
    if (!is_hang_up(reply.error()) || deadline.expired()) return reply;
    if (!TRY(view_pod(places, id)).alive) return reply;
  }
}

bool is_gone(const Error& error) {
  return is_hang_up(error) || error.step() == kNotThere || error.code() == Code::kNotFound;
}

void ask_to_remove(const Places& places, const std::string& id, Deadline deadline) {
  const auto polite = Deadline::in(kRemoveWait).sooner(deadline.left());
  const auto view = view_pod(places, id);
  if (!view.ok()) return;
  const auto keeper = open_pidfd(view.value().shims.keeper);
  const auto asked = ask(places, id, "remove", Json::object(), polite, "it has not ended in time");
  if (asked.ok() && keeper.ok())
    sys::poll_one(keeper.value().get(), POLLIN, polite).ignore("take_away kills it");
}

}  // namespace wherry::shim
