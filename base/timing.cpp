#include "base/timing.h"

#include <array>
#include <cstdio>
#include <ctime>

#include "base/text.h"

namespace wherry {
namespace {

using std::chrono::nanoseconds;

struct Clock {
  bool on = false;
  nanoseconds last{};
  std::vector<Phase> phases;
};
Clock& clock_of_process() {
  static Clock clock;
  return clock;
}

nanoseconds read_clock(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return std::chrono::seconds{now.tv_sec} + nanoseconds{now.tv_nsec};
}

std::string line_of(double ms, std::string_view name, int indent) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), "%*s%9.3f ms  %.*s\n", indent, "", ms,
                static_cast<int>(name.size()), name.data());
  return text.data();
}

double in_ms(nanoseconds time) {
  return std::chrono::duration<double, std::milli>{time}.count();
}

}  // namespace

void begin_timing(std::string_view first) {
  auto& clock = clock_of_process();
  clock.on = true;
  clock.phases = {{std::string{first}, read_clock(CLOCK_PROCESS_CPUTIME_ID), {}}};
  clock.last = read_clock(CLOCK_MONOTONIC);
}

bool timing() {
  return clock_of_process().on;
}

void mark_phase(std::string_view phase) {
  mark_phase(phase, {});
}

void mark_phase(std::string_view phase, std::vector<Phase> within) {
  auto& clock = clock_of_process();
  if (!clock.on) return;
  const auto now = read_clock(CLOCK_MONOTONIC);
  if (clock.phases.empty() || clock.phases.back().name != phase)
    clock.phases.push_back({std::string{phase}, {}, {}});
  auto& last = clock.phases.back();
  last.took += now - clock.last;
  if (!within.empty()) last.within = std::move(within);
  clock.last = now;
}

void restart_timing() {
  auto& clock = clock_of_process();
  if (!clock.on) return;
  clock.phases.clear();
  clock.last = read_clock(CLOCK_MONOTONIC);
}

const std::vector<Phase>& phases() {
  return clock_of_process().phases;
}

std::string encode_phases(const std::vector<Phase>& phases) {
  std::string line;
  for (const auto& phase : phases)
    line += cat(line.empty() ? "" : ";", phase.name, "=", phase.took.count());
  return line;
}

std::vector<Phase> decode_phases(std::string_view line) {
  std::vector<Phase> phases;
  for (const auto part : split(line, ';')) {
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    if (const auto took = parse_int<std::int64_t>(part.substr(equals + 1)))
      phases.push_back({std::string{part.substr(0, equals)}, nanoseconds{*took}, {}});
  }
  return phases;
}

std::string table_of(const std::vector<Phase>& phases) {
  constexpr int kIndent = 4;
  std::string table;
  nanoseconds sum{};
  for (const auto& phase : phases) {
    sum += phase.took;
    table += line_of(in_ms(phase.took), phase.name, 0);
    for (const auto& inner : phase.within) table += line_of(in_ms(inner.took), inner.name, kIndent);
  }
  return table + line_of(in_ms(sum), "in all", 0);
}

}  // namespace wherry
