// The conversation between the creator and the process that becomes the container.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace wherry::init {

// One SOCK_SEQPACKET pair: a message is a packet, so none is half read and the end of the peer is
// seen at once.
//
//      creator                            child
//        namespaces are made
//               <-- kNeedMaps ----        what only the creator may write (only with a user or time
//                                         namespace of its own)
//      maps     --- kMapped ------>
//               <-- kConsole(fd) --       its terminal's master (only with one)
//               <-- kMounted -----        the root is together, not yet entered (only with hooks)
//      hooks    --- kHooksRun ---->
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
enum class Step : std::uint16_t {
  kNeedMaps,
  kMapped,
  kConsole,
  kMounted,
  kHooksRun,
  kReady,
  kRecorded,
  kEntered,
  kFailed
};
std::string_view to_string(Step step);

// What the child was doing when it failed: the steps in their order.
enum class Where : std::uint16_t {
  kJoin,
  kSession,
  kPlace,
  kNamespaces,
  kMaps,
  kIsolate,
  kRoot,
  kMounts,
  kDevices,
  kConsole,
  kHooks,
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
  std::string text;       // at most kMostText bytes; with kReady: encode_phases(), when asked for
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
  struct Parts {  // which of the optional exchanges there are
    bool maps = false, terminal = false, hooks = false;
  };
  explicit Sequence(Parts parts);
  Result<> accept(Step step);
  bool done() const { return next_ == steps_.size(); }

 private:
  std::vector<Step> steps_;  // all of them, in their order
  std::size_t next_ = 0;
};

}  // namespace wherry::init
