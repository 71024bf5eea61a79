// pod.json: what was asked for, as it is kept. Members that are empty, false or 0 are left out.
#include "runtime/pod/pod.h"

#include <array>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace wherry::pod {
namespace {

constexpr int kVersion = 1;

template <class Enum>
struct Word {
  Enum value;
  const char* text;
};
constexpr std::array kRestarts{Word<Restart>{Restart::kNever, "Never"},
                               Word<Restart>{Restart::kOnFailure, "OnFailure"},
                               Word<Restart>{Restart::kAlways, "Always"}};
constexpr std::array kNetworks{Word<Network>{Network::kPod, "pod"},
                               Word<Network>{Network::kNone, "none"},
                               Word<Network>{Network::kHost, "host"}};
constexpr std::array kPidModes{Word<PidMode>{PidMode::kContainer, "container"},
                               Word<PidMode>{PidMode::kPod, "pod"},
                               Word<PidMode>{PidMode::kHost, "host"}};
constexpr std::array kSeccompModes{
    Word<SeccompMode>{SeccompMode::kRuntimeDefault, "RuntimeDefault"},
    Word<SeccompMode>{SeccompMode::kUnconfined, "Unconfined"},
    Word<SeccompMode>{SeccompMode::kLocalhost, "Localhost"}};
using Kind = Volume::Kind;
constexpr std::array kKinds{Word<Kind>{Kind::kEmptyDir, "emptyDir"},
                            Word<Kind>{Kind::kHostPath, "hostPath"}};
using HostType = Volume::HostType;
constexpr std::array kHostTypes{Word<HostType>{HostType::kAny, ""},
                                Word<HostType>{HostType::kDirectoryOrCreate, "DirectoryOrCreate"},
                                Word<HostType>{HostType::kDirectory, "Directory"},
                                Word<HostType>{HostType::kFileOrCreate, "FileOrCreate"},
                                Word<HostType>{HostType::kFile, "File"},
                                Word<HostType>{HostType::kSocket, "Socket"},
                                Word<HostType>{HostType::kCharDevice, "CharDevice"},
                                Word<HostType>{HostType::kBlockDevice, "BlockDevice"}};

const auto& words(Restart) {
  return kRestarts;
}
const auto& words(Network) {
  return kNetworks;
}
const auto& words(PidMode) {
  return kPidModes;
}
const auto& words(SeccompMode) {
  return kSeccompModes;
}
const auto& words(Kind) {
  return kKinds;
}
const auto& words(HostType) {
  return kHostTypes;
}

// The same list of members serves both ways: fields(archive, object) is called with a Writer or
// with a Reader.
class Writer {
 public:
  static constexpr bool kReads = false;
  Json take() { return std::move(out_); }

  void field(const char* key, const std::string& value) {
    if (!value.empty()) out_[key] = value;
  }
  void always(const char* key, const std::string& value) { out_[key] = value; }
  void field(const char* key, const bool& value) {
    if (value) out_[key] = true;
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) void field(const char* key, const T& value) {
    if (value != 0) out_[key] = value;
  }
  template <class T>
  void field(const char* key, const std::optional<T>& value) {
    if (value) out_[key] = encode(*value);
  }
  template <class E>
  requires std::is_enum_v<E>
  void field(const char* key, const E& value) { out_[key] = encode(value); }
  template <class T>
  void field(const char* key, const std::vector<T>& values) {
    if (values.empty()) return;
    Json list = Json::array();
    for (const auto& value : values) list.push_back(encode(value));
    out_[key] = std::move(list);
  }
  void field(const char* key, const std::map<std::string, std::string>& values) {
    if (values.empty()) return;
    Json object = Json::object();
    for (const auto& [name, value] : values) object[name] = value;
    out_[key] = std::move(object);
  }
  template <class T>
  requires std::is_class_v<T>
  void object(const char* key, const T& value) {
    Json inner = encode(value);
    if (!inner.empty()) out_[key] = std::move(inner);
  }

 private:
  static Json encode(const std::string& value) { return value; }
  template <std::integral T>
  static Json encode(const T& value) {
    return value;
  }
  template <class E>
  requires std::is_enum_v<E>
  static Json encode(const E& value) {
    for (const auto& word : words(value)) {
      if (word.value == value) return word.text;
    }
    return nullptr;
  }
  template <class A, class B>
  static Json encode(const std::pair<A, B>& value) {
    return Json{{"name", encode(value.first)}, {"value", encode(value.second)}};
  }
  static Json encode(const std::vector<std::string>& values) { return values; }
  template <class T>
  requires std::is_class_v<T>
  static Json encode(const T& value) {
    Writer inner;
    fields(inner, value);
    return inner.take();
  }

