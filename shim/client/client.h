// The caller's side of shim.sock.
#pragma once
#include <span>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json_fwd.h"
#include "base/result.h"
#include "shim/protocol/rpc.h"

namespace wherry::shim {

class Client {
 public:
  // `state_dir`: the pod's own. kNotFound when nobody listens.
  static Result<Client> connect(int state_dir, Deadline deadline);

  // One request and its reply. The descriptors are passed along and stay the caller's.
  Result<Json> call(const std::string& method, const Json& params, std::span<const int> fds,
                    Deadline deadline);
  // The two halves of it, for a caller that does something in between.
  Result<> send(const std::string& method, const Json& params, std::span<const int> fds,
                Deadline deadline);
  Result<Json> receive(Deadline deadline);

 private:
  explicit Client(UniqueFd socket) : socket_{std::move(socket)} {}
  UniqueFd socket_;
  LineBuffer lines_;
  std::uint64_t last_id_ = 0;
};

// The worker has died or ended in the middle: another one may answer, or nobody ever will.
bool is_hang_up(const Error& error);

}  // namespace wherry::shim
