// config.json of the OCI runtime-spec 1.3 as plain data. Names follow the specification; an absent
// member is an empty string, vector or optional. Nothing here knows the kernel: words (mount
// options, capability names) stay words.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wherry::oci {

struct Box {  // process.consoleSize
  unsigned height = 0, width = 0;
  bool operator==(const Box&) const = default;
};

struct User {
  std::uint32_t uid = 0, gid = 0;
  std::optional<std::uint32_t> umask;
  std::vector<std::uint32_t> additional_gids;
  std::string username;  // Windows only; kept so that it can be refused by name
  bool operator==(const User&) const = default;
};

struct Capabilities {  // names as in capabilities(7): "CAP_CHOWN"
  std::vector<std::string> bounding, effective, inheritable, permitted, ambient;
  bool operator==(const Capabilities&) const = default;
};

struct Rlimit {
  std::string type;  // "RLIMIT_NOFILE"
  std::uint64_t soft = 0, hard = 0;
  bool operator==(const Rlimit&) const = default;
};

struct Scheduler {
  std::string policy;  // "SCHED_OTHER"
  std::int32_t nice = 0, priority = 0;
  std::vector<std::string> flags;
  std::uint64_t runtime = 0, deadline = 0, period = 0;  // nanoseconds
  bool operator==(const Scheduler&) const = default;
};

struct IoPriority {
  std::string class_name;  // "IOPRIO_CLASS_BE"
  std::int32_t priority = 0;
  bool operator==(const IoPriority&) const = default;
};

struct ExecCpuAffinity {
  std::string initial, final;  // CPU lists
  bool operator==(const ExecCpuAffinity&) const = default;
};

struct Process {
  bool terminal = false;
  std::optional<Box> console_size;
  User user;
  std::vector<std::string> args;
  std::vector<std::string> env;
  std::string cwd;
  std::optional<Capabilities> capabilities;
  std::vector<Rlimit> rlimits;
  bool no_new_privileges = false;
  std::string apparmor_profile, selinux_label;
  std::optional<int> oom_score_adj;
  std::optional<Scheduler> scheduler;
  std::optional<IoPriority> io_priority;
  std::optional<ExecCpuAffinity> exec_cpu_affinity;
  bool operator==(const Process&) const = default;
};

struct Root {
  std::string path;
  bool readonly = false;
  bool operator==(const Root&) const = default;
};

struct IdMapping {
  std::uint32_t container_id = 0, host_id = 0, size = 0;
  bool operator==(const IdMapping&) const = default;
};

struct Mount {
  std::string destination, type, source;
  std::vector<std::string> options;
  std::vector<IdMapping> uid_mappings, gid_mappings;
  bool operator==(const Mount&) const = default;
};

enum class NamespaceType : std::uint8_t {
  kPid,
  kNetwork,
  kMount,
  kIpc,
  kUts,
  kUser,
  kCgroup,
  kTime
};
std::string_view to_string(NamespaceType type);  // the specification's word: "pid", "network", ...

struct Namespace {
  NamespaceType type{};
  std::string path;  // empty: a new one
  bool operator==(const Namespace&) const = default;
};

struct TimeOffset {
  std::int64_t secs = 0;
  std::uint32_t nanosecs = 0;
  bool operator==(const TimeOffset&) const = default;
};

struct Device {            // linux.devices
  std::string path, type;  // type: "c", "b", "u", "p"
  std::int64_t major = 0, minor = 0;
  std::optional<std::uint32_t> file_mode, uid,
      gid;  // of the mode only the permission bits (07777) count
  bool operator==(const Device&) const = default;
};

struct DeviceRule {  // linux.resources.devices, in order; the last match decides
  bool allow = false;
  std::string type;                          // "a", "b", "c"; empty means "a"
  std::optional<std::int64_t> major, minor;  // absent: any (a document may also say -1)
  std::string access;                        // of "rwm"; empty means all three
  bool operator==(const DeviceRule&) const = default;
};

struct MemoryResources {  // bytes; -1 means unlimited
  std::optional<std::int64_t> limit, reservation, swap, kernel, kernel_tcp;
  std::optional<std::uint64_t> swappiness;
  std::optional<bool> disable_oom_killer, use_hierarchy, check_before_update;
  bool operator==(const MemoryResources&) const = default;
};

struct CpuResources {
  std::optional<std::uint64_t> shares;
  std::optional<std::int64_t> quota;  // microseconds per period; -1: none
  std::optional<std::uint64_t> burst, period;
  std::optional<std::int64_t> realtime_runtime;
  std::optional<std::uint64_t> realtime_period;
  std::string cpus, mems;
  std::optional<std::int64_t> idle;
  bool operator==(const CpuResources&) const = default;
};

