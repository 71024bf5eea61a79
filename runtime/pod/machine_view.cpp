// The machine seen from outside: what status shows, and what is kept for the worker's successor.
#include <signal.h>

#include <array>

#include "base/json.h"
#include "base/text.h"
#include "runtime/pod/machine.h"

namespace wherry::pod {
namespace {

constexpr int kSaveVersion = 1;

Json to_json(const std::optional<Millis>& at) {
  return at ? Json(at->count()) : Json(nullptr);
}

std::optional<Millis> millis_from(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_integer()) return std::nullopt;
  return Millis{it->get<std::int64_t>()};
}

std::optional<int> int_from(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_integer()) return std::nullopt;
  return it->get<int>();
}

template <class Enum>
Result<Enum> enum_from(const Json& object, const char* key, Enum last) {
  const auto value = TRY(json_int(object, key));
  if (value < 0 || value > static_cast<std::int64_t>(last))
    return Error::make(Code::kInvalid, cat("'", key, "' is out of range"));
  return static_cast<Enum>(value);
}

unsigned unsigned_from(const Json& object, const char* key) {
  const auto value = json_int_or(object, key, 0);
  return value < 0 || value > 0x7fffffff ? 0U : static_cast<unsigned>(value);
}

struct SignalName {
  const char* name;
  int number;
};
constexpr std::array kSignals{
    SignalName{"HUP", SIGHUP},   SignalName{"INT", SIGINT},       SignalName{"QUIT", SIGQUIT},
    SignalName{"ILL", SIGILL},   SignalName{"TRAP", SIGTRAP},     SignalName{"ABRT", SIGABRT},
    SignalName{"IOT", SIGIOT},   SignalName{"BUS", SIGBUS},       SignalName{"FPE", SIGFPE},
    SignalName{"KILL", SIGKILL}, SignalName{"USR1", SIGUSR1},     SignalName{"SEGV", SIGSEGV},
    SignalName{"USR2", SIGUSR2}, SignalName{"PIPE", SIGPIPE},     SignalName{"ALRM", SIGALRM},
    SignalName{"TERM", SIGTERM}, SignalName{"STKFLT", SIGSTKFLT}, SignalName{"CHLD", SIGCHLD},
    SignalName{"CONT", SIGCONT}, SignalName{"STOP", SIGSTOP},     SignalName{"TSTP", SIGTSTP},
    SignalName{"TTIN", SIGTTIN}, SignalName{"TTOU", SIGTTOU},     SignalName{"URG", SIGURG},
    SignalName{"XCPU", SIGXCPU}, SignalName{"XFSZ", SIGXFSZ},     SignalName{"VTALRM", SIGVTALRM},
    SignalName{"PROF", SIGPROF}, SignalName{"WINCH", SIGWINCH},   SignalName{"IO", SIGIO},
    SignalName{"POLL", SIGIO},   SignalName{"PWR", SIGPWR},       SignalName{"SYS", SIGSYS},
};
// The kernel's range; the C library keeps 32 and 33 for itself, and SIGRTMIN of programs is 34.
constexpr int kFirstRealtime = 34;
constexpr int kLastSignal = 64;

