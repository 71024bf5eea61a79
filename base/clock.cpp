#include "base/clock.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>

namespace wherry {
namespace {
constexpr auto kNever = std::chrono::nanoseconds::max();
}

std::chrono::nanoseconds boot_time() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

Deadline Deadline::in(Millis from_now) {
  return Deadline{boot_time() + from_now};
}
Deadline Deadline::never() {
  return Deadline{kNever};
}

Millis Deadline::left() const {
  if (at_ == kNever) return Millis::max();
  const auto rest = at_ - boot_time();
  return rest.count() <= 0 ? Millis{0} : std::chrono::ceil<Millis>(rest);
}

int Deadline::poll_timeout_ms() const {
  if (at_ == kNever) return -1;
  return static_cast<int>(std::min<Millis::rep>(left().count(), INT_MAX));
}

bool Deadline::expired() const {
  return at_ != kNever && boot_time() >= at_;
}

Deadline Deadline::sooner(Millis from_now) const {
  return Deadline{std::min(at_, boot_time() + std::chrono::nanoseconds{from_now})};
}

Deadline Deadline::plus(Millis more) const {
  return at_ == kNever ? *this : Deadline{at_ + more};
}

std::string rfc3339(std::chrono::system_clock::time_point when) {
  const auto since = when.time_since_epoch();
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(since - whole).count();
  // By the calendar, since gmtime_r() reads /etc/localtime.
  const auto day = std::chrono::floor<std::chrono::days>(whole);
  const std::chrono::year_month_day date{std::chrono::sys_days{day}};
  const std::chrono::hh_mm_ss time{whole - day};
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%09lldZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()),
                static_cast<long long>(nanos));
  return text.data();
}

std::string rfc3339_now() {
  return rfc3339(std::chrono::system_clock::now());
}

}  // namespace wherry
