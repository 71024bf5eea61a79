// A caller's terminal or pipes at one end of a relay.
#pragma once
#include <array>
#include <functional>
#include <optional>

#include "base/fd.h"
#include "base/result.h"

namespace wherry::shim {

struct WindowSize {
  unsigned rows = 0, columns = 0;
};
std::optional<WindowSize> window_size(int fd);  // nullopt: not a terminal
Result<> send_size(int relay, const WindowSize& size);

struct RelayOptions {
  std::array<int, 3> stdio{0, 1, 2};
  bool interactive = false;  // stdin is passed on
  bool tty = false;          // stdin is set raw, its size is passed on, ctrl-p ctrl-q detaches
  // SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 of the caller; empty: they do what they do.
  std::function<void(int signum)> on_signal;
};
struct RelayOutcome {
  enum class How : std::uint8_t {
    kExited,    // exit_code; nullopt: unknown
    kDetached,  // by the keys
    kDropped,   // the caller was too slow
    kClosed,    // the other side went away without a word
  } how{};
  std::optional<int> exit_code;
};
// Until the other side ends it; an error is that of the other side, which could not start what was
// asked for. The terminal is as before when it returns.
Result<RelayOutcome> run_relay(UniqueFd relay, const RelayOptions& options);

}  // namespace wherry::shim
