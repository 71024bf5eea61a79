#include <algorithm>

#include "base/text.h"
#include "oci/validate.h"

namespace wherry::oci {
namespace {

void check_namespaces(Rules& rules, const std::vector<Namespace>& namespaces) {
  for (std::size_t i = 0; i < namespaces.size(); ++i) {
    const auto& ns = namespaces[i];
    const auto here = element("/linux/namespaces", i);
    if (!ns.path.empty()) rules.absolute(member(here, "path"), ns.path);
    const auto end = namespaces.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(namespaces.begin(), end,
                    [&](const Namespace& before) { return before.type == ns.type; }))
      rules.problem(here,
                    cat("a namespace of type ", in_quotes(to_string(ns.type)), " stands twice"));
  }
}

void check_time_offsets(Rules& rules, const std::map<std::string, TimeOffset>& offsets) {
  constexpr std::uint32_t kSecond = 1'000'000'000;
  for (const auto& [clock, offset] : offsets) {
    const auto here = member("/linux/timeOffsets", clock);
    if (clock != "monotonic" && clock != "boottime")
      rules.problem(here, cat("must be 'monotonic' or 'boottime', not ", in_quotes(clock)));
    if (offset.nanosecs >= kSecond)
      rules.problem(member(here, "nanosecs"),
                    cat("must be below 1000000000, not ", offset.nanosecs));
  }
}

void check_device(Rules& rules, const std::string& pointer, const Device& device) {
  constexpr std::int64_t kMostNumber = 0xffffffff;
  constexpr std::uint32_t kMostMode = 0177777;  // with the file type, as stat(2) gives it
  rules.absolute(member(pointer, "path"), device.path);
  rules.one_of(member(pointer, "type"), device.type, {"c", "b", "u", "p"});
  for (const auto& [name, number] :
       {std::pair{"major", device.major}, std::pair{"minor", device.minor}})
    if (number < 0 || number > kMostNumber)
      rules.problem(member(pointer, name), cat("must be a device number, not ", number));
  if (device.file_mode && *device.file_mode > kMostMode)
    rules.problem(member(pointer, "fileMode"), cat("must be a file mode, not ", *device.file_mode));
}

// Becomes names of directories below the cgroup roots, or "slice:prefix:name" for systemd (CVE
// class of runc #4103).
void check_cgroups_path(Rules& rules, const std::string& path) {
  constexpr const char* kPointer = "/linux/cgroupsPath";
  rules.no_control(kPointer, path);
  for (const auto part : split(path, '/'))
    for (const auto piece : split(part, ':'))
      if (piece == "..")
        return rules.problem(kPointer, cat("must not hold a '..': ", in_quotes(path)));
}

void check_sysctl(Rules& rules, const Spec& spec, const Linux& lin) {
  for (const auto& [key, value] : lin.sysctl) {
    const auto here = member("/linux/sysctl", key);
    const auto path = sysctl_path(key);
    if (!path) {
      rules.problem(here, "must be the name of a sysctl like 'net.ipv4.ip_forward'");
      continue;
    }
    if (has_control(value))
      rules.problem(here, cat("must not hold control characters: ", in_quotes(value)));
    const auto owner = sysctl_namespace(*path);
    if (!owner)
      rules.problem(here, "belongs to no namespace: it would change the whole host");
    else if (!has_namespace(spec, *owner))
      rules.problem(here, cat("needs a namespace of type ", in_quotes(to_string(*owner)),
                              " in /linux/namespaces"));
  }
}

void check_net_devices(Rules& rules, const std::map<std::string, std::string>& devices) {
  std::vector<std::string_view> names;
  for (const auto& [host, inside] : devices) {
    const auto here = member("/linux/netDevices", host);
    rules.interface_name(here, host);
    if (!inside.empty()) rules.interface_name(member(here, "name"), inside);
    const std::string_view name = inside.empty() ? host : inside;
    if (std::find(names.begin(), names.end(), name) != names.end())
      rules.problem(here, cat("a second interface would be named ", in_quotes(name)));
    names.push_back(name);
  }
}

void check_intel_rdt(Rules& rules, const IntelRdt& rdt) {
  const std::string here = "/linux/intelRdt";
  const auto& id = rdt.clos_id;  // the name of a directory below /sys/fs/resctrl
  if (id == "." || id == ".." || id.find('/') != std::string::npos || has_control(id))
    rules.problem(member(here, "closID"),
                  cat("must be the name of one directory, not ", in_quotes(id)));
  const auto& bandwidth = rdt.mem_bw_schema;
  if (!bandwidth.empty() &&
      (!bandwidth.starts_with("MB:") || bandwidth.find('\n') != std::string::npos))
    rules.problem(member(here, "memBwSchema"),
                  cat("must be one line that begins with 'MB:', not ", in_quotes(bandwidth)));
  for (std::size_t i = 0; i < rdt.schemata.size(); ++i)
    rules.no_control(element(member(here, "schemata"), i), rdt.schemata[i]);
}

void check_memory_policy(Rules& rules, const MemoryPolicy& policy) {
  const std::string here = "/linux/memoryPolicy";
  rules.one_of(member(here, "mode"), policy.mode,
               {"MPOL_DEFAULT", "MPOL_BIND", "MPOL_INTERLEAVE", "MPOL_WEIGHTED_INTERLEAVE",
                "MPOL_PREFERRED", "MPOL_PREFERRED_MANY", "MPOL_LOCAL"});
  rules.cpu_list(member(here, "nodes"), policy.nodes);
  for (std::size_t i = 0; i < policy.flags.size(); ++i)
    rules.one_of(element(member(here, "flags"), i), policy.flags[i],
                 {"MPOL_F_NUMA_BALANCING", "MPOL_F_RELATIVE_NODES", "MPOL_F_STATIC_NODES"});
}

void check_paths(Rules& rules, const std::string& pointer, const std::vector<std::string>& paths) {
  for (std::size_t i = 0; i < paths.size(); ++i) rules.absolute(element(pointer, i), paths[i]);
}

}  // namespace

