#include "shim/pods/verdict.h"

#include <algorithm>

#include "base/text.h"
#include "shim/pods/asking.h"

namespace wherry::shim {
namespace {

const ContainerStatus* find(const PodStatus& status, const std::string& name) {
  const auto found = std::find_if(status.containers.begin(), status.containers.end(),
                                  [&](const auto& one) { return one.name == name; });
  return found == status.containers.end() ? nullptr : &*found;
}

const ContainerStatus* primary_of(const PodStatus& status) {
  const auto found = std::find_if(status.containers.begin(), status.containers.end(),
                                  [](const auto& one) { return !one.init; });
  return found == status.containers.end() ? nullptr : &*found;
}

// The init container over which the others did not get their turn.
const ContainerStatus* failed_init(const PodStatus& status) {
  const auto found =
      std::find_if(status.containers.begin(), status.containers.end(), [](const auto& one) {
        return one.init && one.state == "exited" && !one.started.empty() && one.exit_code != 0;
      });
  return found == status.containers.end() ? nullptr : &*found;
}

bool never_ran(const ContainerStatus& container) {
  return container.started.empty() && !container.exit_code && container.state != "unknown";
}

std::string logs_hint(const PodStatus& status) {
  const auto* init = failed_init(status);
  return init == nullptr ? "" : cat("wherry logs ", as_argument(status), "/", init->name);
}

}  // namespace

bool has_ended(const PodStatus& status) {
  return status.phase == "Succeeded" || status.phase == "Failed";
}

std::string words_for(const PodStatus& status, const std::string& container) {
  const auto pod = cat("pod '", status.name, "'");
  return container.empty() ? pod : cat("container '", container, "' of ", pod);
}

Result<> check_started(const PodStatus& status) {
  if (!has_ended(status)) return {};
  const bool all_ran = std::none_of(status.containers.begin(), status.containers.end(),
                                    [](const auto& one) { return !one.init && never_ran(one); });
  if (all_ran) return {};
  const auto why =
      status.reason.empty() ? "it was stopped before all of it had started" : status.reason;
  return Error::make(Code::kState, cat("pod '", status.name, "': ", why)).hint(logs_hint(status));
}

Error never_started(const PodStatus& status, const std::string& container) {
  // One that may still get its turn has only not got it yet.
  const bool over = has_ended(status) || status.sandbox != "READY";
  return Error::make(Code::kNotFound, cat("container '", container, "' ",
                                          over ? "never started" : "has not started yet"))
      .hint(logs_hint(status));
}

Result<int> code_at_the_end(const PodStatus& status, const std::string& container) {
  const auto* one = container.empty() ? primary_of(status) : find(status, container);
  auto code = one != nullptr && one->state == "exited" ? one->exit_code : std::nullopt;
  if (container.empty() && status.exit_code) code = status.exit_code;
  if (code) return *code;
  if (one != nullptr && never_ran(*one))
    return Error::make(Code::kState, never_started(status, one->name).message())
        .hint(logs_hint(status));
  return Error::make(
      Code::kState, cat(words_for(status, container), " has ended and its exit code is not known"));
}

}  // namespace wherry::shim
