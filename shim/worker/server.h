// shim.sock: connections, requests, replies. What a request means is in methods.cpp.
#pragma once
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "shim/protocol/rpc.h"
#include "shim/worker/supervisor.h"

namespace wherry::shim {

class Server {
 public:
  static Result<std::unique_ptr<Server>> open(Supervisor& supervisor, UniqueFd listener);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Every reply has been handed to the kernel, or its reader has had its time.
  bool idle() const;
  // No new requests; those that wait are answered with an error.
  void close();

 private:
  struct Connection {
    std::uint64_t id = 0;
    UniqueFd socket;
    LineBuffer lines;
    std::vector<UniqueFd> fds;  // of the request that is coming
    std::string output;
    EventLoop::TimerId timer = 0;  // a request that is not whole, or a reply that is not taken
    unsigned waiting = 0;          // requests without their reply
    bool gone = false;
  };
  using Reply = std::function<void(Result<Json>)>;  // called once

  Server(Supervisor& supervisor, UniqueFd listener)
      : supervisor_{supervisor}, listener_{std::move(listener)} {}
  void on_accept();
  void on_ready(Connection& connection, std::uint32_t events);
  void read(Connection& connection);
  void handle(Connection& connection, const std::string& line);
  void answer(std::uint64_t connection, const Json& id, const Result<Json>& result);
  void set_timer(Connection& connection);  // for what it is to do next
  void write(Connection& connection);
  void sweep();
  Connection* find(std::uint64_t id);
  EventLoop& loop() { return supervisor_.context().loop; }

  void call(Request request, std::vector<UniqueFd> fds, Reply reply);
  void exec(const Json& params, std::vector<UniqueFd> fds, Reply reply);
  Result<Json> attach(const Json& params, std::vector<UniqueFd> fds);
  Result<Json> inspect(const Json& params);
  Result<std::string> container_of(const Json& params) const;
  Result<LiveContainer*> running(const Json& params);

  Supervisor& supervisor_;
  UniqueFd listener_;
  std::uint64_t last_id_ = 0;
  bool closed_ = false;
  std::list<std::unique_ptr<Connection>> connections_;
};

}  // namespace wherry::shim