std::string upper(std::string_view text) {
  std::string out{text};
  for (auto& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

}  // namespace

Result<int> signal_number(std::string_view name) {
  const auto bad = [&] {
    return Error::make(Code::kInvalid, cat(in_quotes(name), " is not a signal"));
  };
  if (const auto number = parse_int<int>(name)) {
    if (*number < 1 || *number > kLastSignal) return bad();
    return *number;
  }
  std::string word = upper(name);
  if (word.starts_with("SIG")) word.erase(0, 3);
  for (const auto& signal : kSignals) {
    if (word == signal.name) return signal.number;
  }
  int base = 0;
  if (word.starts_with("RTMIN"))
    base = kFirstRealtime;
  else if (word.starts_with("RTMAX"))
    base = kLastSignal;
  else
    return bad();
  const std::string_view rest = std::string_view{word}.substr(5);
  if (rest.empty()) return base;
  const auto offset = parse_int<unsigned>(rest.substr(1));
  if (!offset || *offset > kLastSignal - kFirstRealtime) return bad();
  if (rest[0] == '+' && base == kFirstRealtime) return base + static_cast<int>(*offset);
  if (rest[0] == '-' && base == kLastSignal) return base - static_cast<int>(*offset);
  return bad();
}

Result<PodSpec> machine_spec(const Pod& pod) {
  PodSpec spec;
  spec.grace = pod.grace;
  spec.remove_when_done = pod.remove_when_done;
  const auto add = [&](const Container& container, bool init) -> Result<> {
    ContainerSpec item;
    item.name = container.name;
    item.restart = container.restart.value_or(pod.restart);
    if (init) {
      item.kind = container.restart == Restart::kAlways ? ContainerSpec::Kind::kSidecar
                                                        : ContainerSpec::Kind::kInit;
    }
    if (!container.stop_signal.empty())
      item.stop_signal = TRY_CTX(signal_number(container.stop_signal),
                                 cat("stop signal of container ", in_quotes(container.name)));
    spec.containers.push_back(std::move(item));
    return {};
  };
  for (const auto& container : pod.init_containers) TRY(add(container, true));
  for (const auto& container : pod.containers) TRY(add(container, false));
  return spec;
}

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::kPending:
      return "Pending";
    case Phase::kRunning:
      return "Running";
    case Phase::kStopping:
      return "Stopping";
    case Phase::kSucceeded:
      return "Succeeded";
    case Phase::kFailed:
      return "Failed";
  }
  return "Unknown";
}

std::string ContainerView::state() const {
  switch (step) {
    case Step::kWaiting:
    case Step::kCreating:
    case Step::kBackOff:
      return "waiting";
    case Step::kStarting:
      return "created";
    case Step::kRunning:
      return "running";
    case Step::kEnding:
    case Step::kExited:
      return "exited";
  }
  return "unknown";
}

ContainerView Machine::view(std::size_t index) const {
  const auto& item = items_[index];
  ContainerView out;
  out.name = spec_.containers[index].name;
  out.kind = spec_.containers[index].kind;
  out.step = item.step;
  out.restarts = item.restarts;
  out.has_ended = item.has_ended;
  out.exit_code = item.exit_code;
  out.stopped_by_request = item.stopped_by_request;
  out.over = over(index);
  out.message = item.message;
  out.started_at = item.started_at.value_or(Millis{0});
  out.ended_at = item.ended_at.value_or(Millis{0});
  const auto how_it_ended = [&] {
    if (item.stopped_by_request || !item.has_ended) return "Stopped";
    if (item.start_failed) return "StartError";
    if (!item.exit_code) return "Unknown";
    return *item.exit_code == 0 ? "Completed" : "Error";
  };
  switch (item.step) {
    case Step::kWaiting:
      if (begun_ && phase_ == Phase::kPending) out.reason = "PodInitializing";
      break;
    case Step::kCreating:
      out.reason = "ContainerCreating";
      break;
    case Step::kStarting:
      break;
    case Step::kRunning:
      if (item.stop_asked) out.reason = "Stopping";
      break;
    case Step::kBackOff:
      out.reason = "CrashLoopBackOff";
      break;
    case Step::kEnding:
    case Step::kExited:
      out.reason = how_it_ended();
      break;
  }
  return out;
}

std::vector<ContainerView> Machine::containers() const {
  std::vector<ContainerView> out;
  for (std::size_t i = 0; i < items_.size(); ++i) out.push_back(view(i));
  return out;
}

std::optional<ContainerView> Machine::container(std::string_view name) const {
  if (const auto index = find(name)) return view(*index);
  return std::nullopt;
}

bool Machine::ready() const {
  if (phase_ != Phase::kRunning) return false;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (spec_.containers[i].kind == ContainerSpec::Kind::kInit) continue;
    if (items_[i].step != Step::kRunning) return false;
  }
  return true;
}

std::optional<int> Machine::exit_code() const {
  if (!why_.empty()) return failure_code_;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (spec_.containers[i].kind == ContainerSpec::Kind::kMain) return items_[i].exit_code;
  }
  return std::nullopt;
}

