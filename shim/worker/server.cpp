#include "shim/worker/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/protocol/rpc.h"
#include "shim/worker/params.h"

namespace wherry::shim {
namespace {

constexpr std::size_t kMostConnections = 64;
constexpr std::size_t kMostOutput = 8 * 1024 * 1024;  // bytes of replies that nobody reads
constexpr unsigned kMostWaiting = 256;  // requests of one connection without their reply
constexpr Millis kTransferWait{30'000};
constexpr Millis kIdleWait{60'000};  // a connection that asks nothing and waits for nothing

// Root, and whoever we run as: the directory keeps others away already.
bool allowed(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

void refuse(int socket) {
  const auto line = error_line(
      nullptr, Error::make(Code::kBusy, cat(kMostConnections, " connections are open already"))
                   .hint("one that is idle is closed after a minute"));
  ::send(socket, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

Result<std::unique_ptr<Server>> Server::open(Supervisor& supervisor, UniqueFd listener) {
  TRY(sys::set_nonblock(listener.get(), true));
  std::unique_ptr<Server> server{new Server{supervisor, std::move(listener)}};
  auto* self = server.get();
  TRY(supervisor.context().loop.watch(self->listener_.get(), EPOLLIN,
                                      [self](std::uint32_t) { self->on_accept(); }));
  return server;
}

Server::~Server() {
  close();
  for (const auto& connection : connections_) {
    loop().unwatch(connection->socket.get());
    loop().cancel(connection->timer);
  }
}

void Server::close() {
  if (closed_) return;
  closed_ = true;
  loop().unwatch(listener_.get());
}

bool Server::idle() const {
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const auto& connection) { return connection->output.empty(); });
}

void Server::on_accept() {
  while (true) {
    UniqueFd socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!socket) return;
    if (!allowed(socket.get())) continue;
    if (connections_.size() >= kMostConnections) {
      refuse(socket.get());
      continue;
    }
    auto connection = std::make_unique<Connection>();
    connection->id = ++last_id_;
    connection->socket = std::move(socket);
    auto& added = *connection;
    const auto watched =
        loop().watch(added.socket.get(), EPOLLIN,
                     [this, &added](std::uint32_t events) { on_ready(added, events); });
    if (!watched.ok()) continue;
    connections_.push_back(std::move(connection));
    set_timer(added);
  }
}

Server::Connection* Server::find(std::uint64_t id) {
  for (const auto& connection : connections_)
    if (connection->id == id && !connection->gone) return connection.get();
  return nullptr;
}

void Server::sweep() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    if (!(*at)->gone) {
      ++at;
      continue;
    }
    loop().unwatch((*at)->socket.get());
    loop().cancel((*at)->timer);
    at = connections_.erase(at);
  }
}

void Server::on_ready(Connection& connection, std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) write(connection);
  if ((events & EPOLLIN) != 0)
    read(connection);
  else if ((events & (EPOLLHUP | EPOLLERR)) != 0)
    connection.gone = true;
  sweep();
}

void Server::read(Connection& connection) {
  std::array<char, 65536> bytes;
  auto got = sys::recvmsg(connection.socket.get(), bytes, MSG_DONTWAIT);
  if (!got.ok() && got.error().sys_errno() == EAGAIN) return;
  if (!got.ok() || got.value().size == 0 || got.value().truncated) {
    connection.gone = true;
    return;
  }
  for (auto& fd : got.value().fds) connection.fds.push_back(std::move(fd));
  if (connection.fds.size() > kMostRequestFds ||
      !connection.lines.add({bytes.data(), got.value().size}).ok()) {
    connection.gone = true;
    return;
  }
  while (const auto line = connection.lines.next()) handle(connection, *line);
  set_timer(connection);
}

void Server::set_timer(Connection& connection) {
  loop().cancel(connection.timer);
  connection.timer = 0;
  const bool transfers = !connection.lines.empty() || !connection.output.empty();
  if (!transfers && connection.waiting > 0) return;
  connection.timer =
      loop().after(transfers ? kTransferWait : kIdleWait, [this, id = connection.id] {
        if (auto* late = find(id)) late->gone = true;
        sweep();
      });
}

void Server::handle(Connection& connection, const std::string& line) {
  auto fds = std::move(connection.fds);
  connection.fds.clear();
  auto request = parse_request(line);
  if (!request.ok()) return answer(connection.id, nullptr, std::move(request).error());
  if (auto right = check_params(request.value().params); !right.ok())
    return answer(connection.id, request.value().id, std::move(right).error());
  if (connection.waiting >= kMostWaiting)
    return answer(connection.id, request.value().id,
                  Error::make(Code::kBusy, cat(kMostWaiting, " requests of this connection wait")));
  ++connection.waiting;
  const Json id = request.value().id;
  call(std::move(request).value(), std::move(fds),
       [this, connection_id = connection.id, id](Result<Json> result) {
         if (auto* asker = find(connection_id)) --asker->waiting;
         if (!id.is_null()) answer(connection_id, id, result);
       });
}

void Server::answer(std::uint64_t connection_id, const Json& id, const Result<Json>& result) {
  auto* connection = find(connection_id);
  if (connection == nullptr) return;
  connection->output +=
      result.ok() ? result_line(id, result.value()) : error_line(id, result.error());
  if (connection->output.size() > kMostOutput) connection->gone = true;
  write(*connection);
}

void Server::write(Connection& connection) {
  while (!connection.output.empty() && !connection.gone) {
    const ssize_t put = ::send(connection.socket.get(), connection.output.data(),
                               connection.output.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) break;
    if (put < 0) {
      connection.gone = true;
      return;
    }
    connection.output.erase(0, static_cast<std::size_t>(put));
  }
  loop()
      .change(connection.socket.get(), EPOLLIN | (connection.output.empty() ? 0U : EPOLLOUT))
      .ignore("it is watched");
  set_timer(connection);
}

}  // namespace wherry::shim
