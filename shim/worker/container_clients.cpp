// The clients attached to a container: they are fed from the spools, each at its own pace, and feed
// its stdin.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/worker/container_io.h"

namespace wherry::shim {
namespace {

constexpr std::uint64_t kWaitBacklog =
    1024 * 1024;  // bytes; then the container waits for the client ...
constexpr std::uint64_t kDropBacklog = 8 * 1024 * 1024;  // ... or the client is let go

RelayKind kind_of(Stream stream) {
  return stream == Stream::kStdout ? RelayKind::kStdout : RelayKind::kStderr;
}

}  // namespace

Result<> ContainerIo::attach(UniqueFd relay, Slow slow, From from) {
  auto client = std::make_unique<Client>();
  client->relay = std::move(relay);
  client->slow = slow;
  for (const auto stream : kStreams) {
    const auto& spool = log_.spool(stream);
    client->sent[static_cast<std::size_t>(stream)] =
        from == From::kNow ? spool.size() : spool.first_kept();
  }
  Client& added = *client;
  TRY(loop_.watch(added.relay.get(), EPOLLIN,
                  [this, &added](std::uint32_t events) { on_client(added, events); }));
  clients_.push_back(std::move(client));
  on_client(
      added,
      EPOLLIN);  // the size of its terminal may be waiting already, and comes before the first byte
  feed_clients();
  return {};
}

void ContainerIo::feed_clients() {
  for (const auto& client : clients_)
    if (!client->gone) feed(*client);
  adapt();
  sweep();
}

void ContainerIo::feed(Client& client) {
  std::array<char, kRelayPayload> piece;
  client.blocked = false;
  for (const auto stream : kStreams) {
    auto& sent = client.sent[static_cast<std::size_t>(stream)];
    while (sent < log_.spool(stream).size()) {
      const auto got = log_.spool(stream).read(sent, piece);
      if (!got.ok() || got.value() == 0) return let_go(client);
      const auto put = send_relay(client.relay.get(), kind_of(stream), sent,
                                  {piece.data(), got.value()}, MSG_DONTWAIT);
      if (!put.ok()) {
        client.blocked = put.error().code() == Code::kBusy;
        if (!client.blocked) let_go(client);
        return;
      }
      sent += got.value();
    }
  }
  if (last_) say_last(client);
}

void ContainerIo::say_last(Client& client) {
  const auto put =
      send_relay(client.relay.get(), last_->kind, last_->value, last_->payload, MSG_DONTWAIT);
  client.blocked = !put.ok() && put.error().code() == Code::kBusy;
  if (!client.blocked) let_go(client);
}

void ContainerIo::finish(std::optional<int> exit_code) {
  last_ =
      Last{RelayKind::kExit, exit_code ? static_cast<std::uint64_t>(*exit_code) : kUnknownExit, {}};
  feed_clients();
}

void ContainerIo::fail(const Error& error) {
  last_ = Last{RelayKind::kFailed, 0, dump_json(error_to_json(error)).substr(0, kRelayPayload)};
  feed_clients();
}

std::uint64_t ContainerIo::behind(const Client& client) const {
  std::uint64_t bytes = 0;
  for (const auto stream : kStreams)
    bytes += log_.spool(stream).size() - client.sent[static_cast<std::size_t>(stream)];
  return bytes;
}

void ContainerIo::adapt() {
  bool wait = false;
  std::array<std::uint64_t, 2> needed{~std::uint64_t{0}, ~std::uint64_t{0}};
  for (const auto& client : clients_) {
    if (client->gone) continue;
    if (client->slow == Slow::kWait && behind(*client) > kWaitBacklog) wait = true;
    if (client->slow == Slow::kDrop && behind(*client) > kDropBacklog) {
      send_relay(client->relay.get(), RelayKind::kDropped, 0, {}, MSG_DONTWAIT)
          .ignore("its socket is full: it sees the end");
      let_go(*client);
      continue;
    }
    for (std::size_t i = 0; i < needed.size(); ++i)
      needed[i] = std::min(needed[i], client->sent[i]);
  }
  for (const auto stream : kStreams)
    log_.give_back(stream, needed[static_cast<std::size_t>(stream)]);
  const bool draining = drained_ != nullptr;
  paused_ = wait && !draining;
  update_watches();
}

void ContainerIo::on_client(Client& client, std::uint32_t events) {
  if ((events & EPOLLIN) != 0) take_packet(client);
  if ((events & EPOLLERR) != 0 || ((events & EPOLLHUP) != 0 && (events & EPOLLIN) == 0))
    let_go(client);
  if (!client.gone && (events & EPOLLOUT) != 0) feed(client);
  adapt();
  sweep();
}

void ContainerIo::take_packet(Client& client) {
  if (!client.pending_input.empty()) return;
  const auto packet = receive_relay(client.relay.get(), MSG_DONTWAIT);
  if (!packet.ok() && packet.error().code() == Code::kBusy) return;
  if (!packet.ok() || !packet.value()) return let_go(client);
  switch (packet.value()->kind) {
    case RelayKind::kStdin:
      client.pending_input = packet.value()->payload;
      client.fed_input = true;
      return write_input();
    case RelayKind::kStdinEnd:
      input_ended_ = true;
      return write_input();
    case RelayKind::kResize:
      resize(static_cast<unsigned>(packet.value()->value >> 16) & 0xffff,
             packet.value()->value & 0xffff)
          .ignore("a client without a terminal of its own may ask too");
      return;
    default:
      return let_go(client);
  }
}

bool ContainerIo::has_waited_clients() const {
  return std::any_of(clients_.begin(), clients_.end(),
                     [](const auto& client) { return client->slow == Slow::kWait; });
}

bool ContainerIo::wants_input() const {
  return std::any_of(clients_.begin(), clients_.end(),
                     [](const auto& client) { return !client->pending_input.empty(); });
}

void ContainerIo::write_input() {
  for (const auto& client : clients_) {
    auto& bytes = client->pending_input;
    while (!bytes.empty() && input_) {
      const ssize_t put = ::write(input_.get(), bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && errno == EAGAIN) break;
      if (put < 0) {  // nobody reads it any more
        bytes.clear();
        end_input();
        break;
      }
      bytes.erase(0, static_cast<std::size_t>(put));
    }
    if (!input_) bytes.clear();
  }
  if (input_ended_ && !wants_input()) end_input();
}

void ContainerIo::end_input() {
  if (!input_ || options_.terminal) return;  // a terminal ends by the bytes in it
  if (input_watched_) loop_.unwatch(input_.get());
  input_watched_ = false;
  input_.reset();
  keeper_.drop(key("in"));
}

void ContainerIo::sweep() {
  bool freed = false, kept_freed = false;
  for (auto at = clients_.begin(); at != clients_.end();) {
    if (!(*at)->gone) {
      ++at;
      continue;
    }
    loop_.unwatch((*at)->relay.get());
    finish_relay((*at)->relay.get());
    if (options_.stdin_once && (*at)->fed_input) input_ended_ = true;
    kept_freed |= (*at)->slow == Slow::kWait;
    at = clients_.erase(at);
    freed = true;
  }
  if (!freed) return;
  if (kept_freed) keeper_.drop(key("client"));
  if (input_ended_) write_input();
  adapt();
}

void ContainerIo::update_watches() {
  for (const auto stream : kStreams)
    if (open_[static_cast<std::size_t>(stream)])
      loop_.change(source(stream), paused_ ? 0U : EPOLLIN).ignore("it is watched");
  for (const auto& client : clients_) {
    if (client->gone) continue;
    const std::uint32_t in = client->pending_input.empty() ? EPOLLIN : 0U;
    loop_.change(client->relay.get(), in | (client->blocked ? EPOLLOUT : 0U))
        .ignore("it is watched");
  }
  if (!input_ || wants_input() == input_watched_) return;
  input_watched_ = !input_watched_;
  if (!input_watched_) return loop_.unwatch(input_.get());
  loop_
      .watch(input_.get(), EPOLLOUT,
             [this](std::uint32_t) {
               write_input();
               update_watches();
             })
      .ignore("a pipe and a terminal can be watched");
}

}  // namespace wherry::shim
