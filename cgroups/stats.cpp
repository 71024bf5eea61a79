// Numbers: use, limits, and the kills of the OOM killer.
#include <sys/eventfd.h>

#include "base/file.h"
#include "base/text.h"
#include "cgroups/cgroups.h"
#include "cgroups/tree.h"

namespace wherry::cgroups {
namespace {

using Number = std::optional<std::uint64_t>;

// The whole file is one number; "max" and a file that is not there are none.
Number number_in(int dirfd, const std::string& file) {
  auto text = read_file(dirfd, file);
  return text.ok() ? parse_int<std::uint64_t>(trim(*text)) : std::nullopt;
}

std::string text_of(int dirfd, const std::string& file) {
  auto text = read_file(dirfd, file);
  return text.ok() ? std::move(*text) : std::string{};
}

// Use without the page cache that nobody has touched lately: what the kubelet calls working set.
Number working_set_of(Number current, Number inactive_file) {
  if (!current || !inactive_file) return std::nullopt;
  return *current > *inactive_file ? *current - *inactive_file : 0;
}

void memory_v2(int dirfd, Stats& stats) {
  stats.memory_current = number_in(dirfd, "memory.current");
  stats.memory_peak = number_in(dirfd, "memory.peak");  // Linux 5.19
  stats.memory_max = number_in(dirfd, "memory.max");
  if (stats.memory_current)
    stats.working_set =
        working_set_of(stats.memory_current, field(text_of(dirfd, "memory.stat"), "inactive_file"));
}

void memory_v1(int dirfd, Stats& stats) {
  stats.memory_current = number_in(dirfd, "memory.usage_in_bytes");
  stats.memory_peak = number_in(dirfd, "memory.max_usage_in_bytes");
  const auto limit = number_in(dirfd, "memory.limit_in_bytes");
  // Unlimited is the largest number of whole pages in v1.
  constexpr std::uint64_t kUnlimited = 1ULL << 62;
  if (limit && *limit < kUnlimited) stats.memory_max = limit;
  stats.working_set = working_set_of(stats.memory_current,
                                     field(text_of(dirfd, "memory.stat"), "total_inactive_file"));
}

}  // namespace

Result<Stats> Place::stats() const {
  Stats stats;
  const int unified = unified_.self.get();
  auto cpu = read_file(unified, "cpu.stat");
  if (!cpu.ok() && gone(cpu.error()))
    return Error::make(Code::kNotFound, cat("cgroup ", in_quotes(path_), " is gone"));
  if (!cpu.ok()) return std::move(cpu).error();
  // v2 counts CPU time in every directory, whoever drives the cpu controller.
  stats.cpu_usage_usec = field(*cpu, "usage_usec");
  stats.cpu_user_usec = field(*cpu, "user_usec");
  stats.cpu_system_usec = field(*cpu, "system_usec");
  stats.nr_throttled = field(*cpu, "nr_throttled");
  stats.throttled_usec = field(*cpu, "throttled_usec");
  if (const auto* v1 = find("cpu")) {
    const auto text = text_of(v1->self.get(), "cpu.stat");
    stats.nr_throttled = field(text, "nr_throttled");
    if (const auto nanoseconds = field(text, "throttled_time"))
      stats.throttled_usec = *nanoseconds / 1000;
  }
  if (const auto* v1 = find("memory"))
    memory_v1(v1->self.get(), stats);
  else
    memory_v2(unified, stats);
  const auto* v1_pids = find("pids");
  const int pids = v1_pids != nullptr ? v1_pids->self.get() : unified;
  stats.pids_current = number_in(pids, "pids.current");
  stats.pids_max = number_in(pids, "pids.max");
  return stats;
}

Result<OomCount> Place::oom_count() const {
  const auto* v1 = find("memory");
  const auto* file = v1 != nullptr ? "memory.oom_control" : "memory.events";
  const int dirfd = v1 != nullptr ? v1->self.get() : unified_.self.get();
  auto text = read_file(dirfd, file);
  if (!text.ok() && gone(text.error())) {
    if (!sys::fstatat(dirfd, "cgroup.procs").ok())
      return Error::make(Code::kNotFound, cat("cgroup ", in_quotes(path_), " is gone"));
    return Error::make(Code::kUnsupported,
                       cat("cgroup ", in_quotes(path_), " has no memory controller"));
  }
  if (!text.ok()) return std::move(text).error();
  OomCount count;
  count.kills = field(*text, "oom_kill").value_or(0);
  count.group_kills = field(*text, "oom_group_kill").value_or(0);
  return count;
}

Result<UniqueFd> Place::open_oom_events() const {
  const auto what = cat("watch for OOM in cgroup ", in_quotes(path_));
  const auto* v1 = find("memory");
  if (v1 == nullptr) {
    auto events = sys::openat(unified_.self.get(), "memory.events", O_RDONLY);
    if (!events.ok()) return std::move(events).error().context(what);
    // poll(2) reports changes since the last read only.
    TRY_CTX(sys::read_to_end(events->get(), 4096, "memory.events"), what);
    return events;
  }
  UniqueFd event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!event) return Error::sys("eventfd").context(what);
  const auto control = TRY_CTX(sys::openat(v1->self.get(), "memory.oom_control", O_RDONLY), what);
  TRY_CTX(write_kernel_file(v1->self.get(), "cgroup.event_control",
                            cat(event.get(), " ", control.get())),
          what);
  return event;
}

}  // namespace wherry::cgroups
