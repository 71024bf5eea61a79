#include "base/event_loop.h"

#include <array>

#include "base/text.h"

namespace wherry {

Result<EventLoop> EventLoop::create() {
  UniqueFd epoll{::epoll_create1(EPOLL_CLOEXEC)};
  if (!epoll) return Error::sys("epoll_create1");
  return EventLoop{std::move(epoll)};
}

Result<> EventLoop::watch(int fd, std::uint32_t events, OnReady callback) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) < 0)
    return Error::sys("epoll_ctl(ADD)", cat("fd ", fd));
  watches_[fd] = std::make_shared<Watch>(Watch{++generation_, std::move(callback)});
  return {};
}

Result<> EventLoop::change(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) < 0)
    return Error::sys("epoll_ctl(MOD)", cat("fd ", fd));
  return {};
}

void EventLoop::unwatch(int fd) {
  if (watches_.erase(fd) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::TimerId EventLoop::after(Millis delay, OnTimer callback) {
  const TimerId id = ++last_timer_;
  const auto at = (boot_time() + delay).count();
  timers_.emplace(std::pair{at, id}, std::move(callback));
  timer_at_[id] = at;
  return id;
}

void EventLoop::cancel(TimerId timer) {
  const auto found = timer_at_.find(timer);
  if (found == timer_at_.end()) return;
  timers_.erase({found->second, timer});
  timer_at_.erase(found);
}

void EventLoop::fire_timers() {
  const auto now = boot_time().count();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    auto node = timers_.extract(timers_.begin());
    timer_at_.erase(node.key().second);
    node.mapped()();
  }
}

Result<> EventLoop::run_once(Deadline deadline) {
  auto until = deadline;
  if (!timers_.empty()) {
    const auto wait = std::chrono::nanoseconds{timers_.begin()->first.first} - boot_time();
    until = deadline.sooner(std::max(Millis{0}, std::chrono::ceil<Millis>(wait)));
  }
  std::array<epoll_event, 64> ready{};
  const std::uint64_t before = generation_;
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()),
                                 until.poll_timeout_ms());
  if (count < 0 && errno != EINTR) return Error::sys("epoll_wait");
  for (int i = 0; i < count; ++i) {
    const auto& event = ready[static_cast<std::size_t>(i)];
    const auto found = watches_.find(event.data.fd);
    // A descriptor closed and opened again by an earlier callback of this round is another one.
    if (found == watches_.end() || found->second->generation > before) continue;
    const auto keep_alive = found->second;
    keep_alive->callback(event.events);
  }
  fire_timers();
  return {};
}

Result<> EventLoop::run() {
  stopped_ = false;
  while (!stopped_) TRY(run_once(Deadline::never()));
  return {};
}

}  // namespace wherry
