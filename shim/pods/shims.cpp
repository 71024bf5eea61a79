// Pods: looking at keepers and workers from outside, also at one that hangs or is dead.
#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/client/client.h"
#include "shim/pods.h"
#include "shim/pods/asking.h"
#include "shim/pods/store_paths.h"
#include "shim/protocol/boot_plan.h"
#include "shim/protocol/exit_record.h"

namespace wherry {
namespace {

using namespace shim;

constexpr Millis kAskWait{1'000};

Result<Client> connect_to(const Places& places, const std::string& id, Deadline deadline) {
  const auto state = TRY(sys::openat(AT_FDCWD, pod_path(places.state, id), O_RDONLY | O_DIRECTORY));
  return Client::connect(state.get(), deadline);
}

// "VmRSS:   1234 kB" -> 1234
std::int64_t status_field(const std::string& text, std::string_view key) {
  for (const auto line : split(text, '\n')) {
    if (line.rfind(key, 0) != 0) continue;
    auto rest = trim(line.substr(key.size()));
    return parse_int<std::int64_t>(rest.substr(0, rest.find(' '))).value_or(0);
  }
  return 0;
}

Json process_json(const ProcessIdentity& who) {
  Json out{{"pid", who.pid}};
  const bool there = open_pidfd(who).ok();
  out["alive"] = there;
  if (!there) return out;
  if (const auto state = process_state(who.pid); state.ok())
    out["state"] = std::string(1, state.value());
  if (const auto text = read_file_at(AT_FDCWD, cat("/proc/", who.pid, "/status"), 65536);
      text.ok()) {
    out["rssKb"] = status_field(text.value(), "VmRSS:");
    out["anonKb"] = status_field(text.value(), "RssAnon:");
  }
  if (const auto fds = sys::openat(AT_FDCWD, cat("/proc/", who.pid, "/fd"), O_RDONLY | O_DIRECTORY);
      fds.ok())
    if (const auto names = list_dir(fds.value().get()); names.ok())
      out["descriptors"] = names.value().size();
  if (const auto where = read_file_at(AT_FDCWD, cat("/proc/", who.pid, "/wchan"), 256); where.ok())
    out["waitsIn"] = where.value();
  return out;
}

Json records_json(const Places& places, const std::string& id) {
  Json out = Json::array();
  const auto dir = sys::openat(AT_FDCWD, cat(pod_path(places.state, id), "/", kContainersDir),
                               O_RDONLY | O_DIRECTORY);
  if (!dir.ok()) return out;
  const auto names = list_dir(dir.value().get());
  if (!names.ok()) return out;
  for (const auto& name : names.value()) {
    Json one{{"name", name}};
    const auto record_dir = open_dir_at(dir.value().get(), name);
    if (!record_dir.ok()) continue;
    if (const auto text = read_file_at(record_dir.value().get(), "record.json", 1024 * 1024);
        text.ok())
      if (auto record = parse_json(text.value(), "record.json"); record.ok())
        one["record"] = std::move(record).value();
    if (const auto exit = read_exit_record(record_dir.value().get()); exit.ok() && exit.value())
      one["exit"] = {{"known", exit.value()->code.has_value()},
                     {"code", exit.value()->code.value_or(0)},
                     {"signal", exit.value()->signal},
                     {"oomKilled", exit.value()->oom_killed}};
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

Result<Json> Pods::shim_list() const {
  Json out = Json::array();
  for (const auto& id : TRY(all_ids(places_))) {
    const auto view = view_pod(places_, id);
    if (!view.ok()) continue;
    if (!view.value().alive) continue;
    out.push_back({{"pod", id},
                   {"name", view.value().status.name},
                   {"namespace", view.value().status.ns},
                   {"keeper", process_json(view.value().shims.keeper)},
                   {"worker", process_json(view.value().shims.worker)},
                   {"workerStarts", view.value().shims.worker_starts}});
  }
  return out;
}

Result<Json> Pods::shim_inspect(const Target& target) const {
  const auto view = TRY(view_pod(places_, target.pod_id));
  Json out{{"pod", target.pod_id},
           {"name", view.status.name},
           {"lockHeld", view.alive},
           {"keeper", process_json(view.shims.keeper)},
           {"worker", process_json(view.shims.worker)},
           {"workerStarts", view.shims.worker_starts},
           {"records", records_json(places_, target.pod_id)}};
  auto client = connect_to(places_, target.pod_id, Deadline::in(kAskWait));
  auto answer = client.ok()
                    ? client.value().call("inspect", Json::object(), {}, Deadline::in(kAskWait))
                    : Result<Json>{std::move(client).error()};
  if (answer.ok())
    out["answer"] = std::move(answer).value();
  else
    out["noAnswer"] = answer.error().message();
  if (const auto log = read_file_at(
          AT_FDCWD, cat(pod_path(places_.state, target.pod_id), "/shim.log"), 1024 * 1024);
      log.ok())
    out["log"] = log.value();
  return out;
}

Result<Json> Pods::shim_call(const Target& target, const std::string& method, const Json& params,
                             Deadline deadline) const {
  auto client = TRY(reach_worker(places_, target.pod_id, deadline));
  return client.call(method, params, {}, deadline);
}

}  // namespace wherry
