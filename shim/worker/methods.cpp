// The methods of the shim. docs/shim-protocol.md describes them; a change here is a change there.
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/pod/machine.h"
#include "shim/protocol/relay.h"
#include "shim/worker/server.h"

namespace wherry::shim {
namespace {

Error unknown_method(const std::string& method) {
  return Error::make(Code::kUnsupported, cat("there is no method '", method, "'"))
      .hint("ping status inspect stop remove kill exec attach resize wait fds");
}

Result<std::vector<std::string>> strings(const Json& params, const char* key) {
  std::vector<std::string> out;
  const auto found = params.find(key);
  if (found == params.end()) return out;
  if (!found->is_array())
    return Error::make(Code::kInvalid, cat("'", key, "' must be an array of strings"));
  for (const auto& entry : *found) {
    if (!entry.is_string())
      return Error::make(Code::kInvalid, cat("'", key, "' must be an array of strings"));
    out.push_back(entry.get<std::string>());
  }
  return out;
}

Json exit_json(std::optional<int> code) {
  return code ? Json{{"exitCode", *code}} : Json{{"exitCode", nullptr}};
}

Result<Json> own_descriptors() {
  const auto dir = TRY(sys::openat(AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY));
  Json out = Json::array();
  for (const auto& number : TRY(list_dir(dir.get()))) {
    const auto target = sys::readlinkat(dir.get(), number);
    if (target.ok()) out.push_back({{"fd", number}, {"target", target.value()}});
  }
  return out;
}

}  // namespace

Result<std::string> Server::container_of(const Json& params) const {
  const auto& pod = supervisor_.context().pod;
  auto name = json_string_or(params, "container",
                             pod.containers.empty() ? "" : pod.containers.front().name);
  if (supervisor_.context().container(name) == nullptr)
    return Error::make(Code::kNotFound, cat("the pod has no container '", name, "'"));
  return name;
}

Result<LiveContainer*> Server::running(const Json& params) {
  const auto name = TRY(container_of(params));
  auto* live = supervisor_.engine().find(name);
  if (live == nullptr || live->exited)
    return Error::make(Code::kState, cat("container '", name, "' is not running"));
  return live;
}

void Server::call(Request request, std::vector<UniqueFd> fds, Reply reply) {
  const auto& method = request.method;
  const auto& params = request.params;
  if (method == "ping")
    return reply(Json{{"version", kRpcVersion},
                      {"program", WHERRY_VERSION},
                      {"pid", ::getpid()},
                      {"pod", supervisor_.context().pod.id}});
  if (method == "status") return reply(to_json(supervisor_.status()));
  if (method == "inspect") return reply(inspect(params));
  if (method == "fds") return reply(own_descriptors());
  if (method == "exec") return exec(params, std::move(fds), std::move(reply));
  if (method == "attach") return reply(attach(params, std::move(fds)));
  if (method == "stop" || method == "remove") {
    std::optional<Millis> grace;
    if (const auto seconds = json_int(params, "grace"); seconds.ok() && seconds.value() >= 0)
      grace = Millis{seconds.value() * 1000};
    const auto container = json_string_or(params, "container", "");
    if (!container.empty()) {
      auto name = container_of(params);
      if (!name.ok()) return reply(std::move(name).error());
      supervisor_.on_over(container, [reply](const ContainerStatus& status) {
        reply(exit_json(status.exit_code));
      });
    } else {
      supervisor_.on_end([this, reply] { reply(to_json(supervisor_.status())); });
    }
    return method == "remove" ? supervisor_.remove() : supervisor_.stop(container, grace);
  }
  if (method == "wait") {
    if (!params.contains("container"))
      return supervisor_.on_end(
          [this, reply] { reply(exit_json(supervisor_.status().exit_code)); });
    auto name = container_of(params);
    if (!name.ok()) return reply(std::move(name).error());
    return supervisor_.on_over(name.value(), [reply](const ContainerStatus& status) {
      reply(exit_json(status.exit_code));
    });
  }
  if (method == "kill") {
    const auto send = [&]() -> Result<Json> {
      auto* live = TRY(running(params));
      const int signum = TRY(pod::signal_number(json_string_or(params, "signal", "TERM")));
      TRY(supervisor_.engine().signal(live->name, signum));
      return Json::object();
    };
    return reply(send());
  }
  if (method == "resize") {
    const auto resize = [&]() -> Result<Json> {
      auto* live = TRY(running(params));
      if (!live->io) return Error::make(Code::kState, "its streams were lost");
      TRY(live->io->resize(static_cast<unsigned>(json_int_or(params, "rows", 0)),
                           static_cast<unsigned>(json_int_or(params, "columns", 0))));
      return Json::object();
    };
    return reply(resize());
  }
  reply(unknown_method(method));
}

void Server::exec(const Json& params, std::vector<UniqueFd> fds, Reply reply) {
  const auto start = [&]() -> Result<pid_t> {
    auto* live = TRY(running(params));
    ExecWanted wanted;
    wanted.argv = TRY(strings(params, "argv"));
    wanted.env = TRY(strings(params, "env"));
    wanted.user = json_string_or(params, "user", "");
    wanted.cwd = json_string_or(params, "cwd", "");
    wanted.tty = json_bool_or(params, "tty", false);
    wanted.rows = static_cast<unsigned>(json_int_or(params, "rows", 0));
    wanted.columns = static_cast<unsigned>(json_int_or(params, "columns", 0));
    wanted.fds = std::move(fds);
    return supervisor_.execs().start(*live, std::move(wanted),
                                     [reply](std::optional<int> code) { reply(exit_json(code)); });
  };
  auto started = start();
  if (!started.ok()) reply(std::move(started).error());
}

Result<Json> Server::attach(const Json& params, std::vector<UniqueFd> fds) {
  auto* live = TRY(running(params));
  if (fds.size() != 1) return Error::make(Code::kInvalid, "it takes 1 descriptor, the relay");
  TRY(check_relay(fds[0].get()));
  if (!live->io) return Error::make(Code::kState, "its streams were lost");
  TRY(live->io->attach(std::move(fds[0]), ContainerIo::Slow::kDrop, ContainerIo::From::kNow));
  return Json{{"container", live->name}};
}

Result<Json> Server::inspect(const Json& params) {
  const auto shims = supervisor_.shims();
  Json out{{"pid", ::getpid()},
           {"shims", to_json(shims)},
           {"status", to_json(supervisor_.status())},
           {"containers", Json::array()}};
  static_cast<void>(params);
  for (const auto& [name, live] : supervisor_.engine().all()) {
    Json one{
        {"name", name}, {"attempt", live.attempt}, {"pid", live.init.pid}, {"exited", live.exited}};
    if (live.io) one["droppedLogBytes"] = live.io->dropped_bytes();
    out["containers"].push_back(std::move(one));
  }
  out["connections"] = connections_.size();
  return out;
}

}  // namespace wherry::shim
