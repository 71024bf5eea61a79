#include "shim/protocol/pod_status.h"

#include "base/json.h"

namespace wherry {
namespace {

template <class T>
void put(Json& out, const char* key, const std::optional<T>& value) {
  if (value) out[key] = *value;
}
void put(Json& out, const char* key, const std::string& value) {
  if (!value.empty()) out[key] = value;
}

std::optional<int> int_of(const Json& object, const char* key) {
  const auto found = json_int(object, key);
  if (!found.ok()) return std::nullopt;
  return static_cast<int>(found.value());
}

std::map<std::string, std::string> strings_of(const Json& object, const char* key) {
  std::map<std::string, std::string> out;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return out;
  for (const auto& [name, value] : found->items())
    if (value.is_string()) out[name] = value.get<std::string>();
  return out;
}

Json to_json(const ContainerStatus& status) {
  Json out{{"name", status.name}, {"image", status.image}};
  put(out, "imageDigest", status.image_digest);
  out["state"] = status.state;
  put(out, "reason", status.reason);
  put(out, "message", status.message);
  out["init"] = status.init;
  out["ready"] = status.ready;
  out["oomKilled"] = status.oom_killed;
  put(out, "exitCode", status.exit_code);
  put(out, "signal", status.signal);
  out["pid"] = status.pid;
  out["restarts"] = status.restarts;
  put(out, "started", status.started);
  put(out, "finished", status.finished);
  put(out, "logPath", status.log_path);
  return out;
}

ContainerStatus container_from_json(const Json& value) {
  ContainerStatus status;
  status.name = json_string_or(value, "name", "");
  status.image = json_string_or(value, "image", "");
  status.image_digest = json_string_or(value, "imageDigest", "");
  status.state = json_string_or(value, "state", "unknown");
  status.reason = json_string_or(value, "reason", "");
  status.message = json_string_or(value, "message", "");
  status.init = json_bool_or(value, "init", false);
  status.ready = json_bool_or(value, "ready", false);
  status.oom_killed = json_bool_or(value, "oomKilled", false);
  status.exit_code = int_of(value, "exitCode");
  status.signal = int_of(value, "signal");
  status.pid = int_of(value, "pid").value_or(0);
  status.restarts = static_cast<unsigned>(json_int_or(value, "restarts", 0));
  status.started = json_string_or(value, "started", "");
  status.finished = json_string_or(value, "finished", "");
  status.log_path = json_string_or(value, "logPath", "");
  return status;
}

}  // namespace

Json to_json(const PodStatus& status) {
  Json out{{"id", status.id}, {"name", status.name}, {"namespace", status.ns}};
  put(out, "uid", status.uid);
  put(out, "created", status.created);
  out["phase"] = status.phase;
  out["sandbox"] = status.sandbox;
  put(out, "reason", status.reason);
  if (!status.warnings.empty()) out["warnings"] = status.warnings;
  out["keeperPid"] = status.keeper_pid;
  out["shimPid"] = status.shim_pid;
  out["ready"] = status.ready;
  out["oomKilled"] = status.oom_killed;
  put(out, "exitCode", status.exit_code);
  out["containers"] = Json::array();
  for (const auto& container : status.containers) out["containers"].push_back(to_json(container));
  if (!status.labels.empty()) out["labels"] = status.labels;
  if (!status.annotations.empty()) out["annotations"] = status.annotations;
  return out;
}

Result<PodStatus> pod_status_from_json(const Json& value) {
  if (!value.is_object()) return Error::make(Code::kInvalid, "status: not an object");
  PodStatus status;
  status.id = TRY_CTX(json_string(value, "id"), "status");
  status.name = json_string_or(value, "name", "");
  status.ns = json_string_or(value, "namespace", "default");
  status.uid = json_string_or(value, "uid", "");
  status.created = json_string_or(value, "created", "");
  status.phase = json_string_or(value, "phase", "Unknown");
  status.sandbox = json_string_or(value, "sandbox", "NOTREADY");
  status.reason = json_string_or(value, "reason", "");
  if (const auto found = value.find("warnings"); found != value.end() && found->is_array())
    for (const auto& warning : *found)
      if (warning.is_string()) status.warnings.push_back(warning.get<std::string>());
  status.keeper_pid = int_of(value, "keeperPid").value_or(0);
  status.shim_pid = int_of(value, "shimPid").value_or(0);
  status.ready = json_bool_or(value, "ready", false);
  status.oom_killed = json_bool_or(value, "oomKilled", false);
  status.exit_code = int_of(value, "exitCode");
  if (const auto found = value.find("containers"); found != value.end() && found->is_array())
    for (const auto& container : *found)
      if (container.is_object()) status.containers.push_back(container_from_json(container));
  status.labels = strings_of(value, "labels");
  status.annotations = strings_of(value, "annotations");
  return status;
}

namespace shim {
namespace {
Json to_json(const ProcessIdentity& who) {
  return {{"pid", who.pid}, {"startTicks", who.start_ticks}, {"bootId", who.boot_id}};
}
ProcessIdentity identity_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return {};
  return {static_cast<pid_t>(json_int_or(*found, "pid", 0)),
          static_cast<std::uint64_t>(json_int_or(*found, "startTicks", 0)),
          json_string_or(*found, "bootId", "")};
}
}  // namespace

Json to_json(const Shims& shims) {
  return {{"keeper", to_json(shims.keeper)},
          {"worker", to_json(shims.worker)},
          {"workerStarts", shims.worker_starts}};
}

Shims shims_from_json(const Json& value) {
  Shims shims;
  if (!value.is_object()) return shims;
  shims.keeper = identity_of(value, "keeper");
  shims.worker = identity_of(value, "worker");
  shims.worker_starts = static_cast<unsigned>(json_int_or(value, "workerStarts", 0));
  return shims;
}
}  // namespace shim

}  // namespace wherry
