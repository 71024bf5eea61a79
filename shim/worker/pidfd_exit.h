// The exit of a process from its pidfd: for the case that the keeper, which reaps, is gone.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "base/event_loop.h"

namespace wherry::shim {

// Waits for the end of a process and calls back once with the status word of wait(2): as its
// parent, or on Linux 6.15 and later as anyone who held the pidfd before the process was reaped
// (PIDFD_GET_INFO), for which whoever reaps gets a few seconds. nullopt: nobody can tell. The loop
// and the pidfd must outlive this; its destruction ends the watch.
class ExitWatch {
 public:
  using Done = std::function<void(std::optional<int> wait_status)>;

  static std::unique_ptr<ExitWatch> start(EventLoop& loop, int pidfd, Done done);
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;

 private:
  ExitWatch(EventLoop& loop, int pidfd, Done done)
      : loop_{loop}, pidfd_{pidfd}, done_{std::move(done)} {}
  void on_end();
  void on_reaped();
  void tell(std::optional<int> wait_status);  // `this` may be gone when it returns

  EventLoop& loop_;
  int pidfd_;
  Done done_;
  EventLoop::TimerId give_up_ = 0;
};

}  // namespace wherry::shim
