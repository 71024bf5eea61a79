// The conversation between the creator and the process that becomes the container.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace wherry::init {

// One SOCK_SEQPACKET pair: a message is a packet, so none is half read and the end of the peer is
// seen at once.
//
//      creator                            child
//        namespaces are made
//               <-- kConsole(fd) --       its terminal's master (only with one)
//               <-- kReady --------       everything done that can fail before start
//      record   --- kRecorded ---->       the record is on disk: from here on the child outlives
//      its creator
//
//               <-- kEntered(pidfd, pid)  only of an exec into a pid namespace: the process that
//                                         becomes the payload is there, as a child of this one
//               --- kRecorded ---->       its identity is known; this one ends
//
//      and kFailed(where, errno, text) from the child at any moment, which ends it.
//
// Until kRecorded the child ends itself when the creator does (end of the socket). After it only
// the two FIFOs count: start writes one byte into `gate`; the child answers on `result` with 'X'
// right before execve, and with a failed message when that did not work. The end of `result` is the
// end of the story.
enum class Step : std::uint16_t { kConsole, kReady, kRecorded, kEntered, kFailed };
std::string_view to_string(Step step);

// What the child was doing when it failed: the steps in their order.
enum class Where : std::uint16_t {
  kJoin,
  kSession,
  kPlace,
  kNamespaces,
  kIsolate,
  kRoot,
  kMounts,
  kDevices,
  kConsole,
  kMasks,
  kEnterRoot,
  kHostname,
  kSysctl,
  kLimits,
  kUserCheck,
  kKeyring,
  kWorkingDirectory,
  kDescriptors,
  kReady,
  kGate,
  kPidNamespace,
  kCredentials,
  kSeccomp,
  kExec,
};
std::string_view to_string(Where where);  // "mounts", "seccomp", ...

struct Message {
  Step step{};
  Where where{};
  int err = 0;
  std::uint8_t code = 0;  // of Code, with kFailed
  std::string text;       // at most kMostText bytes
  pid_t pid = 0;          // with kEntered: its number for the sender
  UniqueFd fd;            // with kConsole and kEntered
};
constexpr std::size_t kMostText = 8192;

std::string encode(const Message& message);
Result<Message> decode(std::string_view packet);
Message failure(Where where, const Error& error);  // a kFailed message
Error to_error(const Message& failed);             // the child's failure as it happened there

class Channel {
 public:
  static Result<std::pair<Channel, Channel>> make();  // creator's end, child's end
  Result<> send(const Message& message) const;
  // kFailed comes back as an Error; so does the end of the peer (kProtocol) and the deadline
  // (kTimeout).
  Result<Message> receive(Deadline deadline) const;
  int fd() const { return socket_.get(); }
  void close() { socket_.reset(); }
  Result<> move_above(int least);  // to a descriptor of at least that number

 private:
  explicit Channel(UniqueFd socket) : socket_{std::move(socket)} {}
  UniqueFd socket_;
};

// Which message may come next, up to kRecorded; knows no sockets.
class Sequence {
 public:
  enum class Terminal : std::uint8_t { kNo, kYes };
  explicit Sequence(Terminal terminal) : terminal_{terminal} {}
  Result<> accept(Step step);
  bool done() const { return at_ == Step::kRecorded; }

 private:
  Terminal terminal_;
  Step at_ = Step::kFailed;  // nothing yet
};

}  // namespace wherry::init
