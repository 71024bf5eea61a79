// The relay: how a client's terminal or pipes and a container's streams are joined, over a
// SOCK_SEQPACKET pair of which the client keeps one end and passes the other with its request. One
// packet is one header and its payload.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace wherry::shim {

inline constexpr std::size_t kRelayPayload = 32 * 1024;  // at most, in bytes

enum class RelayKind : std::uint8_t {
  kStdin = 'i',     // client: bytes
  kStdinEnd = 'c',  // client: no more of them
  kResize = 'r',    // client: value = rows << 16 | columns
  kStdout = 'o',    // worker: bytes; value = place of the first one in the stream: what came before
                    // may be sent again
  kStderr = 'e',    // worker: the same
  kExit = 'x',      // worker: value = exit code, or kUnknownExit; the last packet
  kFailed = 'f',    // worker: error JSON; the last packet
  kDropped = 'd',   // worker: the client was too slow, the rest is in the log; the last packet
};
inline constexpr std::uint64_t kUnknownExit = ~std::uint64_t{0};

struct RelayPacket {
  RelayKind kind{};
  std::uint64_t value = 0;
  std::string payload;
};

// kInvalid unless it is a socket as a relay needs it; a passed descriptor may be anything.
Result<> check_relay(int socket);
// kBusy: the socket is full (with MSG_DONTWAIT in `flags`). kNotFound: the peer is gone.
Result<> send_relay(int socket, RelayKind kind, std::uint64_t value, std::string_view payload,
                    int flags);
// nullopt: the peer has closed. kBusy: nothing there (with MSG_DONTWAIT).
Result<std::optional<RelayPacket>> receive_relay(int socket, int flags);

// Before the end of a relay is closed: unread packets would reset the connection, and the peer
// would lose what it has not read yet (unix_release_sock() in the kernel).
void finish_relay(int socket);

}  // namespace wherry::shim
