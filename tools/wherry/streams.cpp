// logs, events, exec, attach.
#include <unistd.h>

#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "tools/wherry/output.h"
#include "tools/wherry/run_flags.h"
#include "tools/wherry/verbs.h"

namespace wherry::cli {
namespace {

// Lines on their way to stdout or stderr, in few writes. Log text passes through as it is.
class LineBuffer {
 public:
  LineBuffer(int fd, const char* name) : fd_{fd}, name_{name} {}
  Result<> add(std::string_view time, std::string_view text) {
    if (!time.empty()) pending_.append(time).append(" ");
    pending_.append(text).append("\n");
    return pending_.size() < kEnough ? Result<>{} : flush();
  }
  Result<> flush() {
    if (pending_.empty()) return {};
    TRY(sys::write_all(fd_, pending_, name_));
    pending_.clear();
    return {};
  }

 private:
  static constexpr std::size_t kEnough = 64 * 1024;
  int fd_;
  const char* name_;
  std::string pending_;
};

std::string message_of(const Json& error) {
  return in_quotes(json_string_or(error, "message", ""));
}

// Pods that are gone are still spoken of, so it goes by what the event itself says.
bool is_about(const Json& event, const EventsOptions& options) {
  if (!options.ns.empty() && json_string_or(event, "namespace", "") != options.ns) return false;
  return options.pod.empty() || json_string_or(event, "name", "") == options.pod ||
         json_string_or(event, "pod", "").starts_with(options.pod);
}

std::string event_line(const Json& event) {
  std::string out = cat(json_int_or(event, "seq", 0), "  ", json_string_or(event, "time", ""), "  ",
                        json_string_or(event, "type", ""));
  const auto name = json_string_or(event, "name", "");
  out += cat("  ", json_string_or(event, "namespace", ""), "/", name);
  for (const auto& [key, value] : event.items()) {
    if (key == "seq" || key == "time" || key == "type" || key == "name" || key == "namespace")
      continue;
    const auto text = value.is_string()                                ? value.get<std::string>()
                      : value.is_object() && value.contains("message") ? message_of(value)
                                                                       : dump_json(value);
    out += cat("  ", key, "=", key == "pod" ? short_id(text) : text);
  }
  return harmless(out);
}

}  // namespace

Result<int> logs(const Global& global, const LogsOptions& options) {
  const auto pods = TRY(Pods::open(global.places));
  const auto target = TRY(pods.resolve(options.targets.at(0), options.ns));
  Pods::LogOptions wanted;
  wanted.follow = options.follow;
  wanted.timestamps = options.timestamps;
  wanted.tail = options.tail;
  LineBuffer out{1, "stdout"}, err{2, "stderr"};
  bool last_was_err = false;
  TRY(pods.logs(target, wanted,
                [&](bool is_stderr, std::string_view time, std::string_view text) -> Result<> {
                  // Where both go to one place they stay in order.
                  if (is_stderr != last_was_err) TRY((last_was_err ? err : out).flush());
                  last_was_err = is_stderr;
                  auto& buffer = is_stderr ? err : out;
                  TRY(buffer.add(options.timestamps ? time : std::string_view{}, text));
                  return options.follow ? buffer.flush() : Result<>{};
                }));
  TRY(out.flush());
  TRY(err.flush());
  return 0;
}

Result<int> events(const Global& global, const EventsOptions& options) {
  const auto format = TRY(format_of(options.output));
  const auto pods = TRY(Pods::open(global.places));
  Pods::EventOptions wanted;
  wanted.follow = options.follow;
  wanted.since = options.since;
  TRY(pods.events(wanted, [&](const Json& event) -> Result<> {
    if (!is_about(event, options)) return {};
    return format == Format::kJson ? print_json_line(event) : print_line(event_line(event));
  }));
  return 0;
}

Result<int> exec(const Global& global, const ExecOptions& options) {
  const auto command = command_after_first(options.operands);
  if (command.empty())
    return Error::make(Code::kInvalid, options.operands.empty()
                                           ? "exec: a pod and a command are missing"
                                           : "exec: a command is missing")
        .hint("wherry exec --help");
  ExecRequest request;
  request.argv = command;
  for (const auto& [key, value] : TRY(environment_of(options.env)))
    request.env.push_back(cat(key, "=", value));
  request.user = options.user;
  request.cwd = options.workdir;
  request.tty = options.tty;
  request.interactive = options.interactive;
  auto pods = TRY(Pods::open(global.places));
  const auto target = TRY(pods.resolve(options.operands[0], options.ns));
  return pods.exec(target, std::move(request), Deadline::never());
}

Result<int> attach(const Global& global, const TargetOptions& options) {
  auto pods = TRY(Pods::open(global.places));
  return pods.attach(TRY(pods.resolve(options.targets.at(0), options.ns)), {0, 1, 2});
}

}  // namespace wherry::cli
