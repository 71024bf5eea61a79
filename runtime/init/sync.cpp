#include "runtime/init/sync.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/sys.h"
#include "base/text.h"

namespace wherry::init {
namespace {

struct Header {
  std::uint16_t step, where;
  std::int32_t err;
  std::int32_t pid;
  std::uint8_t code;
  std::uint8_t reserved[3];
};
static_assert(sizeof(Header) == 16);

constexpr std::array<std::string_view, 9> kStepNames = {"need maps", "mapped",    "console",
                                                        "mounted",   "hooks run", "ready",
                                                        "recorded",  "entered",   "failed"};
constexpr std::array<std::string_view, 26> kWhereNames = {"join namespaces",
                                                          "session",
                                                          "place in cgroups",
                                                          "make namespaces",
                                                          "id maps",
                                                          "isolate mounts",
                                                          "attach root",
                                                          "mounts",
                                                          "devices",
                                                          "console",
                                                          "hooks",
                                                          "masked paths",
                                                          "enter root",
                                                          "names and loopback",
                                                          "sysctl",
                                                          "limits",
                                                          "check user",
                                                          "keyring",
                                                          "working directory",
                                                          "descriptors",
                                                          "ready",
                                                          "gate",
                                                          "pid namespace",
                                                          "credentials",
                                                          "seccomp",
                                                          "exec"};
static_assert(kWhereNames.size() == static_cast<std::size_t>(Where::kExec) + 1);

}  // namespace

std::string_view to_string(Step step) {
  return kStepNames[static_cast<std::size_t>(step)];
}
std::string_view to_string(Where where) {
  return kWhereNames[static_cast<std::size_t>(where)];
}

std::string encode(const Message& message) {
  Header header{};
  header.step = static_cast<std::uint16_t>(message.step);
  header.where = static_cast<std::uint16_t>(message.where);
  header.err = message.err;
  header.pid = message.pid;
  header.code = message.code;
  std::string packet(sizeof header, '\0');
  std::memcpy(packet.data(), &header, sizeof header);
  packet.append(message.text, 0, kMostText);
  return packet;
}

Result<Message> decode(std::string_view packet) {
  Header header{};
  if (packet.size() < sizeof header || packet.size() > sizeof header + kMostText)
    return Error::make(Code::kProtocol,
                       cat("a message of ", packet.size(), " bytes from the child"));
  std::memcpy(&header, packet.data(), sizeof header);
  if (header.step > static_cast<std::uint16_t>(Step::kFailed) ||
      header.where > static_cast<std::uint16_t>(Where::kExec) ||
      header.code > static_cast<std::uint8_t>(Code::kProtocol))
    return Error::make(Code::kProtocol, "an unknown message from the child");
  Message message;
  message.step = static_cast<Step>(header.step);
  message.where = static_cast<Where>(header.where);
  message.err = header.err;
  message.pid = header.pid;
  message.code = header.code;
  message.text = packet.substr(sizeof header);
  return message;
}

Message failure(Where where, const Error& error) {
  Message failed;
  failed.step = Step::kFailed;
  failed.where = where;
  failed.err = error.sys_errno();
  failed.code = static_cast<std::uint8_t>(error.code());
  // The hint behind a NUL, which no message has.
  failed.text = error.message();
  if (!error.hint().empty()) failed.text += '\0' + error.hint();
  return failed;
}

Error to_error(const Message& failed) {
  const auto end = std::min(failed.text.find('\0'), failed.text.size());
  auto error =
      Error::rebuilt(static_cast<Code>(failed.code), failed.err, failed.text.substr(0, end))
          .step(to_string(failed.where));
  if (end < failed.text.size()) return std::move(error).hint(failed.text.substr(end + 1));
  return error;
}

Result<std::pair<Channel, Channel>> Channel::make() {
  auto [creator, child] = TRY(sys::socketpair(SOCK_SEQPACKET));
  return std::pair{Channel{std::move(creator)}, Channel{std::move(child)}};
}

Result<> Channel::move_above(int least) {
  if (socket_.get() >= least) return {};
  const int moved = ::fcntl(socket_.get(), F_DUPFD_CLOEXEC, least);
  if (moved < 0) return Error::sys("fcntl(F_DUPFD_CLOEXEC)", cat("fd ", socket_.get()));
  socket_.reset(moved);
  return {};
}

Result<> Channel::send(const Message& message) const {
  if (message.fd) {
    const int fd = message.fd.get();
    return sys::sendmsg(socket_.get(), encode(message), {&fd, 1});
  }
  return sys::sendmsg(socket_.get(), encode(message));
}

Result<Message> Channel::receive(Deadline deadline) const {
  if (TRY(sys::poll_one(socket_.get(), POLLIN, deadline)) == 0)
    return Error::make(Code::kTimeout, "the other side did not answer in time");
  std::array<char, sizeof(Header) + kMostText> packet;
  auto received = TRY(sys::recvmsg(socket_.get(), packet));
  if (received.size == 0)
    return Error::make(Code::kProtocol, "the other side ended without a word");
  if (received.truncated) return Error::make(Code::kProtocol, "a message is too long");
  auto message = TRY(decode({packet.data(), received.size}));
  if (!received.fds.empty()) message.fd = std::move(received.fds.front());
  if (message.step == Step::kFailed) return to_error(message);
  if (message.step == Step::kConsole && !message.fd)
    return Error::make(Code::kProtocol, "a terminal without its descriptor");
  if (message.step == Step::kEntered && (!message.fd || message.pid <= 0))
    return Error::make(Code::kProtocol, "a process without its descriptor");
  return message;
}

Sequence::Sequence(Parts parts) {
  if (parts.maps) steps_.insert(steps_.end(), {Step::kNeedMaps, Step::kMapped});
  if (parts.terminal) steps_.push_back(Step::kConsole);
  if (parts.hooks) steps_.insert(steps_.end(), {Step::kMounted, Step::kHooksRun});
  steps_.insert(steps_.end(), {Step::kReady, Step::kRecorded});
}

Result<> Sequence::accept(Step step) {
  if (done() || steps_[next_] != step)
    return Error::make(Code::kProtocol, cat("message '", to_string(step), "' out of its turn"));
  ++next_;
  return {};
}

}  // namespace wherry::init
