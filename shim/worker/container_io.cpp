#include "shim/worker/container_io.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry::shim {
namespace {

constexpr std::size_t kPullAtOnce = 1024 * 1024;
constexpr std::array<const char*, 2> kFifoNames{"out", "err"};

// The container gets its FIFO opened for reading and writing: with no reader left (keeper and
// worker killed together) it would die of SIGPIPE; so it waits until somebody recovers it.
Result<UniqueFd> make_fifo(int dir, const char* name, uid_t uid, gid_t gid) {
  sys::unlinkat(dir, name, 0).ignore("there is none but after a restart");
  TRY(sys::mknodat(dir, name, S_IFIFO | 0600, 0));
  TRY(sys::fchownat(dir, name, uid, gid, AT_SYMLINK_NOFOLLOW));
  return sys::openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
}

}  // namespace

Result<std::unique_ptr<ContainerIo>> ContainerIo::create(EventLoop& loop, KeeperLink& keeper,
                                                         const Options& options) {
  auto log = TRY(ContainerLog::create(options.log_dir, options.log_name));
  std::unique_ptr<ContainerIo> io{new ContainerIo{loop, keeper, options, std::move(log)}};
  if (!options.terminal) TRY(io->open_fifos());
  keeper.store(io->key("spool-out"), io->log_.spool(Stream::kStdout).fd());
  keeper.store(io->key("spool-err"), io->log_.spool(Stream::kStderr).fd());
  keeper.store(io->key("cursor"), io->log_.cursor_fd());
  return io;
}

Result<> ContainerIo::open_fifos() {
  for (const auto stream : kStreams) {
    const auto i = static_cast<std::size_t>(stream);
    sources_[i] = TRY(make_fifo(options_.record_dir, kFifoNames[i], options_.uid, options_.gid));
    child_ends_[i + 1] = TRY(sys::openat(options_.record_dir, kFifoNames[i], O_RDWR | O_NOFOLLOW));
    keeper_.store(key(kFifoNames[i]), sources_[i].get());
  }
  if (options_.wants_stdin) {
    auto [read_end, write_end] = TRY(sys::pipe2(0));
    TRY(sys::fchown(read_end.get(), options_.uid, options_.gid, "stdin"));
    TRY(sys::set_nonblock(write_end.get(), true));
    keeper_.store(key("in"), write_end.get());
    child_ends_[0] = std::move(read_end);
    input_ = std::move(write_end);
  }
  return {};
}

Result<std::unique_ptr<ContainerIo>> ContainerIo::adopt(EventLoop& loop, KeeperLink& keeper,
                                                        const Options& options) {
  const std::string prefix = cat("c/", options.name, "/");
  const auto take = [&](const char* what) {
    return keeper.take(prefix + what).value_or(UniqueFd{});
  };
  ContainerLog::Parts parts{take("spool-out"), take("spool-err"), take("cursor")};
  if (!parts.out || !parts.err || !parts.cursor)
    return Error::make(Code::kNotFound, cat("the keeper holds no streams of '", options.name, "'"));
  auto log = TRY(ContainerLog::adopt(std::move(parts), options.log_dir, options.log_name));
  std::unique_ptr<ContainerIo> io{new ContainerIo{loop, keeper, options, std::move(log)}};
  if (options.terminal) {
    io->sources_[0] = take("pty");
    io->tty_pipe_ = {take("pty-pipe-out"), take("pty-pipe-in")};
    if (io->sources_[0]) io->input_ = TRY(sys::dup(io->sources_[0].get()));
  } else {
    io->sources_ = {take("out"), take("err")};
    io->input_ = take("in");
  }
  TRY(io->watch_sources());
  if (auto client = keeper.take(prefix + "client"))
    TRY(io->attach(std::move(*client), Slow::kWait, From::kKept));
  return io;
}

