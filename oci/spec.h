// config.json of the OCI runtime-spec 1.3 as plain data. Names follow the specification; an absent member is an empty
// string, vector or optional. Nothing here knows the kernel: words (mount options, capability names) stay words.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wherry::oci {

struct Box {  // process.consoleSize
  unsigned height = 0, width = 0;
};

struct User {
  std::uint32_t uid = 0, gid = 0;
  std::optional<std::uint32_t> umask;
  std::vector<std::uint32_t> additional_gids;
  std::string username;  // Windows only; kept so that it can be refused by name
};

struct Capabilities {  // names as in capabilities(7): "CAP_CHOWN"
  std::vector<std::string> bounding, effective, inheritable, permitted, ambient;
};

struct Rlimit {
  std::string type;  // "RLIMIT_NOFILE"
  std::uint64_t soft = 0, hard = 0;
};

struct Scheduler {
  std::string policy;  // "SCHED_OTHER"
  std::int32_t nice = 0, priority = 0;
  std::vector<std::string> flags;
  std::uint64_t runtime = 0, deadline = 0, period = 0;  // nanoseconds
};

struct IoPriority {
  std::string class_name;  // "IOPRIO_CLASS_BE"
  std::int32_t priority = 0;
};

struct ExecCpuAffinity {
  std::string initial, final;  // CPU lists
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
};

struct Root {
  std::string path;
  bool readonly = false;
};

struct IdMapping {
  std::uint32_t container_id = 0, host_id = 0, size = 0;
};

struct Mount {
  std::string destination, type, source;
  std::vector<std::string> options;
  std::vector<IdMapping> uid_mappings, gid_mappings;
};

enum class NamespaceType : std::uint8_t { kPid, kNetwork, kMount, kIpc, kUts, kUser, kCgroup, kTime };
std::string_view to_string(NamespaceType type);  // the specification's word: "pid", "network", ...

struct Namespace {
  NamespaceType type{};
  std::string path;  // empty: a new one
};

struct TimeOffset {
  std::int64_t secs = 0;
  std::uint32_t nanosecs = 0;
};

struct Device {  // linux.devices
  std::string path, type;  // type: "c", "b", "u", "p"
  std::int64_t major = 0, minor = 0;
  std::optional<std::uint32_t> file_mode, uid, gid;
};

struct DeviceRule {  // linux.resources.devices, in order; the last match decides
  bool allow = false;
  std::string type;  // "a", "b", "c"; empty means "a"
  std::optional<std::int64_t> major, minor;  // absent: any
  std::string access;                        // of "rwm"; empty means all three
};

struct MemoryResources {  // bytes; -1 means unlimited
  std::optional<std::int64_t> limit, reservation, swap, kernel, kernel_tcp;
  std::optional<std::uint64_t> swappiness;
  std::optional<bool> disable_oom_killer, use_hierarchy, check_before_update;
};

struct CpuResources {
  std::optional<std::uint64_t> shares;
  std::optional<std::int64_t> quota;  // microseconds per period; -1: none
  std::optional<std::uint64_t> burst, period;
  std::optional<std::int64_t> realtime_runtime;
  std::optional<std::uint64_t> realtime_period;
  std::string cpus, mems;
  std::optional<std::int64_t> idle;
};

struct WeightDevice {
  std::int64_t major = 0, minor = 0;
  std::optional<std::uint16_t> weight, leaf_weight;
};
struct ThrottleDevice {
  std::int64_t major = 0, minor = 0;
  std::uint64_t rate = 0;
};
struct BlockIo {
  std::optional<std::uint16_t> weight, leaf_weight;
  std::vector<WeightDevice> weight_device;
  std::vector<ThrottleDevice> read_bps, write_bps, read_iops, write_iops;
};

struct HugepageLimit {
  std::string page_size;  // "2MB"
  std::uint64_t limit = 0;
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
  std::map<std::string, std::pair<std::optional<std::uint32_t>, std::optional<std::uint32_t>>> rdma;  // handles, objects
  std::map<std::string, std::string> unified;  // cgroup v2 file -> value
};

struct SeccompArg {
  unsigned index = 0;
  std::uint64_t value = 0, value_two = 0;
  std::string op;  // "SCMP_CMP_EQ"
};
struct SeccompRule {
  std::vector<std::string> names;
  std::string action;  // "SCMP_ACT_ALLOW"
  std::optional<unsigned> errno_ret;
  std::vector<SeccompArg> args;
};
struct Seccomp {
  std::string default_action;
  std::optional<unsigned> default_errno_ret;
  std::vector<std::string> architectures, flags;
  std::string listener_path, listener_metadata;
  std::vector<SeccompRule> syscalls;
};

struct IntelRdt {
  std::string clos_id, l3_cache_schema, mem_bw_schema;
  std::vector<std::string> schemata;
  bool enable_monitoring = false;
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
  std::string rootfs_propagation;  // "shared", "slave", "private", "unbindable", "" is rprivate here
  std::vector<std::string> masked_paths, readonly_paths;
  std::string mount_label;
  std::optional<std::pair<std::string, std::vector<std::string>>> personality;  // domain, flags
  std::optional<std::pair<std::string, std::vector<std::string>>> memory_policy;
};

struct Hook {
  std::string path;
  std::vector<std::string> args, env;
  std::optional<unsigned> timeout;  // seconds
};
struct Hooks {
  std::vector<Hook> prestart, create_runtime, create_container, start_container, poststart, poststop;
  bool empty() const {
    return prestart.empty() && create_runtime.empty() && create_container.empty() && start_container.empty() &&
           poststart.empty() && poststop.empty();
  }
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
};

}  // namespace wherry::oci
