// events: statistics and OOM kills as lines of JSON, in the form of runc's.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "base/json.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "cgroups/cgroups.h"
#include "runtime/container/container.h"
#include "runtime/container/record.h"
#include "tools/wherry-oci/verbs.h"

namespace wherry::tool {
namespace {

using Number = std::optional<std::uint64_t>;
constexpr std::uint64_t kNanosPerMicro = 1000;

// "500ms", "5s", "1m30s": the form of Go's time.Duration, without fractions.
Result<Millis> interval(const std::string& text) {
  struct Unit {
    std::string_view name;
    std::int64_t millis;
  };
  constexpr std::array kUnits = {Unit{"ms", 1}, Unit{"h", 3600000}, Unit{"m", 60000},
                                 Unit{"s", 1000}};
  constexpr std::int64_t kMost = 24 * 3600000;
  const auto wrong = [&] {
    return Error::make(Code::kInvalid, cat("--interval: ", in_quotes(text),
                                           " is not a time such as 500ms, 5s or 1m30s"));
  };
  std::int64_t sum = 0;
  std::string_view left = text;
  while (!left.empty()) {
    const auto digits = std::min(left.find_first_not_of("0123456789"), left.size());
    const auto number = parse_int<std::int64_t>(left.substr(0, digits));
    left.remove_prefix(digits);
    const Unit* unit = nullptr;
    for (const auto& one : kUnits)
      if (unit == nullptr && left.starts_with(one.name)) unit = &one;
    if (!number || *number > kMost || unit == nullptr) return wrong();
    sum += *number * unit->millis;
    left.remove_prefix(unit->name.size());
  }
  if (sum <= 0 || sum > kMost) return wrong();
  return Millis{sum};
}

std::string file_of(const cgroups::Place& place, const char* controller, const char* file) {
  auto text = place.read(controller, file);
  if (!text.ok()) text = place.read("", file);
  return text.ok() ? std::move(text).value() : std::string{};
}

Json flat_file(std::string_view text) {
  Json object = Json::object();
  for (const auto line : split(text, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() != 2) continue;
    if (const auto number = parse_int<std::uint64_t>(words[1]))
      object[std::string{words[0]}] = *number;
  }
  return object;
}

Json entry(Number limit, Number usage, Number most) {
  Json object = Json::object();
  if (limit) object["limit"] = *limit;
  if (usage) object["usage"] = *usage;
  if (most) object["max"] = *most;
  object["failcnt"] = 0;
  return object;
}

Json cpu_of(const cgroups::Stats& stats) {
  Json usage = Json::object(), throttling = Json::object();
  if (stats.cpu_usage_usec) usage["total"] = *stats.cpu_usage_usec * kNanosPerMicro;
  if (stats.cpu_system_usec) usage["kernel"] = *stats.cpu_system_usec * kNanosPerMicro;
  if (stats.cpu_user_usec) usage["user"] = *stats.cpu_user_usec * kNanosPerMicro;
  if (stats.nr_throttled) throttling["throttledPeriods"] = *stats.nr_throttled;
  if (stats.throttled_usec) throttling["throttledTime"] = *stats.throttled_usec * kNanosPerMicro;
  return {{"usage", usage}, {"throttling", throttling}};
}

Json memory_of(const cgroups::Place& place, const cgroups::Stats& stats) {
  const auto raw = flat_file(file_of(place, "memory", "memory.stat"));
  Json memory = Json::object();
  for (const auto* name : {"total_cache", "file", "cache"})
    if (raw.contains(name)) {
      memory["cache"] = raw[name];
      break;
    }
  memory["usage"] = entry(stats.memory_max, stats.memory_current, stats.memory_peak);
  const auto number = [&](const char* v1, const char* v2) {
    const auto text = place.read("memory", v1);
    const auto other = text.ok() ? std::string{} : file_of(place, "", v2);
    return parse_int<std::uint64_t>(trim(text.ok() ? std::string_view{text.value()} : other));
  };
  memory["swap"] = entry(number("memory.memsw.limit_in_bytes", "memory.swap.max"),
                         number("memory.memsw.usage_in_bytes", "memory.swap.current"),
                         number("memory.memsw.max_usage_in_bytes", "memory.swap.peak"));
  memory["raw"] = raw;
  return memory;
}

Result<> print_stats(const cgroups::Place& place, const std::string& id) {
  const auto stats = TRY(place.stats());
  Json pids = Json::object();
  if (stats.pids_current) pids["current"] = *stats.pids_current;
  if (stats.pids_max) pids["limit"] = *stats.pids_max;
  const Json data{{"cpu", cpu_of(stats)}, {"memory", memory_of(place, stats)}, {"pids", pids}};
  std::printf("%s\n", dump_json({{"type", "stats"}, {"id", id}, {"data", data}}).c_str());
  std::fflush(stdout);
  return {};
}

void print_oom(const std::string& id) {
  std::printf("%s\n", dump_json({{"type", "oom"}, {"id", id}}).c_str());
  std::fflush(stdout);
}

// Takes what made the descriptor ready, so that it becomes ready again.
void drain(int events) {
  std::array<char, 4096> buffer;
  ::lseek(events, 0, SEEK_SET);  // memory.events is read from its start; an eventfd has none
  [[maybe_unused]] const auto got = ::read(events, buffer.data(), buffer.size());
}

std::uint64_t kills(const cgroups::Place& place) {
  const auto count = place.oom_count();
  return count.ok() ? count.value().kills : 0;
}

Result<> watch(const cgroups::Place& place, const UniqueFd& init, const std::string& id,
               Millis every) {
  const auto oom = TRY(place.open_oom_events());
  auto told = kills(place);
  const auto tell = [&] {
    // A group that is gone counts nothing: what was told stays.
    for (const auto now = kills(place); told < now; ++told) print_oom(id);
  };
  while (true) {
    for (const auto next = Deadline::in(every); !next.expired();) {
      std::array polls{pollfd{init.get(), POLLIN, 0}, pollfd{oom.get(), POLLIN | POLLPRI, 0}};
      if (::poll(polls.data(), polls.size(), next.poll_timeout_ms()) < 0 && errno != EINTR)
        return Error::sys("poll");
      if (polls[1].revents != 0) drain(oom.get());
      tell();
      if (polls[0].revents != 0) return {};
      // A v1 group that was removed leaves its eventfd ready for good.
      if (polls[1].revents != 0 && !place.stats().ok()) return {};
    }
    if (auto printed = print_stats(place, id); !printed.ok())
      return printed.error().code() == Code::kNotFound ? Result<>{} : std::move(printed);
  }
}

}  // namespace

Result<int> events(const Options& options) {
  const auto id = TRY(the_id(options, 1));
  const auto every = TRY(interval(options.interval));
  const auto dir = TRY(open_container(options, id, Locking::kNo));
  const auto context = cat("events of container '", id, "'");
  const auto record = TRY_CTX(container::load_record(dir.container.get()), context);
  const auto init = open_pidfd(record.init);
  const auto place = TRY_CTX(container::own_place(record), context);
  if (record.init.pid == 0 || !init.ok() || !place)
    return Error::make(Code::kState, "it is not running").context(context);
  if (options.stats)
    TRY_CTX(print_stats(*place, id), context);
  else
    TRY_CTX(watch(*place, init.value(), id, every), context);
  return 0;
}

}  // namespace wherry::tool
