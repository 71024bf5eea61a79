// What this version cannot do, by field.
#include <algorithm>

#include "base/sys.h"
#include "base/text.h"
#include "oci/config.h"
#include "runtime/container/planner.h"

namespace wherry::container {
namespace {

using Refusals = std::vector<std::string>;

void refuse_linux(const oci::Linux& linux_, Refusals& out) {
  if (!linux_.net_devices.empty()) out.emplace_back("linux.netDevices");
  if (linux_.intel_rdt)
    out.emplace_back(sys::fstatat(AT_FDCWD, "/sys/fs/resctrl/schemata").ok()
                         ? "linux.intelRdt"
                         : "linux.intelRdt (no resctrl is mounted on /sys/fs/resctrl)");
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

// Whoever makes a user namespace has to say who is who in it; whoever joins one cannot.
Result<> check_user_namespace(const oci::Linux& linux_) {
  const auto wrong = [](std::string text) { return Error::make(Code::kInvalid, std::move(text)); };
  for (const auto& ns : linux_.namespaces) {
    if (ns.type == oci::NamespaceType::kTime && !ns.path.empty() && !linux_.time_offsets.empty())
      return wrong("linux.timeOffsets: a time namespace that is joined has its own already");
    if (ns.type != oci::NamespaceType::kUser) continue;
    for (const auto& [name, maps] : {std::pair{"linux.uidMappings", &linux_.uid_mappings},
                                     std::pair{"linux.gidMappings", &linux_.gid_mappings}}) {
      if (!ns.path.empty() && !maps->empty())
        return wrong(cat(name, ": a user namespace that is joined has its own already"));
      if (!ns.path.empty()) continue;
      if (maps->empty()) return wrong(cat(name, ": a new user namespace needs them"));
      if (std::none_of(maps->begin(), maps->end(),
                       [](const auto& map) { return map.container_id == 0 && map.size > 0; }))
        return wrong(cat(name, ": id 0 of the container is not mapped, which setting it up needs"));
    }
    for (const auto& other : linux_.namespaces)
      if (other.type == oci::NamespaceType::kMount && !other.path.empty())
        return Error::make(Code::kUnsupported,
                           "linux.namespaces: a mount namespace by path with a user namespace");
  }
  return {};
}

}  // namespace

// The kernel would say it behind the gate, as EINVAL of setresuid.
Result<> check_mapped(const oci::Process& process, const oci::Linux& linux_) {
  const auto check = [](std::string_view field, std::uint32_t id, std::string_view maps_field,
                        const std::vector<oci::IdMapping>& maps) -> Result<> {
    if (maps.empty() || std::any_of(maps.begin(), maps.end(), [&](const auto& map) {
          return id >= map.container_id && id - map.container_id < map.size;
        }))
      return {};
    return Error::make(Code::kInvalid, cat(field, ": ", id, " is not mapped by ", maps_field));
  };
  const auto& user = process.user;
  const auto &uids = linux_.uid_mappings, &gids = linux_.gid_mappings;
  TRY(check("process.user.uid", user.uid, "linux.uidMappings", uids));
  TRY(check("process.user.gid", user.gid, "linux.gidMappings", gids));
  for (const auto gid : user.additional_gids)
    TRY(check("process.user.additionalGids", gid, "linux.gidMappings", gids));
  return {};
}

Result<> refuse_unsupported(const oci::Spec& spec) {
  if (!spec.process)
    return Error::make(Code::kInvalid, "process: a container cannot be made without one");
  if (!spec.root)
    return Error::make(Code::kInvalid, "root: a container cannot be made without one");
  if (!spec.linux_)
    return Error::make(Code::kInvalid, "linux: a container cannot be made without it");
  Refusals refused;
  refuse_linux(*spec.linux_, refused);
  if (!refused.empty())
    return Error::make(Code::kUnsupported,
                       cat("not supported by this version: ", join(refused, ", ")));
  TRY(check_user_namespace(*spec.linux_));
  TRY(check_mapped(*spec.process, *spec.linux_));
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
