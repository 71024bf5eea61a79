// Requests to a worker, each with a bound on how long it may leave the asker without a sign of
// life. A worker answers `ping` at once, whatever it waits for on behalf of others.
#pragma once
#include <string>

#include "base/clock.h"
#include "base/json_fwd.h"
#include "base/result.h"
#include "shim/client/client.h"
#include "shim/pods.h"

namespace wherry::shim {

inline constexpr Millis kAnswerWait{10'000};

// A connection over which the worker has answered. What is asked over it is never carried out later
// by a worker that had been given up. kState: the pod is not running. kTimeout, after kAnswerWait
// or at the deadline: names the worker, its pid and its state.
Result<Client> reach_worker(const Places& places, const std::string& id, Deadline deadline);
// A request that may be made twice: a worker that dies over it is replaced by its keeper. `late` is
// the message when the deadline passes with the worker alive.
Result<Json> ask(const Places& places, const std::string& id, const std::string& method,
                 const Json& params, Deadline deadline, const std::string& late);
// The worker ended while it was asked, or was not there any more: for `stop` and `wait` the pod has
// ended then.
bool is_gone(const Error& error);
// The worker ends what it can in good order and tells of it; to be followed by take_away(), which
// does the rest.
void ask_to_remove(const Places& places, const std::string& id, Deadline deadline);

// "web", or "-n ns1 web" outside the default namespace: as it stands in a command of a hint.
std::string as_argument(const PodStatus& status);

}  // namespace wherry::shim