std::string Machine::save() const {
  Json out{{"v", kSaveVersion},
           {"phase", static_cast<int>(phase_)},
           {"begun", begun_},
           {"removeAsked", remove_asked_},
           {"removed", removed_},
           {"failureCode", failure_code_ ? Json(*failure_code_) : Json(nullptr)},
           {"why", why_},
           {"graceEnds", to_json(grace_ends_)},
           {"containers", Json::array()}};
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const auto& item = items_[i];
    out["containers"].push_back(
        Json{{"name", spec_.containers[i].name},
             {"step", static_cast<int>(item.step)},
             {"restarts", item.restarts},
             {"startedOnce", item.started_once},
             {"stopAsked", item.stop_asked},
             {"signalled", item.signalled},
             {"killed", item.killed},
             {"hasEnded", item.has_ended},
             {"startFailed", item.start_failed},
             {"stoppedByRequest", item.stopped_by_request},
             {"again", item.again},
             {"exitCode", item.exit_code ? Json(*item.exit_code) : Json(nullptr)},
             {"message", item.message},
             {"startedAt", to_json(item.started_at)},
             {"endedAt", to_json(item.ended_at)},
             {"backoff", to_json(item.backoff)},
             {"due", to_json(item.due)},
             {"killAt", to_json(item.kill_at)},
             {"destroyFailures", item.destroy_failures}});
  }
  return dump_json(out);
}

Result<Machine> Machine::restore(PodSpec spec, std::string_view saved) {
  const auto json = TRY(parse_json(saved, "machine record"));
  const auto wrong = [](std::string_view what) {
    return Error::make(Code::kInvalid, cat("machine record: ", what));
  };
  if (json_int_or(json, "v", 0) != kSaveVersion) return wrong("not a version that is known here");
  Machine machine{std::move(spec)};
  machine.phase_ = TRY_CTX(enum_from(json, "phase", Phase::kFailed), "machine record");
  machine.begun_ = json_bool_or(json, "begun", false);
  machine.remove_asked_ = json_bool_or(json, "removeAsked", false);
  machine.removed_ = json_bool_or(json, "removed", false);
  machine.failure_code_ = int_from(json, "failureCode");
  machine.why_ = json_string_or(json, "why", "");
  machine.grace_ends_ = millis_from(json, "graceEnds");
  const auto list = json.find("containers");
  if (list == json.end() || !list->is_array() || list->size() != machine.items_.size())
    return wrong("its containers are not those of the pod");
  for (std::size_t i = 0; i < machine.items_.size(); ++i) {
    const auto& from = (*list)[i];
    auto& item = machine.items_[i];
    if (json_string_or(from, "name", "") != machine.spec_.containers[i].name)
      return wrong("its containers are not those of the pod");
    item.step = TRY_CTX(enum_from(from, "step", Step::kExited), "machine record");
    item.restarts = unsigned_from(from, "restarts");
    item.started_once = json_bool_or(from, "startedOnce", false);
    item.stop_asked = json_bool_or(from, "stopAsked", false);
    item.signalled = json_bool_or(from, "signalled", false);
    item.killed = json_bool_or(from, "killed", false);
    item.has_ended = json_bool_or(from, "hasEnded", false);
    item.start_failed = json_bool_or(from, "startFailed", false);
    item.stopped_by_request = json_bool_or(from, "stoppedByRequest", false);
    item.again = json_bool_or(from, "again", false);
    item.exit_code = int_from(from, "exitCode");
    item.message = json_string_or(from, "message", "");
    item.started_at = millis_from(from, "startedAt");
    item.ended_at = millis_from(from, "endedAt");
    item.backoff = millis_from(from, "backoff");
    item.due = millis_from(from, "due");
    item.kill_at = millis_from(from, "killAt");
    item.destroy_failures = unsigned_from(from, "destroyFailures");
    if (item.step == Step::kRunning && !item.started_at)
      return wrong("a running container has no start");
  }
  return machine;
}

}  // namespace wherry::pod
