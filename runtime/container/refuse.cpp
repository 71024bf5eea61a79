// What this version cannot do, by field.
#include <algorithm>

#include "base/text.h"
#include "oci/config.h"
#include "runtime/container/planner.h"

namespace wherry::container {
namespace {

using Refusals = std::vector<std::string>;

void refuse_process(const oci::Process& process, Refusals& out) {
  if (!process.apparmor_profile.empty()) out.emplace_back("process.apparmorProfile");
  if (!process.selinux_label.empty()) out.emplace_back("process.selinuxLabel");
  if (process.scheduler) out.emplace_back("process.scheduler");
  if (process.io_priority) out.emplace_back("process.ioPriority");
  if (process.exec_cpu_affinity) out.emplace_back("process.execCPUAffinity");
}

void refuse_linux(const oci::Linux& linux_, Refusals& out) {
  for (const auto& ns : linux_.namespaces)
    if (ns.type == oci::NamespaceType::kUser || ns.type == oci::NamespaceType::kTime)
      out.push_back(cat("linux.namespaces: ", oci::to_string(ns.type)));
  if (!linux_.uid_mappings.empty()) out.emplace_back("linux.uidMappings");
  if (!linux_.gid_mappings.empty()) out.emplace_back("linux.gidMappings");
  if (!linux_.time_offsets.empty()) out.emplace_back("linux.timeOffsets");
  if (!linux_.net_devices.empty()) out.emplace_back("linux.netDevices");
  if (linux_.intel_rdt) out.emplace_back("linux.intelRdt");
  if (!linux_.mount_label.empty()) out.emplace_back("linux.mountLabel");
  if (linux_.personality) out.emplace_back("linux.personality");
  if (linux_.memory_policy) out.emplace_back("linux.memoryPolicy");
}

bool has_namespace(const oci::Linux& linux_, oci::NamespaceType type) {
  return std::any_of(linux_.namespaces.begin(), linux_.namespaces.end(),
                     [&](const auto& ns) { return ns.type == type; });
}

// The specification's own rules (a namespaced sysctl needs that namespace) are validate()'s; here
// only what it leaves open: a sysctl of no namespace would change the host (CVE-2022-0811).
Result<> check_sysctl(const std::string& key, const oci::Linux& linux_) {
  const auto path = oci::sysctl_path(key);
  const auto needs = path ? oci::sysctl_namespace(*path) : std::nullopt;
  if (!needs)
    return Error::make(Code::kInvalid, cat("linux.sysctl: ", in_quotes(key),
                                           " belongs to no namespace: it would change the host"));
  if (has_namespace(linux_, *needs)) return {};
  return Error::make(Code::kInvalid,
                     cat("linux.sysctl: ", in_quotes(key), " needs a ", oci::to_string(*needs),
                         " namespace of the container's own"));
}

}  // namespace

Result<> refuse_unsupported(const oci::Spec& spec) {
  if (!spec.process)
    return Error::make(Code::kInvalid, "process: a container cannot be made without one");
  if (!spec.root)
    return Error::make(Code::kInvalid, "root: a container cannot be made without one");
  if (!spec.linux_)
    return Error::make(Code::kInvalid, "linux: a container cannot be made without it");
  Refusals refused;
  refuse_process(*spec.process, refused);
  refuse_linux(*spec.linux_, refused);
  if (!refused.empty())
    return Error::make(Code::kUnsupported,
                       cat("not supported by this version: ", join(refused, ", ")));
  // Without one every mount of ours would be the host's.
  if (!has_namespace(*spec.linux_, oci::NamespaceType::kMount))
    return Error::make(Code::kUnsupported, "linux.namespaces: a mount namespace is needed");
  const bool own_uts = has_namespace(*spec.linux_, oci::NamespaceType::kUts);
  if ((!spec.hostname.empty() || !spec.domainname.empty()) && !own_uts)
    return Error::make(Code::kInvalid, "hostname: it needs a uts namespace of the container's own");
  for (const auto& [key, value] : spec.linux_->sysctl) {
    TRY(check_sysctl(key, *spec.linux_));
    if (has_control(value))
      return Error::make(Code::kInvalid, cat("linux.sysctl: the value of ", in_quotes(key),
                                             " has control characters"));
  }
  return {};
}

}  // namespace wherry::container
