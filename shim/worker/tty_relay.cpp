#include "shim/worker/tty_relay.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/sys.h"
#include "shim/protocol/relay.h"

namespace wherry::shim {
namespace {
constexpr Millis kFinishWait{2'000};
}

Result<std::unique_ptr<TtyRelay>> TtyRelay::create(EventLoop& loop, UniqueFd master,
                                                   UniqueFd client) {
  TRY(sys::set_nonblock(master.get(), true));
  std::unique_ptr<TtyRelay> relay{new TtyRelay{loop, std::move(master), std::move(client)}};
  auto* self = relay.get();
  TRY(loop.watch(self->master_.get(), EPOLLIN,
                 [self](std::uint32_t events) { self->on_master(events); }));
  TRY(loop.watch(self->client_.get(), EPOLLIN,
                 [self](std::uint32_t events) { self->on_client(events); }));
  return relay;
}

TtyRelay::~TtyRelay() {
  loop_.cancel(timer_);
  close_client();
  close_master();
}

void TtyRelay::close_client() {
  if (!client_) return;
  loop_.unwatch(client_.get());
  finish_relay(client_.get());
  client_.reset();
}

void TtyRelay::close_master() {
  if (master_) loop_.unwatch(master_.get());
  master_.reset();
}

bool TtyRelay::read_master() {
  if (!master_ || !output_.empty()) return false;
  std::array<char, kRelayPayload> bytes;
  const ssize_t got = ::read(master_.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {  // EIO: nobody has the terminal open
    close_master();
    return false;
  }
  if (client_) output_.assign(bytes.data(), static_cast<std::size_t>(got));
  return true;
}

bool TtyRelay::flush() {
  if (output_.empty() || !client_) return true;
  const auto put = send_relay(client_.get(), RelayKind::kStdout, sent_, output_, MSG_DONTWAIT);
  if (!put.ok() && put.error().code() == Code::kBusy) return false;
  if (put.ok()) sent_ += output_.size();
  output_.clear();
  if (!put.ok()) close_client();
  return true;
}

void TtyRelay::on_master(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) write_input();
  if ((events & (EPOLLIN | EPOLLHUP)) != 0) move();
  update();
}

void TtyRelay::on_client(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) move();
  if ((events & EPOLLIN) != 0 && input_.empty()) {
    const auto packet = receive_relay(client_.get(), MSG_DONTWAIT);
    if (packet.ok() && packet.value() && packet.value()->kind == RelayKind::kStdin) {
      input_ = packet.value()->payload;
      write_input();
    } else if (packet.ok() && packet.value() && packet.value()->kind == RelayKind::kResize &&
               master_) {
      winsize size{};
      size.ws_row = static_cast<unsigned short>(packet.value()->value >> 16);
      size.ws_col = static_cast<unsigned short>(packet.value()->value);
      ::ioctl(master_.get(), TIOCSWINSZ, &size);
    } else if ((packet.ok() && !packet.value()) ||
               (!packet.ok() && packet.error().code() != Code::kBusy)) {
      close_client();
    }
  } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    close_client();
  }
  update();
}

void TtyRelay::write_input() {
  while (!input_.empty() && master_) {
    const ssize_t put = ::write(master_.get(), input_.data(), input_.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return;
    if (put < 0) break;
    input_.erase(0, static_cast<std::size_t>(put));
  }
  input_.clear();
}

// Interest is off while the other side cannot take more: nothing spins (REL-27).
void TtyRelay::update() {
  if (master_)
    loop_.change(master_.get(), (output_.empty() ? EPOLLIN : 0U) | (input_.empty() ? 0U : EPOLLOUT))
        .ignore("it is watched");
  if (client_)
    loop_.change(client_.get(), (input_.empty() ? EPOLLIN : 0U) | (output_.empty() ? 0U : EPOLLOUT))
        .ignore("it is watched");
}

// While the process lives one piece at a time is enough: the loop comes again.
void TtyRelay::move() {
  if (!flush()) return;
  if (!done_) {
    if (read_master()) flush();
    return;
  }
  while (read_master())
    if (!flush()) return;
  complete();
}

void TtyRelay::finish(std::optional<int> exit_code, std::function<void()> done) {
  exit_code_ = exit_code;
  done_ = std::move(done);
  timer_ = loop_.after(kFinishWait, [this] { complete(); });
  move();
  update();
}

void TtyRelay::complete() {
  if (!done_) return;
  loop_.cancel(timer_);
  if (client_)
    send_relay(client_.get(), RelayKind::kExit,
               exit_code_ ? static_cast<std::uint64_t>(*exit_code_) : kUnknownExit, {},
               MSG_DONTWAIT)
        .ignore("the reply to its request tells the same");
  close_client();
  close_master();
  loop_.after(Millis{0}, std::exchange(done_, nullptr));
}

}  // namespace wherry::shim
