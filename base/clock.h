// Time: deadlines and the boot clock. Wall time is only ever printed.
#pragma once
#include <chrono>
#include <string>

namespace wherry {

using Millis = std::chrono::milliseconds;

// CLOCK_BOOTTIME since boot: goes on while the machine sleeps, never jumps.
std::chrono::nanoseconds boot_time();

// A point on the boot clock by which a wait must have ended.
class Deadline {
 public:
  static Deadline in(Millis from_now);
  static Deadline never();
  Millis left() const;          // 0 when it has passed
  int poll_timeout_ms() const;  // for poll(2) and epoll_wait(2): -1 when it never ends
  bool expired() const;
  Deadline sooner(Millis from_now) const;  // the earlier of this one and `from_now`
  Deadline plus(Millis more) const;        // this much later

 private:
  explicit Deadline(std::chrono::nanoseconds at) : at_{at} {}
  std::chrono::nanoseconds at_;
};

// "2026-11-30T17:36:41.123456789Z": RFC 3339 with nanoseconds, as the CRI log format wants it.
std::string rfc3339(std::chrono::system_clock::time_point when);
std::string rfc3339_now();

}  // namespace wherry
