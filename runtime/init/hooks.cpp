#include "runtime/init/hooks.h"

#include <signal.h>

#include "base/json.h"
#include "base/process.h"
#include "base/text.h"

namespace wherry::init {
namespace {

constexpr std::size_t kMostOutput = 65536;  // kept of it
constexpr std::size_t kMostTold = 1000;     // in the error

// A hook that does not read the state must not end the one who writes it.
class NoSigpipe {
 public:
  NoSigpipe() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &before_);
  }
  ~NoSigpipe() { ::sigaction(SIGPIPE, &before_, nullptr); }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  struct sigaction before_ {};
};

Command command_of(const oci::Hook& hook, const std::string& state, const std::string& cwd) {
  Command command;
  command.program = hook.path;
  command.argv = hook.args.empty() ? std::vector{hook.path} : hook.args;
  command.env = hook.env;
  command.input = state;
  command.cwd = cwd;
  command.umask = 0022;
  command.output_limit = kMostOutput;
  return command;
}

// The end of what it wrote, in one line.
std::string told(const CommandResult& result) {
  const auto text = trim(result.err).empty() ? trim(result.out) : trim(result.err);
  if (text.empty()) return {};
  std::string line{text.substr(text.size() - std::min(text.size(), kMostTold))};
  for (auto& c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  return ": " + line;
}

Result<> run_hook(const oci::Hook& hook, const std::string& state, const std::string& cwd,
                  Deadline otherwise) {
  const auto own = std::chrono::seconds{hook.timeout.value_or(0)};
  auto done =
      run_command(command_of(hook, state, cwd), hook.timeout ? Deadline::in(own) : otherwise);
  if (!done.ok()) {
    if (done.error().code() != Code::kTimeout) return std::move(done).error();
    return Error::make(Code::kTimeout,
                       hook.timeout ? cat("it did not end within ", *hook.timeout, " s")
                                    : std::string{"it did not end in time and has no timeout"});
  }
  if (done->exit_status == 0) return {};
  constexpr int kNotExecuted = 126, kNotThere = 127;
  const auto* why = done->exit_status == kNotThere      ? " (there is no such program)"
                    : done->exit_status == kNotExecuted ? " (it could not be executed)"
                                                        : "";
  return Error::make(Code::kSystem,
                     cat("it ended with ", done->exit_status, why, told(done.value())));
}

}  // namespace

Result<> run_hooks(std::string_view kind, const std::vector<oci::Hook>& hooks,
                   const oci::State& state, const std::string& cwd, Deadline otherwise) {
  if (hooks.empty()) return {};
  const NoSigpipe guard;
  const auto text = dump_json(oci::to_json(state));
  for (std::size_t i = 0; i < hooks.size(); ++i) {
    auto done = run_hook(hooks[i], text, cwd, otherwise);
    if (!done.ok())
      return std::move(done)
          .error()
          .context(cat("hooks.", kind, "[", i, "] '", hooks[i].path, "'"))
          .step("hooks");
  }
  return {};
}

Millis time_of(const std::vector<oci::Hook>& hooks) {
  Millis all{0};
  for (const auto& hook : hooks) all += std::chrono::seconds{hook.timeout.value_or(0)};
  return all;
}

}  // namespace wherry::init