struct WeightDevice {
  std::int64_t major = 0, minor = 0;
  std::optional<std::uint16_t> weight, leaf_weight;
  bool operator==(const WeightDevice&) const = default;
};
struct ThrottleDevice {
  std::int64_t major = 0, minor = 0;
  std::uint64_t rate = 0;
  bool operator==(const ThrottleDevice&) const = default;
};
struct BlockIo {
  std::optional<std::uint16_t> weight, leaf_weight;
  std::vector<WeightDevice> weight_device;
  std::vector<ThrottleDevice> read_bps, write_bps, read_iops, write_iops;
  bool operator==(const BlockIo&) const = default;
};

struct HugepageLimit {
  std::string page_size;  // "2MB"
  std::uint64_t limit = 0;
  bool operator==(const HugepageLimit&) const = default;
};

struct Resources {
  std::vector<DeviceRule> devices;
  std::optional<MemoryResources> memory;
  std::optional<CpuResources> cpu;
  std::optional<std::int64_t> pids_limit;  // absent: not set; 0 or less: unlimited ("max")
  std::optional<BlockIo> block_io;
  std::vector<HugepageLimit> hugepage_limits;
  std::optional<std::uint32_t> network_class_id;
  std::vector<std::pair<std::string, std::uint32_t>> network_priorities;
  std::map<std::string, std::pair<std::optional<std::uint32_t>, std::optional<std::uint32_t>>>
      rdma;                                    // handles, objects
  std::map<std::string, std::string> unified;  // cgroup v2 file -> value
  bool operator==(const Resources&) const = default;
};

struct SeccompArg {
  unsigned index = 0;
  std::uint64_t value = 0, value_two = 0;
  std::string op;  // "SCMP_CMP_EQ"
  bool operator==(const SeccompArg&) const = default;
};
struct SeccompRule {
  std::vector<std::string> names;
  std::string action;  // "SCMP_ACT_ALLOW"
  std::optional<unsigned> errno_ret;
  std::vector<SeccompArg> args;
  bool operator==(const SeccompRule&) const = default;
};
struct Seccomp {
  std::string default_action;
  std::optional<unsigned> default_errno_ret;
  std::vector<std::string> architectures, flags;
  std::string listener_path, listener_metadata;
  std::vector<SeccompRule> syscalls;
  bool operator==(const Seccomp&) const = default;
};

struct Personality {
  std::string domain;  // "LINUX", "LINUX32"
  std::vector<std::string> flags;
  bool operator==(const Personality&) const = default;
};

struct MemoryPolicy {
  std::string mode, nodes;  // "MPOL_BIND", "0-1"
  std::vector<std::string> flags;
  bool operator==(const MemoryPolicy&) const = default;
};

struct IntelRdt {
  std::string clos_id, l3_cache_schema, mem_bw_schema;
  std::vector<std::string> schemata;
  bool enable_monitoring = false;
  bool operator==(const IntelRdt&) const = default;
};

struct Linux {
  std::vector<Namespace> namespaces;
  std::vector<IdMapping> uid_mappings, gid_mappings;
  std::map<std::string, TimeOffset> time_offsets;  // "monotonic", "boottime"
  std::vector<Device> devices;
  std::map<std::string, std::string> net_devices;  // host interface -> name inside ("" keeps it)
  std::string cgroups_path;
  std::optional<Resources> resources;
  std::optional<IntelRdt> intel_rdt;
  std::map<std::string, std::string> sysctl;
  std::optional<Seccomp> seccomp;
  std::string
      rootfs_propagation;  // "shared", "slave", "private", "unbindable", "" is rprivate here
  std::vector<std::string> masked_paths, readonly_paths;
  std::string mount_label;
  std::optional<Personality> personality;
  std::optional<MemoryPolicy> memory_policy;
  bool operator==(const Linux&) const = default;
};

struct Hook {
  std::string path;
  std::vector<std::string> args, env;
  std::optional<unsigned> timeout;  // seconds
  bool operator==(const Hook&) const = default;
};
struct Hooks {
  std::vector<Hook> prestart, create_runtime, create_container, start_container, poststart,
      poststop;
  bool empty() const {
    return prestart.empty() && create_runtime.empty() && create_container.empty() &&
           start_container.empty() && poststart.empty() && poststop.empty();
  }
  bool operator==(const Hooks&) const = default;
};

struct Spec {
  std::string oci_version;
  std::optional<Process> process;
  std::optional<Root> root;
  std::string hostname, domainname;
  std::vector<Mount> mounts;
  Hooks hooks;
  std::optional<Linux> linux_;  // "linux"; the underscore because compilers predefine the word
  std::map<std::string, std::string> annotations;
  bool operator==(const Spec&) const = default;
};

}  // namespace wherry::oci
