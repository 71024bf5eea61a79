#include "shim/protocol/relay.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstring>

#include "base/sys.h"

namespace wherry::shim {
namespace {
struct Header {
  RelayKind kind{};
  std::array<std::uint8_t, 7> zero{};
  std::uint64_t value = 0;
};
static_assert(sizeof(Header) == 16);

bool known(RelayKind kind) {
  switch (kind) {
    case RelayKind::kStdin:
    case RelayKind::kStdinEnd:
    case RelayKind::kResize:
    case RelayKind::kStdout:
    case RelayKind::kStderr:
    case RelayKind::kExit:
    case RelayKind::kFailed:
    case RelayKind::kDropped:
      return true;
  }
  return false;
}

Error failed(const char* call) {
  if (errno == EAGAIN) return Error::sys(call, "relay").code(Code::kBusy);
  if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
    return Error::sys(call, "relay").code(Code::kNotFound);
  return Error::sys(call, "relay");
}
}  // namespace

Result<> check_relay(int socket) {
  int type = 0, domain = 0;
  socklen_t size = sizeof type;
  const bool right = ::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
                     ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
                     type == SOCK_SEQPACKET && domain == AF_UNIX;
  if (right) return {};
  return Error::make(Code::kInvalid, "the relay is not a SOCK_SEQPACKET socket");
}

Result<> send_relay(int socket, RelayKind kind, std::uint64_t value, std::string_view payload,
                    int flags) {
  Header header;
  header.kind = kind;
  header.value = value;
  std::array<iovec, 2> pieces{
      {{&header, sizeof header}, {const_cast<char*>(payload.data()), payload.size()}}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  while (::sendmsg(socket, &message, flags | MSG_NOSIGNAL) < 0)
    if (errno != EINTR) return failed("sendmsg");
  return {};
}

Result<std::optional<RelayPacket>> receive_relay(int socket, int flags) {
  std::array<char, sizeof(Header) + kRelayPayload> buffer;
  const auto got = sys::recvmsg(socket, buffer, flags);
  if (!got.ok()) {
    errno = got.error().sys_errno();
    return failed("recvmsg");
  }
  if (got.value().size == 0) return std::optional<RelayPacket>{};
  Header header;
  if (got.value().size < sizeof header || got.value().truncated)
    return Error::make(Code::kProtocol, "relay: a packet of the wrong size");
  std::memcpy(&header, buffer.data(), sizeof header);
  if (!known(header.kind))
    return Error::make(Code::kProtocol, "relay: a packet of an unknown kind");
  return std::optional<RelayPacket>{
      RelayPacket{header.kind,
                  header.value,
                  {buffer.data() + sizeof header, got.value().size - sizeof header}}};
}

void finish_relay(int socket) {
  ::shutdown(socket, SHUT_RD);  // what is sent from now on fails there
  std::array<char, 16> rest;
  while (::recv(socket, rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
  }
}

}  // namespace wherry::shim
