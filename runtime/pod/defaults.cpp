#include "runtime/pod/defaults.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "oci/config.h"

namespace wherry::pod {
namespace {

// clang-format off
constexpr std::array kDefaultCapabilities{
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW",
    "CAP_SETGID", "CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE"};
// clang-format on

// capabilities(7), Linux 6.18. A name that is none of these is a typing error, not a capability
// that we lack.
// clang-format off
constexpr std::array kAllCapabilities{
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID",
    "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK",
    "CAP_IPC_OWNER", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT", "CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE", "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL", "CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG",
    "CAP_WAKE_ALARM", "CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE"};
// clang-format on

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::string full_name(std::string_view word) {
  std::string out;
  for (const char c : word)
    out.push_back(c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  if (out == "ALL" || out.starts_with("CAP_")) return out;
  return "CAP_" + out;
}

Result<std::vector<std::string>> full_names(std::string_view field,
                                            const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const auto& word : words) {
    auto name = full_name(word);
    if (name != "ALL" &&
        std::find(kAllCapabilities.begin(), kAllCapabilities.end(), name) == kAllCapabilities.end())
      return Error::make(Code::kInvalid, cat(field, ": ", in_quotes(word), " is not a capability"));
    out.push_back(std::move(name));
  }
  return out;
}

oci::DeviceRule allow(std::string type, std::optional<std::int64_t> major,
                      std::optional<std::int64_t> minor, std::string access) {
  return {true, std::move(type), major, minor, std::move(access)};
}

}  // namespace

Result<oci::Capabilities> capabilities_of(const Container& container, const Surroundings& around) {
  const auto add = TRY(full_names("capabilities.add", container.security.cap_add));
  const auto drop = TRY(full_names("capabilities.drop", container.security.cap_drop));
  std::vector<std::string> set;
  const bool privileged = container.security.privileged.value_or(false);
  if (privileged || contains(add, "ALL")) {
    set = around.own_capabilities;
  } else if (!contains(drop, "ALL")) {
    set.assign(kDefaultCapabilities.begin(), kDefaultCapabilities.end());
  }
  if (!privileged) {
    // What is both added and dropped by name stays: adding is the exception from a drop, as from
    // drop ALL.
    std::erase_if(set, [&](const auto& name) { return contains(drop, name); });
    for (const auto& name : add) {
      if (name != "ALL" && !contains(set, name)) set.push_back(name);
    }
  }
  if (!around.own_capabilities.empty())
    std::erase_if(set, [&](const auto& name) { return !contains(around.own_capabilities, name); });
  oci::Capabilities out;
  out.bounding = set;
  // Not root: exec clears permitted and effective in any case (capabilities(7)); said here, so that
  // inspect shows it.
  if (around.user.uid == 0) out.permitted = out.effective = set;
  return out;
}

std::vector<std::string> lacking_capabilities(const Container& container,
                                              const Surroundings& around) {
  std::vector<std::string> out;
  for (const auto& word : container.security.cap_add) {
    auto name = full_name(word);
    if (name != "ALL" && !contains(around.own_capabilities, name)) out.push_back(std::move(name));
  }
  return out;
}

std::vector<oci::DeviceRule> device_rules(const Container& container, const Surroundings& around) {
  if (container.security.privileged.value_or(false)) return {allow("a", {}, {}, "rwm")};
  std::vector<oci::DeviceRule> out{{false, "a", {}, {}, "rwm"}};
  // Nodes may be made (packages are unpacked with theirs), which opens nothing.
  out.push_back(allow("c", {}, {}, "m"));
  out.push_back(allow("b", {}, {}, "m"));
  constexpr std::array<std::pair<int, int>, 8> kHarmless{
      {{1, 3},
       {1, 5},
       {1, 7},
       {1, 8},
       {1, 9},
       {5, 0},
       {5, 1},
       {5, 2}}};  // null zero full random urandom tty console ptmx
  for (const auto& [major, minor] : kHarmless) out.push_back(allow("c", major, minor, "rwm"));
  out.push_back(allow("c", 136, {}, "rwm"));  // /dev/pts
  for (const auto& device : around.devices)
    out.push_back(
        allow(std::string(1, device.type), device.major, device.minor, device.permissions));
  return out;
}

std::vector<std::string> masked_paths(unsigned cpus) {
  std::vector<std::string> out{"/proc/acpi",
                               "/proc/asound",
                               "/proc/interrupts",
                               "/proc/kcore",
                               "/proc/keys",
                               "/proc/latency_stats",
                               "/proc/sched_debug",
                               "/proc/scsi",
                               "/proc/timer_list",
                               "/proc/timer_stats",
                               "/sys/devices/virtual/powercap",
                               "/sys/firmware"};
  for (unsigned cpu = 0; cpu < cpus; ++cpu)
    out.push_back(cat("/sys/devices/system/cpu/cpu", cpu, "/thermal_throttle"));
  return out;
}

std::vector<std::string> readonly_paths() {
  return {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"};
}

std::string sysctl_problem(const Pod& pod, std::string_view key, std::string_view value) {
  if (value.empty() || has_control(value)) return "its value is empty or has control characters";
  const auto path = oci::sysctl_path(key);
  if (!path) return "not the name of a sysctl";
  using Type = oci::NamespaceType;
  const auto type = oci::sysctl_namespace(*path);
  if (!type) return "not of a namespace of the pod's own";
  const bool host = *type == Type::kIpc ? pod.host_ipc : pod.network == Network::kHost;
  return host ? cat("the ", oci::to_string(*type), " namespace is the host's") : std::string{};
}

}  // namespace wherry::pod
