// The worker's end of the conversation with the keeper (shim/protocol/keeper_messages.h).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "shim/protocol/keeper_messages.h"

namespace wherry::shim {

struct ChildExit {
  std::uint64_t serial = 0;
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // 0: unknown
  int wait_status = 0;            // of wait(2)
  std::int64_t time_ns = 0;       // CLOCK_REALTIME
};

class KeeperLink {
 public:
  // Takes what the keeper hands over, up to its kReady.
  static Result<KeeperLink> open(UniqueFd socket, Deadline deadline);

  pid_t keeper_pid() const { return keeper_pid_; }
  int runs() const { return runs_; }  // 1: we are the first worker of this keeper

  // A descriptor that was handed over, once; the keeper goes on holding it.
  std::optional<UniqueFd> take(const std::string& name);
  bool has(const std::string& name) const { return handed_over_.count(name) != 0; }

  // The keeper may be gone: then nothing is stored, and that is no error of the caller's.
  void store(const std::string& name, int fd);
  void drop(const std::string& name);  // "a/": all that begin so
  void acknowledge(std::uint64_t serial);
  void bye();

  int fd() const { return socket_.get(); }  // readable: call receive()
  bool alive() const { return static_cast<bool>(socket_); }
  // Everything that has come. False: the keeper is gone.
  Result<bool> receive();
  std::optional<ChildExit> next_exit();

 private:
  explicit KeeperLink(UniqueFd socket) : socket_{std::move(socket)} {}
  Result<bool> receive_one(int flags);
  void send(const keeper::Message& message, int fd);

  UniqueFd socket_;
  pid_t keeper_pid_ = 0;
  int runs_ = 0;
  bool ready_ = false;
  std::map<std::string, UniqueFd> handed_over_;
  std::deque<ChildExit> exits_;
};

}  // namespace wherry::shim