  Json out_ = Json::object();
};

class Reader {
 public:
  static constexpr bool kReads = true;
  Reader(const Json& from, std::string where) : from_{from}, where_{std::move(where)} {}
  std::optional<Error> take_error() { return std::move(error_); }

  template <class T>
  void field(const char* key, T& value) {
    const auto it = from_.find(key);
    if (it != from_.end()) decode(*it, cat(where_, "/", key), value);
  }
  template <class T>
  void always(const char* key, T& value) {
    field(key, value);
  }
  template <class T>
  void object(const char* key, T& value) {
    field(key, value);
  }

 private:
  void wrong(const std::string& where, std::string_view what) {
    if (!error_) error_ = Error::make(Code::kInvalid, cat("pod record: ", where, ": ", what));
  }
  void decode(const Json& json, const std::string& where, std::string& value) {
    if (!json.is_string()) return wrong(where, "must be a string");
    value = json.get<std::string>();
  }
  void decode(const Json& json, const std::string& where, bool& value) {
    if (!json.is_boolean()) return wrong(where, "must be true or false");
    value = json.get<bool>();
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) void decode(const Json& json, const std::string& where,
                                               T& value) {
    if (json.is_number_unsigned() && std::in_range<T>(json.get<std::uint64_t>()))
      value = static_cast<T>(json.get<std::uint64_t>());
    else if (json.is_number_integer() && !json.is_number_unsigned() &&
             std::in_range<T>(json.get<std::int64_t>()))
      value = static_cast<T>(json.get<std::int64_t>());
    else
      wrong(where, "must be a whole number in range");
  }
  template <class T>
  void decode(const Json& json, const std::string& where, std::optional<T>& value) {
    value.emplace();
    decode(json, where, *value);
  }
  template <class E>
  requires std::is_enum_v<E>
  void decode(const Json& json, const std::string& where, E& value) {
    std::string text;
    decode(json, where, text);
    for (const auto& word : words(value)) {
      if (text == word.text) {
        value = word.value;
        return;
      }
    }
    wrong(where, cat(in_quotes(text), " is not one of its words"));
  }
  template <class T>
  void decode(const Json& json, const std::string& where, std::vector<T>& values) {
    if (!json.is_array()) return wrong(where, "must be a list");
    values.clear();
    for (const auto& item : json) {
      const auto place = cat(where, "/", values.size());
      decode(item, place, values.emplace_back());
    }
  }
  void decode(const Json& json, const std::string& where,
              std::map<std::string, std::string>& values) {
    if (!json.is_object()) return wrong(where, "must be an object");
    for (const auto& [key, item] : json.items()) decode(item, cat(where, "/", key), values[key]);
  }
  template <class A, class B>
  void decode(const Json& json, const std::string& where, std::pair<A, B>& value) {
    if (!json.is_object() || !json.contains("name") || !json.contains("value"))
      return wrong(where, "must be an object with name and value");
    decode(json["name"], cat(where, "/name"), value.first);
    decode(json["value"], cat(where, "/value"), value.second);
  }
  template <class T>
  requires std::is_class_v<T>
  void decode(const Json& json, const std::string& where, T& value) {
    if (!json.is_object()) return wrong(where, "must be an object");
    Reader inner{json, where};
    fields(inner, value);
    if (inner.error_ && !error_) error_ = std::move(inner.error_);
  }

