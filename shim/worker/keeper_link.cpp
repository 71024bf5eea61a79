#include "shim/worker/keeper_link.h"

#include <sys/socket.h>

#include <array>
#include <cstring>

#include "base/log.h"
#include "base/sys.h"

namespace wherry::shim {
namespace {

using keeper::Kind;
using keeper::Message;

Message named(Kind kind, const std::string& name) {
  CHECK(name.size() < keeper::kNameSize, "a name of the keeper's table is too long");
  Message message;
  message.kind = kind;
  std::memcpy(message.name, name.c_str(), name.size() + 1);
  return message;
}

}  // namespace

Result<KeeperLink> KeeperLink::open(UniqueFd socket, Deadline deadline) {
  KeeperLink link{std::move(socket)};
  TRY(sys::set_cloexec(link.socket_.get(), true));
  while (!link.ready_) {
    if (TRY(sys::poll_one(link.socket_.get(), POLLIN, deadline)) == 0)
      return Error::make(Code::kTimeout, "the keeper does not hand over");
    if (!TRY(link.receive_one(0)))
      return Error::make(Code::kProtocol, "the keeper ended before it had handed over");
  }
  return link;
}

std::optional<UniqueFd> KeeperLink::take(const std::string& name) {
  auto found = handed_over_.extract(name);
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped());
}

void KeeperLink::send(const Message& message, int fd) {
  if (!socket_) return;
  std::string packet(sizeof message, '\0');
  std::memcpy(packet.data(), &message, sizeof message);
  const auto sent =
      fd >= 0 ? sys::sendmsg(socket_.get(), packet, {&fd, 1}) : sys::sendmsg(socket_.get(), packet);
  if (!sent.ok() && sent.error().sys_errno() != EPIPE && sent.error().sys_errno() != ECONNRESET)
    LOG(kError, "keeper: ", sent.error().message());
}

void KeeperLink::store(const std::string& name, int fd) {
  send(named(Kind::kStore, name), fd);
}
void KeeperLink::drop(const std::string& name) {
  send(named(Kind::kDrop, name), -1);
}
void KeeperLink::bye() {
  send(named(Kind::kBye, {}), -1);
}

void KeeperLink::acknowledge(std::uint64_t serial) {
  auto message = named(Kind::kAck, {});
  message.serial = serial;
  send(message, -1);
}

Result<bool> KeeperLink::receive_one(int flags) {
  std::array<char, sizeof(Message)> buffer;
  auto got = TRY(sys::recvmsg(socket_.get(), buffer, flags));
  if (got.size == 0) return false;
  Message message;
  if (got.size != sizeof message || got.truncated)
    return Error::make(Code::kProtocol, "keeper: a packet of a wrong size");
  std::memcpy(&message, buffer.data(), sizeof message);
  if (message.version != keeper::kVersion || message.name[keeper::kNameSize - 1] != '\0')
    return Error::make(Code::kProtocol, "keeper: it speaks another version");
  switch (message.kind) {
    case Kind::kFd:
      if (got.fds.size() == 1) handed_over_.insert_or_assign(message.name, std::move(got.fds[0]));
      break;
    case Kind::kExit:
      exits_.push_back(
          {message.serial, message.pid, message.start_ticks, message.status, message.time_ns});
      break;
    case Kind::kReady:
      ready_ = true;
      keeper_pid_ = message.pid;
      runs_ = message.status;
      break;
    case Kind::kStore:
    case Kind::kDrop:
    case Kind::kAck:
    case Kind::kBye:
      return Error::make(Code::kProtocol, "keeper: a packet that is ours to send");
  }
  return true;
}

Result<bool> KeeperLink::receive() {
  while (socket_) {
    auto got = receive_one(MSG_DONTWAIT);
    if (!got.ok() && got.error().sys_errno() == EAGAIN) return true;
    if (got.ok() && got.value()) continue;
    socket_.reset();
    if (!got.ok() && got.error().sys_errno() != ECONNRESET) return got;
  }
  return false;
}

std::optional<ChildExit> KeeperLink::next_exit() {
  if (exits_.empty()) return std::nullopt;
  const ChildExit exit = exits_.front();
  exits_.pop_front();
  return exit;
}

}  // namespace wherry::shim
