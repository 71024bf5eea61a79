// The three standard streams of one run of a container: its FIFOs or terminal, the log behind them,
// and the clients that are attached. Everything that must outlive the worker is held by the keeper
// under "c/<name>/".
#pragma once
#include <array>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/fd.h"
#include "base/result.h"
#include "shim/protocol/relay.h"
#include "shim/worker/container_log.h"
#include "shim/worker/keeper_link.h"

namespace wherry::shim {

class ContainerIo {
 public:
  struct Options {
    std::string name;
    int record_dir = -1;  // the FIFOs come here
    int log_dir = -1;
    std::string log_name;  // "0.log"
    uid_t uid = 0;         // who may reopen the FIFOs: the container's user, as the host numbers it
    gid_t gid = 0;
    bool terminal = false, wants_stdin = false;
    bool stdin_once = false;  // stdin ends with the client that fed it
  };
  // What a client that falls behind means to the container.
  enum class Slow : std::uint8_t {
    kDrop,  // the client is let go; the log has the rest
    kWait,  // the container waits for it, as for the next program in a pipeline
  };

  static Result<std::unique_ptr<ContainerIo>> create(EventLoop& loop, KeeperLink& keeper,
                                                     const Options& options);
  // From what the keeper held. kNotFound when it has nothing of this container.
  static Result<std::unique_ptr<ContainerIo>> adopt(EventLoop& loop, KeeperLink& keeper,
                                                    const Options& options);
  ~ContainerIo();
  ContainerIo(const ContainerIo&) = delete;
  ContainerIo& operator=(const ContainerIo&) = delete;

  std::array<int, 3> child_stdio() const;  // for CreateOptions; -1: /dev/null
  // After create: our copies of the child's ends are closed, so that the end of the streams can be
  // seen.
  Result<> begin(UniqueFd console);

  // Init has ended: calls back once the streams have come to their end or `most` has passed.
  void drain(Millis most, std::function<void()> drained);

  enum class From : std::uint8_t {
    kKept,  // the first byte that is still kept; a client that has seen it skips it
    kNow,
  };
  Result<> attach(UniqueFd relay, Slow slow, From from);
  Result<> resize(unsigned rows, unsigned columns);
  // Lets each client go as soon as it has got everything, and last how it ended.
  void finish(std::optional<int> exit_code);
  void fail(const Error& error);  // the same, with why it could not be started
  bool has_clients() const { return !clients_.empty(); }
  bool has_waited_clients() const;
  std::uint64_t dropped_bytes() const { return log_.position().dropped; }
  // Nothing of it is kept any more.
  void forget();

 private:
  struct Client {
    UniqueFd relay;
    Slow slow{};
    std::array<std::uint64_t, 2> sent{};  // of each stream
    bool blocked = false;                 // its socket is full
    bool gone = false;                    // to be dropped by sweep()
    bool fed_input = false;
    std::string pending_input;  // read from it, not yet taken by the container
  };
  ContainerIo(EventLoop& loop, KeeperLink& keeper, Options options, ContainerLog log)
      : loop_{loop}, keeper_{keeper}, options_{std::move(options)}, log_{std::move(log)} {}

  std::string key(const std::string& what) const { return "c/" + options_.name + "/" + what; }
  Result<> open_fifos();
  Result<> watch_sources();
  void pump(Stream stream);
  void end_stream(Stream stream);
  void check_drained();
  bool wants_input() const;  // some client waits for the container to take its bytes
  int source(Stream stream) const { return sources_[static_cast<std::size_t>(stream)].get(); }

  void feed_clients();
  void feed(Client& client);
  void say_last(Client& client);
  std::uint64_t behind(const Client& client) const;
  void adapt();  // pauses or goes on, drops who is too slow, gives memory back

  void on_client(Client& client, std::uint32_t events);
  void take_packet(Client& client);
  void write_input();
  void end_input();
  void let_go(Client& client) { client.gone = true; }
  void sweep();
  void update_watches();

  EventLoop& loop_;
  KeeperLink& keeper_;
  Options options_;
  ContainerLog log_;
  std::array<UniqueFd, 3> child_ends_;
  std::array<UniqueFd, 2> sources_;         // FIFO read ends; a terminal's master stands in [0]
  std::pair<UniqueFd, UniqueFd> tty_pipe_;  // between terminal and spool
  UniqueFd input_;                          // write end of the container's stdin
  std::array<bool, 2> open_{false, false};  // the stream has not come to its end
  bool paused_ = false, input_watched_ = false, input_ended_ = false;
  std::list<std::unique_ptr<Client>> clients_;
  std::function<void()> drained_;
  EventLoop::TimerId drain_timer_ = 0;
  struct Last {
    RelayKind kind{};
    std::uint64_t value = 0;
    std::string payload;
  };
  std::optional<Last> last_;  // what every client hears before it is let go
};

}  // namespace wherry::shim
