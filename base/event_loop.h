// One epoll loop for descriptors and timers. No threads, no signal handlers: signals come through a
// signalfd, children through their pidfds.
#pragma once
#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace wherry {

class EventLoop {
 public:
  using OnReady = std::function<void(std::uint32_t events)>;  // EPOLLIN and its kin
  using OnTimer = std::function<void()>;
  using TimerId = std::uint64_t;  // never 0

  static Result<EventLoop> create();
  EventLoop(EventLoop&&) = default;
  EventLoop& operator=(EventLoop&&) = default;

  // Watches a descriptor that the caller owns and must unwatch() before it closes it. A callback
  // may watch and unwatch anything, itself included. Regular files cannot be watched (EPERM).
  Result<> watch(int fd, std::uint32_t events, OnReady callback);
  Result<> change(
      int fd, std::uint32_t events);  // interest 0 is allowed: only errors and hang-ups come then
  void unwatch(int fd);

  TimerId after(Millis delay, OnTimer callback);
  void cancel(TimerId timer);  // a fired or unknown one is fine

  // One round: waits for the first descriptor or timer, until `deadline` at the most, and calls
  // back.
  Result<> run_once(Deadline deadline);
  // Rounds until stop() was called.
  Result<> run();
  void stop() { stopped_ = true; }

 private:
  explicit EventLoop(UniqueFd epoll) : epoll_{std::move(epoll)} {}
  void fire_timers();

  struct Watch {
    std::uint64_t generation;
    OnReady callback;
  };
  UniqueFd epoll_;
  std::unordered_map<int, std::shared_ptr<Watch>> watches_;
  std::uint64_t generation_ = 0;
  std::map<std::pair<std::int64_t, TimerId>, OnTimer> timers_;  // by boot time in ns
  std::unordered_map<TimerId, std::int64_t> timer_at_;
  TimerId last_timer_ = 0;
  bool stopped_ = false;
};

}  // namespace wherry