void check_linux(Rules& rules, const Spec& spec, const Linux& lin) {
  check_namespaces(rules, lin.namespaces);
  rules.mappings("/linux/uidMappings", lin.uid_mappings);
  rules.mappings("/linux/gidMappings", lin.gid_mappings);
  check_time_offsets(rules, lin.time_offsets);
  for (std::size_t i = 0; i < lin.devices.size(); ++i)
    check_device(rules, element("/linux/devices", i), lin.devices[i]);
  check_net_devices(rules, lin.net_devices);
  if (!lin.net_devices.empty() && !has_namespace(spec, NamespaceType::kNetwork))
    rules.note("/linux/netDevices", "there is no network namespace to move them into");
  check_cgroups_path(rules, lin.cgroups_path);
  if (lin.resources) check_resources(rules, "/linux/resources", *lin.resources);
  if (lin.intel_rdt) check_intel_rdt(rules, *lin.intel_rdt);
  check_sysctl(rules, spec, lin);
  if (lin.seccomp) check_seccomp(rules, "/linux/seccomp", *lin.seccomp);
  if (!lin.rootfs_propagation.empty())
    rules.one_of("/linux/rootfsPropagation", lin.rootfs_propagation,
                 {"shared", "slave", "private", "unbindable", "rshared", "rslave", "rprivate",
                  "runbindable"});
  check_paths(rules, "/linux/maskedPaths", lin.masked_paths);
  check_paths(rules, "/linux/readonlyPaths", lin.readonly_paths);
  rules.no_control("/linux/mountLabel", lin.mount_label);
  if (lin.personality) {
    rules.one_of("/linux/personality/domain", lin.personality->domain, {"LINUX", "LINUX32"});
    if (!lin.personality->flags.empty())
      rules.problem("/linux/personality/flags", "must be empty: the specification defines no flag");
  }
  if (lin.memory_policy) check_memory_policy(rules, *lin.memory_policy);
}

}  // namespace wherry::oci