  const Json& from_;
  std::string where_;
  std::optional<Error> error_;
};

template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

void fields(auto& a, Is<Port> auto& v) {
  a.field("name", v.name);
  a.field("protocol", v.protocol);
  a.field("containerPort", v.container_port);
  a.field("hostPort", v.host_port);
  a.field("hostIP", v.host_ip);
}

void fields(auto& a, Is<Volume> auto& v) {
  a.field("name", v.name);
  a.field("kind", v.kind);
  a.field("memory", v.memory);
  a.field("sizeLimit", v.size_limit);
  a.field("hostPath", v.host_path);
  a.field("hostType", v.host_type);
}

void fields(auto& a, Is<VolumeMount> auto& v) {
  a.field("volume", v.volume);
  a.field("mountPath", v.mount_path);
  a.field("subPath", v.sub_path);
  a.field("readOnly", v.read_only);
  a.field("propagation", v.propagation);
}

void fields(auto& a, Is<HostDevice> auto& v) {
  a.field("hostPath", v.host_path);
  a.field("containerPath", v.container_path);
  a.always("permissions", v.permissions);
}

void fields(auto& a, Is<Limits> auto& v) {
  a.field("memory", v.memory_bytes);
  a.field("memoryRequest", v.memory_request_bytes);
  a.field("cpuMilli", v.cpu_milli);
  a.field("cpuRequestMilli", v.cpu_request_milli);
  a.field("pids", v.pids);
}

void fields(auto& a, Is<Security> auto& v) {
  a.field("runAsUser", v.run_as_user);
  a.field("runAsGroup", v.run_as_group);
  a.field("user", v.user);
  a.field("runAsNonRoot", v.run_as_non_root);
  a.field("privileged", v.privileged);
  a.field("readOnlyRoot", v.read_only_root);
  a.field("allowPrivilegeEscalation", v.allow_privilege_escalation);
  a.field("capAdd", v.cap_add);
  a.field("capDrop", v.cap_drop);
  a.field("seccomp", v.seccomp);
  a.field("seccompProfile", v.seccomp_profile);
  a.field("unmaskedProc", v.unmasked_proc);
}

void fields(auto& a, Is<Dns> auto& v) {
  a.field("ownOnly", v.own_only);
  a.field("nameservers", v.nameservers);
  a.field("searches", v.searches);
  a.field("options", v.options);
}

void fields(auto& a, Is<Container> auto& v) {
  a.field("name", v.name);
  a.field("image", v.image);
  a.field("rootfsDir", v.rootfs_dir);
  a.field("command", v.command);
  a.field("args", v.args);
  a.field("workingDir", v.working_dir);
  a.field("env", v.env);
  a.field("ports", v.ports);
  a.field("mounts", v.mounts);
  a.field("devices", v.devices);
  a.object("limits", v.limits);
  a.object("security", v.security);
  a.field("stdin", v.stdin_open);
  a.field("stdinOnce", v.stdin_once);
  a.field("tty", v.tty);
  a.field("restart", v.restart);
  a.field("stopSignal", v.stop_signal);
}

void fields(auto& a, Is<Pod> auto& v) {
  a.field("id", v.id);
  a.field("name", v.name);
  a.always("namespace", v.ns);
  a.field("uid", v.uid);
  a.field("labels", v.labels);
  a.field("annotations", v.annotations);
  a.field("initContainers", v.init_containers);
  a.field("containers", v.containers);
  a.field("volumes", v.volumes);
  a.field("restart", v.restart);
  auto grace = v.grace.count();  // kept as a number of seconds; 0 is a value and not a default
  std::optional<std::int64_t> seconds{grace};
  a.field("graceSeconds", seconds);
  if constexpr (std::remove_reference_t<decltype(a)>::kReads)
    v.grace = std::chrono::seconds{*seconds};
  a.field("network", v.network);
  a.field("pidMode", v.pid_mode);
  a.field("hostIPC", v.host_ipc);
  a.field("hostname", v.hostname);
  a.object("dns", v.dns);
  a.field("hostAliases", v.host_aliases);
  a.field("sysctls", v.sysctls);
  a.field("supplementalGroups", v.supplemental_groups);
  a.field("fsGroup", v.fs_group);
  a.object("limits", v.limits);
  a.field("removeWhenDone", v.remove_when_done);
  a.field("created", v.created);
}

}  // namespace

Json to_json(const Pod& pod) {
  Writer writer;
  writer.field("v", kVersion);
  fields(writer, pod);
  return writer.take();
}

Result<Pod> pod_from_json(const Json& value) {
  if (!value.is_object()) return Error::make(Code::kInvalid, "pod record: must be an object");
  if (json_int_or(value, "v", 0) != kVersion)
    return Error::make(Code::kInvalid, "pod record: not a version that is known here");
  Pod pod;
  Reader reader{value, ""};
  fields(reader, pod);
  if (auto error = reader.take_error()) return std::move(*error);
  return pod;
}

}  // namespace wherry::pod
