// A pod as it was asked for: what a manifest or the flags of `wherry run` come to, and what
// pod.json keeps. Plain data.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace wherry::pod {

enum class Restart : std::uint8_t { kNever, kOnFailure, kAlways };
enum class Network : std::uint8_t {
  kPod,
  kNone,
  kHost
};  // own with loopback; own, nothing up; the host's
enum class PidMode : std::uint8_t { kContainer, kPod, kHost };
enum class SeccompMode : std::uint8_t { kRuntimeDefault, kUnconfined, kLocalhost };

struct Port {  // information only, until the network issue
  std::string name, protocol;
  std::uint16_t container_port = 0, host_port = 0;
  std::string host_ip;
};

struct Volume {
  enum class Kind : std::uint8_t { kEmptyDir, kHostPath };
  enum class HostType : std::uint8_t {
    kAny,
    kDirectoryOrCreate,
    kDirectory,
    kFileOrCreate,
    kFile,
    kSocket,
    kCharDevice,
    kBlockDevice
  };
  std::string name;
  Kind kind = Kind::kEmptyDir;
  bool memory = false;                      // emptyDir medium Memory
  std::optional<std::uint64_t> size_limit;  // bytes
  std::string host_path;
  HostType host_type = HostType::kAny;
};

struct VolumeMount {
  std::string volume, mount_path, sub_path;
  bool read_only = false;
  std::string propagation;  // "", "private", "rslave", "rshared"
};

struct HostDevice {
  std::string host_path, container_path, permissions = "rwm";
};

struct Limits {
  std::optional<std::uint64_t> memory_bytes, memory_request_bytes;
  std::optional<std::uint64_t> cpu_milli, cpu_request_milli;  // thousandths of a CPU
  std::optional<std::int64_t> pids;
};

struct Security {
  std::optional<std::uint32_t> run_as_user, run_as_group;
  std::string user;  // as -u gives it, "name" or "uid:gid"; resolved in the root of the image
  std::optional<bool> run_as_non_root, privileged, read_only_root, allow_privilege_escalation;
  std::vector<std::string> cap_add, cap_drop;  // without CAP_ or with it; "ALL"
  SeccompMode seccomp = SeccompMode::kRuntimeDefault;
  std::string seccomp_profile;  // path, for kLocalhost
  bool unmasked_proc = false;   // procMount: Unmasked
};

// Of resolv.conf, beside what the host's has, or in place of it.
struct Dns {
  bool own_only = false;                                    // dnsPolicy None
  std::vector<std::string> nameservers, searches, options;  // option: "ndots:2"
};

struct Container {
  std::string name, image;
  std::string rootfs_dir;  // --rootfs DIR: used as the root in place of an image
  std::vector<std::string> command, args;
  std::string working_dir;
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<Port> ports;
  std::vector<VolumeMount> mounts;
  std::vector<HostDevice> devices;
  Limits limits;
  Security security;
  bool stdin_open = false, stdin_once = false, tty = false;
  std::optional<Restart> restart;  // own policy; kAlways on an init container makes it a sidecar
  std::string stop_signal;         // "" = the image's, else SIGTERM
};

struct Pod {
  std::string id;  // 64 hex
  std::string name, ns = "default", uid;
  std::map<std::string, std::string> labels, annotations;
  std::vector<Container> init_containers, containers;
  std::vector<Volume> volumes;
  Restart restart = Restart::kAlways;
  std::chrono::seconds grace{30};
  Network network = Network::kPod;
  PidMode pid_mode = PidMode::kContainer;
  bool host_ipc = false;
  std::string hostname;
  Dns dns;
  std::vector<std::pair<std::string, std::vector<std::string>>> host_aliases;  // ip -> names
  std::map<std::string, std::string> sysctls;
  std::vector<std::uint32_t> supplemental_groups;
  std::optional<std::uint32_t> fs_group;
  Limits limits;                  // of the whole pod; absent members: the sum does not bind
  bool remove_when_done = false;  // run --rm
  std::string created;            // RFC 3339
};

Json to_json(const Pod& pod);  // pod.json; the same Pod comes back
Result<Pod> pod_from_json(const Json& value);

}  // namespace wherry::pod
