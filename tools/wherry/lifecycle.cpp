// wait, stop, rm, kill: each target in turn; the first error is the exit status, and the others are
// still done.
#include <functional>

#include "base/json.h"
#include "base/text.h"
#include "tools/wherry/output.h"
#include "tools/wherry/verbs.h"

namespace wherry::cli {
namespace {

constexpr std::chrono::seconds kAfterGrace{30}, kRemoveWait{60};
constexpr std::chrono::seconds kLongestWait{365 * 24 * 3600};
constexpr Millis kCallWait{10'000};

// kNotFound is no error where the aim is that there is no such pod.
enum class Missing { kIsError, kIsFine };

Result<int> for_each(const Pods& pods, const TargetOptions& options, Missing missing,
                     const std::function<Result<>(const Target&, const std::string&)>& act) {
  int status = 0;
  for (const auto& text : options.targets) {
    const auto done = [&]() -> Result<> {
      auto target = pods.resolve(text, options.ns);
      if (!target.ok() && missing == Missing::kIsFine && target.error().code() == Code::kNotFound)
        return {};
      return act(TRY(std::move(target)), text);
    }();
    if (done.ok()) continue;
    print_error(done.error());
    status = 125;
  }
  return status;
}

// How long the pod itself gives: what `stop` waits for must be longer.
std::chrono::seconds grace_of(const Pods& pods, const Target& target) {
  const auto all = pods.inspect(target);
  const auto seconds = all.ok() && all.value().contains("spec")
                           ? json_int_or(all.value()["spec"], "graceSeconds", 30)
                           : 30;
  return std::chrono::seconds{seconds};
}

}  // namespace

Result<int> wait(const Global& global, const WaitOptions& options) {
  std::optional<std::chrono::seconds> most;
  if (options.timeout) {
    if (*options.timeout < 0 || *options.timeout > kLongestWait.count())
      return Error::make(Code::kInvalid, cat("--timeout: ", *options.timeout,
                                             " is not between 0 seconds and a year"));
    most = std::chrono::seconds{*options.timeout};
  }
  const auto pods = TRY(Pods::open(global.places));
  const auto deadline = most ? Deadline::in(*most) : Deadline::never();
  return for_each(pods, options, Missing::kIsError,
                  [&](const Target& target, const std::string&) -> Result<> {
                    return print_line(std::to_string(TRY(pods.wait(target, deadline, most))));
                  });
}

Result<int> stop(const Global& global, const StopOptions& options) {
  if (options.grace && *options.grace < 0)
    return Error::make(Code::kInvalid, cat("-t: ", *options.grace, " is negative"));
  auto pods = TRY(Pods::open(global.places));
  return for_each(pods, options, Missing::kIsError,
                  [&](const Target& target, const std::string& text) -> Result<> {
                    std::optional<std::chrono::seconds> grace;
                    if (options.grace) grace = std::chrono::seconds{*options.grace};
                    const auto longest = grace.value_or(grace_of(pods, target)) + kAfterGrace;
                    TRY_CTX(pods.stop(target, grace, Deadline::in(longest)),
                            cat("stop '", text, "'"));
                    return print_line(text);
                  });
}

Result<int> remove(const Global& global, const RemoveOptions& options) {
  // With -f, so that `rm -f $(wherry ps -aq ...)` does not fail when there is none.
  if (options.targets.empty() && !options.force)
    return Error::make(Code::kInvalid, "rm: POD is required").hint("wherry rm --help");
  auto pods = TRY(Pods::open(global.places));
  return for_each(
      pods, options, options.force ? Missing::kIsFine : Missing::kIsError,
      [&](const Target& target, const std::string& text) -> Result<> {
        if (!target.container.empty())
          return Error::make(Code::kUnsupported,
                             cat("rm: '", text, "' is a container; a pod is removed whole"));
        TRY_CTX(pods.remove(target, options.force ? Pods::Force::kYes : Pods::Force::kNo,
                            Deadline::in(kRemoveWait)),
                cat("remove '", text, "'"));
        return print_line(text);
      });
}

Result<int> kill(const Global& global, const KillOptions& options) {
  const auto pods = TRY(Pods::open(global.places));
  return for_each(pods, options, Missing::kIsError,
                  [&](const Target& target, const std::string& text) -> Result<> {
                    TRY_CTX(pods.kill(target, options.signal, Deadline::in(kCallWait)),
                            cat("kill '", text, "'"));
                    return print_line(text);
                  });
}

}  // namespace wherry::cli
