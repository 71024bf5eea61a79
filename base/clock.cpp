#include "base/clock.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <ctime>

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
  const std::time_t seconds = whole.count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  const auto used = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + used, text.size() - used, ".%09lldZ", static_cast<long long>(nanos));
  return text.data();
}

std::string rfc3339_now() {
  return rfc3339(std::chrono::system_clock::now());
}

}  // namespace wherry
