#include "shim/client/client.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>

#include "base/json.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/protocol/boot_plan.h"

namespace wherry::shim {

Result<Client> Client::connect(int state_dir, Deadline deadline) {
  UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!socket) return Error::sys("socket");
  // sun_path holds 107 bytes; by way of the descriptor every state directory is near.
  const auto path = cat(fd_path(state_dir), "/", kSocketFile);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  timeval wait{};
  const auto left = deadline.left();
  wait.tv_sec = left.count() / 1000;
  wait.tv_usec = left.count() % 1000 * 1000 + 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &wait,
               sizeof wait);  // a full backlog makes connect wait
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) {
    if (errno == ECONNREFUSED) return Error::sys("connect", kSocketFile).code(Code::kNotFound);
    if (errno == EAGAIN) return Error::sys("connect", kSocketFile).code(Code::kTimeout);
    return Error::sys("connect", kSocketFile);
  }
  return Client{std::move(socket)};
}

Result<> Client::send(const std::string& method, const Json& params, std::span<const int> fds,
                      Deadline deadline) {
  const auto line = request_line(++last_id_, method, params);
  std::string_view rest = line;
  bool first = true;
  while (!rest.empty()) {
    if (TRY(sys::poll_one(socket_.get(), POLLOUT, deadline)) == 0)
      return Error::make(Code::kTimeout, cat("the shim does not take '", method, "'"));
    // The descriptors go with the first byte alone, so that a short write cannot pass them twice.
    const auto piece = first ? rest.substr(0, 1) : rest;
    auto put = first && !fds.empty() ? sys::sendmsg(socket_.get(), piece, fds)
                                     : sys::write_all(socket_.get(), piece, "shim");
    if (!put.ok()) return put;
    rest.remove_prefix(piece.size());
    first = false;
  }
  return {};
}

Result<Json> Client::receive(Deadline deadline) {
  std::array<char, 65536> bytes;
  while (true) {
    if (const auto line = lines_.next()) return parse_reply(*line, last_id_);
    if (TRY(sys::poll_one(socket_.get(), POLLIN, deadline)) == 0)
      return Error::make(Code::kTimeout, "the shim does not answer");
    const auto got = TRY(sys::read(socket_.get(), bytes, "shim"));
    if (got == 0) return Error::sys("read", "shim", ECONNRESET);
    TRY(lines_.add({bytes.data(), got}));
  }
}

Result<Json> Client::call(const std::string& method, const Json& params, std::span<const int> fds,
                          Deadline deadline) {
  auto sent = send(method, params, fds, deadline);
  if (sent.ok()) return receive(deadline);
  if (!is_hang_up(sent.error())) return std::move(sent).error();
  // Whoever refuses a connection says why and hangs up, maybe before we have asked.
  auto said = receive(deadline);
  if (said.ok() || !is_hang_up(said.error())) return said;
  return std::move(sent).error();
}

bool is_hang_up(const Error& error) {
  return error.sys_errno() == ECONNRESET || error.sys_errno() == EPIPE;
}

}  // namespace wherry::shim
