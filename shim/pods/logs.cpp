// Pods: logs and events, read from their files; no worker is asked.
#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/pods.h"
#include "shim/pods/store_paths.h"
#include "shim/pods/tail.h"
#include "shim/pods/verdict.h"
#include "shim/protocol/boot_plan.h"
#include "shim/protocol/event_log.h"

namespace wherry {
namespace {

using namespace shim;

constexpr Millis kLookAgain{1'000};  // should a change have gone unseen

struct LogLine {
  std::string_view time, text;
  bool is_stderr = false, whole = false;
};

// "<time> <stream> <tag> <text>"; nullopt for what is no line of ours.
std::optional<LogLine> parse_line(std::string_view line) {
  const auto first = line.find(' ');
  if (first == std::string_view::npos) return std::nullopt;
  const auto second = line.find(' ', first + 1);
  if (second == std::string_view::npos || second + 2 >= line.size() || line[second + 2] != ' ')
    return std::nullopt;
  const auto stream = line.substr(first + 1, second - first - 1);
  if (stream != "stdout" && stream != "stderr") return std::nullopt;
  return LogLine{line.substr(0, first), line.substr(second + 3), stream == "stderr",
                 line[second + 1] == 'F'};
}

// The log of the container's last run: "<number>.log".
Result<unsigned> last_run(const std::string& dir) {
  const auto logs = TRY(sys::openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY));
  std::optional<unsigned> last;
  for (const auto& name : TRY(list_dir(logs.get()))) {
    const auto dot = name.rfind(".log");
    if (dot == std::string::npos) continue;
    if (const auto number = parse_int<unsigned>(std::string_view{name}.substr(0, dot)))
      last = std::max(last.value_or(0), *number);
  }
  if (!last) return Error::make(Code::kNotFound, "it has not run yet");
  return *last;
}

// Pieces of a line are put together again per stream, so that a caller sees lines.
class Assembler {
 public:
  explicit Assembler(const Pods::OnLine& on_line) : on_line_{on_line} {}
  Result<> add(std::string_view line) {
    const auto parsed = parse_line(line);
    if (!parsed) return {};
    auto& pending = pending_[parsed->is_stderr ? 1 : 0];
    if (!parsed->whole) {
      pending.append(parsed->text);
      return {};
    }
    if (pending.empty()) return on_line_(parsed->is_stderr, parsed->time, parsed->text);
    pending.append(parsed->text);
    const std::string text = std::exchange(pending, {});
    return on_line_(parsed->is_stderr, parsed->time, text);
  }

 private:
  const Pods::OnLine& on_line_;
  std::array<std::string, 2> pending_;
};

bool is_over(const PodStatus& status, const std::string& container) {
  const auto found = std::find_if(status.containers.begin(), status.containers.end(),
                                  [&](const auto& one) { return one.name == container; });
  return found == status.containers.end() || status.sandbox != "READY" ||
         (found->state == "exited" && status.phase != "Running");
}

}  // namespace

Result<> Pods::logs(const Target& target, const LogOptions& options, const OnLine& on_line) const {
  const auto pod = TRY(load_pod(places_, target.pod_id));
  const auto container = !target.container.empty() || pod.containers.empty()
                             ? target.container
                             : pod.containers.front().name;
  const auto dir = cat(pod_path(places_.root, target.pod_id), "/", kLogsDir, "/", container);
  const auto last = last_run(dir);
  if (!last.ok() && last.error().code() == Code::kNotFound)
    return never_started(TRY(view_pod(places_, target.pod_id)).status, container);
  auto run = TRY_CTX(last_run(dir), cat("logs of '", container, "'"));
  const auto open_run = [&]() -> Result<LineFile> {
    return LineFile{TRY(sys::openat(AT_FDCWD, cat(dir, "/", run, ".log"), O_RDONLY))};
  };
  auto file = TRY(open_run());
  if (options.tail)
    TRY(file.seek_to_last(*options.tail, [](std::string_view line) {
      const auto parsed = parse_line(line);
      return parsed && parsed->whole;
    }));
  Assembler lines{on_line};
  const auto add = [&](std::string_view line) { return lines.add(line); };
  if (!options.follow) return file.read(add);

  auto watch = ChangeWatch::open();
  watch.add(dir);
  watch.add(pod_path(places_.state, target.pod_id));
  while (true) {
    // Asked before the file is read: what an ended container has said is all there.
    const auto view = view_pod(places_, target.pod_id);
    const bool over = !view.ok() || is_over(view.value().status, container);
    TRY(file.read(add));
    const auto newest = last_run(dir);
    if (newest.ok() && newest.value() != run) {
      run = newest.value();
      file = TRY(open_run());
      continue;
    }
    if (over) return {};
    watch.wait(kLookAgain);
  }
}

Result<> Pods::events(const EventOptions& options,
                      const std::function<Result<>(const Json&)>& on_event) const {
  std::uint64_t last = options.since.value_or(0);
  const auto tell = [&](std::string_view line) -> Result<> {
    const auto event = parse_json(line, "event");
    if (!event.ok()) return {};  // a line that a full disk cut short
    const auto seq = static_cast<std::uint64_t>(json_int_or(event.value(), "seq", 0));
    if (seq <= last) return {};
    last = seq;
    return on_event(event.value());
  };
  const auto read_file = [&](const char* name) -> Result<> {
    auto file = sys::openat(AT_FDCWD, cat(places_.root, "/", name), O_RDONLY);
    if (!file.ok()) return {};
    return LineFile{std::move(file).value()}.read(tell);
  };
  TRY(read_file(kOlderEventFile));
  TRY(read_file(kEventFile));
  if (!options.follow) return {};
  auto watch = ChangeWatch::open();
  watch.add(places_.root);
  while (true) {
    watch.wait(kLookAgain);
    TRY(read_file(kOlderEventFile));
    TRY(read_file(kEventFile));
  }
}

}  // namespace wherry