ContainerIo::~ContainerIo() {
  for (const auto& client : clients_) loop_.unwatch(client->relay.get());
  for (const auto stream : kStreams)
    if (source(stream) >= 0) loop_.unwatch(source(stream));
  if (input_watched_) loop_.unwatch(input_.get());
  loop_.cancel(drain_timer_);
}

std::array<int, 3> ContainerIo::child_stdio() const {
  return {child_ends_[0].get(), child_ends_[1].get(), child_ends_[2].get()};
}

Result<> ContainerIo::begin(UniqueFd console) {
  for (auto& end : child_ends_) end.reset();
  if (options_.terminal) {
    if (!console) return Error::make(Code::kProtocol, "there is no terminal");
    TRY(sys::set_nonblock(console.get(), true));
    tty_pipe_ = TRY(sys::pipe2(O_NONBLOCK));
    input_ = TRY(sys::dup(console.get()));
    sources_[0] = std::move(console);
    keeper_.store(key("pty"), sources_[0].get());
    keeper_.store(key("pty-pipe-out"), tty_pipe_.first.get());
    keeper_.store(key("pty-pipe-in"), tty_pipe_.second.get());
  }
  return watch_sources();
}

Result<> ContainerIo::watch_sources() {
  for (const auto stream : kStreams) {
    if (source(stream) < 0) continue;
    TRY(loop_.watch(source(stream), EPOLLIN, [this, stream](std::uint32_t) { pump(stream); }));
    open_[static_cast<std::size_t>(stream)] = true;
  }
  return {};
}

void ContainerIo::pump(Stream stream) {
  auto& spool = log_.spool(stream);
  const auto pulled = options_.terminal
                          ? spool.pull_terminal(source(stream), tty_pipe_.second.get(),
                                                tty_pipe_.first.get(), kPullAtOnce)
                          : spool.pull(source(stream), kPullAtOnce);
  if (!pulled.ok()) LOG(kError, "container '", options_.name, "': ", pulled.error().message());
  const bool ended = !pulled.ok() || pulled.value() == Spool::Pulled::kEnd;
  log_.write_out(stream, ended ? StreamEnd::kEnded : StreamEnd::kOpen);
  feed_clients();
  if (ended) end_stream(stream);
}

void ContainerIo::end_stream(Stream stream) {
  const auto i = static_cast<std::size_t>(stream);
  if (!open_[i]) return;
  open_[i] = false;
  loop_.unwatch(sources_[i].get());
  sources_[i].reset();
  keeper_.drop(key(options_.terminal ? "pty" : kFifoNames[i]));
  check_drained();
}

void ContainerIo::check_drained() {
  if (!drained_ || open_[0] || open_[1]) return;
  loop_.cancel(drain_timer_);
  drain_timer_ = 0;
  // From the loop, not from here: the caller may destroy us in it.
  loop_.after(Millis{0}, std::exchange(drained_, nullptr));
}

void ContainerIo::drain(Millis most, std::function<void()> drained) {
  drained_ = std::move(drained);
  paused_ = false;  // what is left is at most what the FIFOs hold
  update_watches();
  // A process that init left behind may hold the streams open for ever.
  drain_timer_ = loop_.after(most, [this] {
    for (const auto stream : kStreams) {
      if (!open_[static_cast<std::size_t>(stream)]) continue;
      pump(stream);
      log_.write_out(stream, StreamEnd::kEnded);
      end_stream(stream);
    }
  });
  check_drained();
}

Result<> ContainerIo::resize(unsigned rows, unsigned columns) {
  if (!options_.terminal || !input_) return Error::make(Code::kState, "it has no terminal");
  winsize size{};
  size.ws_row = static_cast<unsigned short>(rows);
  size.ws_col = static_cast<unsigned short>(columns);
  if (::ioctl(input_.get(), TIOCSWINSZ, &size) < 0) return Error::sys("ioctl(TIOCSWINSZ)");
  return {};
}

void ContainerIo::forget() {
  keeper_.drop(key(""));
}

}  // namespace wherry::shim
