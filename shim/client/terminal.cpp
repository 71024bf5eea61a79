#include "shim/client/terminal.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/json.h"
#include "base/sys.h"
#include "shim/protocol/relay.h"

namespace wherry::shim {
namespace {

constexpr char kCtrlP = 0x10, kCtrlQ = 0x11;

class RawTerminal {
 public:
  explicit RawTerminal(int fd) {
    if (::tcgetattr(fd, &before_) < 0) return;
    termios raw = before_;
    ::cfmakeraw(&raw);
    if (::tcsetattr(fd, TCSANOW, &raw) == 0) fd_ = fd;
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal() {
    if (fd_ >= 0) ::tcsetattr(fd_, TCSADRAIN, &before_);
  }

 private:
  int fd_ = -1;
  termios before_{};
};

// Signals as readable events for as long as it lives.
class Signals {
 public:
  static Result<Signals> open(bool forwarded) {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGWINCH);
    if (forwarded)
      for (const int signum : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
        sigaddset(&wanted, signum);
    Signals signals;
    if (::sigprocmask(SIG_BLOCK, &wanted, &signals.before_) < 0) return Error::sys("sigprocmask");
    signals.fd_.reset(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals.fd_) return Error::sys("signalfd");
    return signals;
  }
  Signals(Signals&&) = default;
  ~Signals() {
    if (fd_) ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  int fd() const { return fd_.get(); }
  int next() {
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)
               ? static_cast<int>(info.ssi_signo)
               : 0;
  }

 private:
  Signals() = default;
  UniqueFd fd_;
  sigset_t before_{};
};

class Relay {
 public:
  Relay(UniqueFd socket, const RelayOptions& options, Signals signals)
      : socket_{std::move(socket)},
        options_{options},
        signals_{std::move(signals)},
        reads_{options.interactive} {}

  Result<RelayOutcome> run() {
    if (options_.tty) tell_size();
    while (true) {
      std::array<pollfd, 3> ends{{{socket_.get(), POLLIN, 0},
                                  {signals_.fd(), POLLIN, 0},
                                  {reads_ ? options_.stdio[0] : -1, POLLIN, 0}}};
      if (::poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) return Error::sys("poll");
      if (ends[1].revents != 0) take_signals();
      if (ends[2].revents != 0 && !TRY(take_input()))
        return RelayOutcome{RelayOutcome::How::kDetached, {}};
      if (ends[0].revents == 0) continue;
      if (auto outcome = TRY(take_packet())) return *outcome;
    }
  }

 private:
  void tell_size() {
    if (const auto size = window_size(options_.stdio[0]))
      send_size(socket_.get(), *size).ignore("its end is seen when it is read");
  }

  void take_signals() {
    while (const int signum = signals_.next()) {
      if (signum == SIGWINCH && options_.tty) tell_size();
      if (signum != SIGWINCH && options_.on_signal) options_.on_signal(signum);
    }
  }

  // False: the detach keys were typed.
  Result<bool> take_input() {
    std::array<char, kRelayPayload> bytes;
    const ssize_t got = ::read(options_.stdio[0], bytes.data(), bytes.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (got <= 0) {
      reads_ = false;
      send_relay(socket_.get(), RelayKind::kStdinEnd, 0, {}, 0)
          .ignore("its end is seen when it is read");
      return true;
    }
    std::string_view input{bytes.data(), static_cast<std::size_t>(got)};
    std::string kept;
    if (options_.tty) {
      // ctrl-p is held back until the next key says what it was for.
      for (const char key : input) {
        if (half_detached_ && key == kCtrlQ) return false;
        if (half_detached_) kept += kCtrlP;
        half_detached_ = key == kCtrlP;
        if (!half_detached_) kept += key;
      }
      input = kept;
    }
    if (!input.empty())
      send_relay(socket_.get(), RelayKind::kStdin, 0, input, 0)
          .ignore("its end is seen when it is read");
    return true;
  }

  Result<std::optional<RelayOutcome>> take_packet() {
    using How = RelayOutcome::How;
    auto packet = receive_relay(socket_.get(), MSG_DONTWAIT);
    // A reset is told before what is still in the queue: once it is told, the rest can be read.
    if (!packet.ok() && packet.error().sys_errno() == ECONNRESET)
      packet = receive_relay(socket_.get(), MSG_DONTWAIT);
    if (!packet.ok() && packet.error().code() == Code::kBusy) return std::optional<RelayOutcome>{};
    if (!packet.ok() || !packet.value()) return std::optional{RelayOutcome{How::kClosed, {}}};
    const auto& got = *packet.value();
    switch (got.kind) {
      case RelayKind::kStdout:
        TRY(put(0, got));
        return std::optional<RelayOutcome>{};
      case RelayKind::kStderr:
        TRY(put(1, got));
        return std::optional<RelayOutcome>{};
      case RelayKind::kExit: {
        RelayOutcome outcome{How::kExited, {}};
        if (got.value != kUnknownExit) outcome.exit_code = static_cast<int>(got.value);
        return std::optional{outcome};
      }
      case RelayKind::kFailed:
        return error_from_json(TRY(parse_json(got.payload, "relay")));
      case RelayKind::kDropped:
        return std::optional{RelayOutcome{How::kDropped, {}}};
      default:
        return Error::make(Code::kProtocol, "relay: a packet that is ours to send");
    }
  }

  // What a worker sent twice, because it died in between, is written once.
  Result<> put(std::size_t stream, const RelayPacket& packet) {
    const std::uint64_t end = packet.value + packet.payload.size();
    if (end <= seen_[stream]) return {};
    const std::uint64_t skip = seen_[stream] > packet.value ? seen_[stream] - packet.value : 0;
    seen_[stream] = end;
    return sys::write_all(options_.stdio[stream + 1], std::string_view{packet.payload}.substr(skip),
                          stream == 0 ? "stdout" : "stderr");
  }

  UniqueFd socket_;
  const RelayOptions& options_;
  Signals signals_;
  bool reads_;
  bool half_detached_ = false;
  std::array<std::uint64_t, 2> seen_{};
};

}  // namespace

std::optional<WindowSize> window_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) < 0) return std::nullopt;
  return WindowSize{size.ws_row, size.ws_col};
}

Result<> send_size(int relay, const WindowSize& size) {
  return send_relay(relay, RelayKind::kResize, std::uint64_t{size.rows} << 16 | size.columns, {},
                    0);
}

Result<RelayOutcome> run_relay(UniqueFd relay, const RelayOptions& options) {
  auto signals = TRY(Signals::open(static_cast<bool>(options.on_signal)));
  const bool raw = options.tty && options.interactive && ::isatty(options.stdio[0]) == 1;
  const RawTerminal terminal{raw ? options.stdio[0] : -1};
  return Relay{std::move(relay), options, std::move(signals)}.run();
}

}  // namespace wherry::shim
