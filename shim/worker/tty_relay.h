// Joins the terminal of an exec'd process and the client that asked for it. A client that stops
// reading stops only that process, and its end ends the relay, not the process.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/fd.h"
#include "base/result.h"

namespace wherry::shim {

class TtyRelay {
 public:
  static Result<std::unique_ptr<TtyRelay>> create(EventLoop& loop, UniqueFd master,
                                                  UniqueFd client);
  ~TtyRelay();
  TtyRelay(const TtyRelay&) = delete;
  TtyRelay& operator=(const TtyRelay&) = delete;
  // The process has ended: what is left in the terminal goes out, then the exit code; `done` is
  // called from the loop. A client that does not read is given up after a while.
  void finish(std::optional<int> exit_code, std::function<void()> done);

 private:
  TtyRelay(EventLoop& loop, UniqueFd master, UniqueFd client)
      : loop_{loop}, master_{std::move(master)}, client_{std::move(client)} {}
  void on_master(std::uint32_t events);
  void on_client(std::uint32_t events);
  bool read_master();  // false: nothing (more) to be had now
  bool flush();        // false: the client takes no more now
  void write_input();
  void close_client();
  void close_master();
  void update();
  void move();      // one round of output
  void complete();  // of finish()

  EventLoop& loop_;
  UniqueFd master_, client_;
  std::string output_, input_;  // one packet each
  std::uint64_t sent_ = 0;
  std::optional<int> exit_code_;
  std::function<void()> done_;  // set: finish() was called
  EventLoop::TimerId timer_ = 0;
};

}  // namespace wherry::shim
