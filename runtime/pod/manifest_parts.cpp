// Names, resources, volumes and security contexts of a manifest.
#include "runtime/pod/manifest_parts.h"

#include <algorithm>

#include "base/path.h"

namespace wherry::pod {
namespace {

constexpr std::int64_t kMaxId = INT32_MAX;  // as Kubernetes has it

bool lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool letter_or_digit(char c) {
  return lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

std::optional<std::uint32_t> read_id(Object& object, std::string_view key) {
  const auto value = object.integer(key, 0, kMaxId);
  return value ? std::optional{static_cast<std::uint32_t>(*value)} : std::nullopt;
}

void read_seccomp(Findings& findings, const Field& field, Security& security) {
  Object object{findings, field};
  const auto type = object.word("type", {"RuntimeDefault", "Unconfined", "Localhost"});
  const auto profile = object.take("localhostProfile");
  object.rest();
  if (type == 1U) security.seccomp = SeccompMode::kUnconfined;
  if (type == 0U) security.seccomp = SeccompMode::kRuntimeDefault;
  if (type == 2U) {
    const auto name = profile ? as_string(findings, *profile).value_or("") : std::string{};
    object.problem(
        cat("the profile ", in_quotes(name), " of this host is not there or not supported"));
  } else if (!type && field.node.IsMap()) {
    object.problem("has no type that is known");
  }
}

// A label we cannot apply must not be left out in silence.
void read_apparmor(Findings& findings, const Field& field) {
  Object object{findings, field};
  const auto type = object.word("type", {"RuntimeDefault", "Unconfined", "Localhost"});
  const auto profile = object.string("localhostProfile");
  object.rest();
  if (type == 2U)
    object.problem(
        cat("the AppArmor profile ", in_quotes(profile), " is not loaded or not supported"));
  if (type == 0U)
    findings.warning(field.node, field.name, "is ignored: AppArmor profiles are not supported");
}

void read_common_security(Object& object, Security& security) {
  auto& findings = object.findings();
  if (const auto id = read_id(object, "runAsUser")) security.run_as_user = id;
  if (const auto id = read_id(object, "runAsGroup")) security.run_as_group = id;
  if (const auto value = object.boolean("runAsNonRoot")) security.run_as_non_root = value;
  if (const auto seccomp = object.take("seccompProfile"))
    read_seccomp(findings, *seccomp, security);
  if (const auto apparmor = object.take("appArmorProfile")) read_apparmor(findings, *apparmor);
  object.refuse("seLinuxOptions", "SELinux labels are not supported");
  object.refuse("windowsOptions", "Windows is not supported");
  if (security.run_as_non_root.value_or(false) && security.run_as_user == 0U)
    object.problem("runAsUser is 0 and runAsNonRoot is true");
}

void read_empty_dir(Findings& findings, const Field& field, Volume& volume) {
  Object object{findings, field};
  volume.kind = Volume::Kind::kEmptyDir;
  const auto medium = object.string("medium");
  if (medium == "Memory")
    volume.memory = true;
  else if (!medium.empty())
    object.problem(cat("medium ", in_quotes(medium), " is not supported"));
  if (const auto size = object.take("sizeLimit")) {
    const auto quantity = as_quantity(findings, *size);
    if (quantity && quantity->units() > 0) volume.size_limit = quantity->units();
    if (quantity && !volume.memory)
      findings.warning(size->node, size->name, "is not enforced on disk");
  }
  object.rest();
}

void read_host_path(Findings& findings, const Field& field, Volume& volume) {
  Object object{findings, field};
  volume.kind = Volume::Kind::kHostPath;
  volume.host_path = object.required_string("path");
  if (!volume.host_path.empty() && volume.host_path[0] != '/')
    object.problem(cat("path ", in_quotes(volume.host_path), " must be absolute"));
  const auto parts = components(volume.host_path);
  if (std::find(parts.begin(), parts.end(), "..") != parts.end())
    object.problem("path contains '..'");
  const auto type = object.word("type", {"", "DirectoryOrCreate", "Directory", "FileOrCreate",
                                         "File", "Socket", "CharDevice", "BlockDevice"});
  if (type) volume.host_type = static_cast<Volume::HostType>(*type);
  object.rest();
}

struct Bound {
  std::optional<Quantity> cpu, memory;
};

Bound read_bound(Findings& findings, const Field& field, std::string_view words) {
  Bound bound;
  Object object{findings, field};
  for (const auto& [key, value] : object.entries()) {
    const auto quantity = as_quantity(findings, value);
    if (!quantity) continue;
    if (key == "cpu")
      bound.cpu = quantity;
    else if (key == "memory")
      bound.memory = quantity;
    else if (key == "ephemeral-storage")
      findings.warning(value.node, value.name, "is ignored: storage is not limited");
    else if (key.starts_with("hugepages-"))
      findings.problem(value.node, value.name,
                       cat("huge pages as a ", words, " are not supported"));
    else
      findings.problem(value.node, value.name, "there is no such resource here");
  }
  return bound;
}

void compare(Findings& findings, const Field& field, const ResourceReading& reading,
             const NodeFacts& node) {
  const auto problem = [&](std::string_view what) {
    findings.problem(field.node, field.name, what);
  };
  if (reading.cpu_limit && reading.cpu_request &&
      reading.cpu_request->milli() > reading.cpu_limit->milli())
    problem("requests.cpu is more than limits.cpu");
  if (reading.memory_limit && reading.memory_request &&
      reading.memory_request->units() > reading.memory_limit->units())
    problem("requests.memory is more than limits.memory");
  const auto cpu = reading.cpu_request ? reading.cpu_request : reading.cpu_limit;
  const auto memory = reading.memory_request ? reading.memory_request : reading.memory_limit;
  if (cpu && node.cpu_milli && cpu->milli() > *node.cpu_milli)
    problem(cat("requests.cpu is more than this node has (", *node.cpu_milli, "m)"));
  if (memory && node.memory_bytes && memory->units() > *node.memory_bytes)
    problem(cat("requests.memory is more than this node has (", *node.memory_bytes, " bytes)"));
}

}  // namespace

bool is_dns_label(std::string_view text) {
  return !text.empty() && text.size() <= 63 && lower_or_digit(text.front()) &&
         lower_or_digit(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return lower_or_digit(c) || c == '-';
         });
}

bool is_dns_subdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  const auto parts = split(text, '.');
  return std::all_of(parts.begin(), parts.end(), [](auto part) {
    return !part.empty() && lower_or_digit(part.front()) && lower_or_digit(part.back()) &&
           std::all_of(part.begin(), part.end(),
                       [](char c) { return lower_or_digit(c) || c == '-'; });
  });
}

bool is_image_reference(std::string_view text) {
  return !text.empty() && letter_or_digit(text.front()) && letter_or_digit(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return letter_or_digit(c) ||
                  std::string_view{"._-/:@+"}.find(c) != std::string_view::npos;
         });
}

Security read_pod_security(Findings& findings, const Field& field, Pod& pod) {
  Security security;
  Object object{findings, field};
  read_common_security(object, security);
  for (const auto& item : object.list("supplementalGroups")) {
    if (const auto gid = as_int(findings, item, 0, kMaxId))
      pod.supplemental_groups.push_back(static_cast<std::uint32_t>(*gid));
  }
  if (object.word("supplementalGroupsPolicy", {"Merge", "Strict"}) == 1U)
    object.problem(
        "supplementalGroupsPolicy Strict is not supported: the groups of the image are kept");
  pod.fs_group = read_id(object, "fsGroup");
  object.ignore("fsGroupChangePolicy");
  object.warn("seLinuxChangePolicy", "SELinux labels are not supported");
  for (const auto& item : object.list("sysctls")) {
    Object sysctl{findings, item};
    const auto name = sysctl.required_string("name");
    const auto value = sysctl.require("value");
    sysctl.rest();
    if (value) pod.sysctls[name] = as_string(findings, *value).value_or("");
  }
  object.rest();
  return security;
}

void read_container_security(Findings& findings, const Field& field, Security& security) {
  Object object{findings, field};
  read_common_security(object, security);
  security.privileged = object.boolean("privileged");
  security.read_only_root = object.boolean("readOnlyRootFilesystem");
  security.allow_privilege_escalation = object.boolean("allowPrivilegeEscalation");
  if (const auto mount = object.word("procMount", {"Default", "Unmasked"}))
    security.unmasked_proc = *mount == 1;
  if (const auto capabilities = object.take("capabilities")) {
    Object inner{findings, *capabilities};
    security.cap_add = inner.strings("add");
    security.cap_drop = inner.strings("drop");
    inner.rest();
  }
  object.rest();
  if (security.allow_privilege_escalation == false && security.privileged.value_or(false))
    object.problem("a privileged container cannot go without privilege escalation");
}

Volume read_volume(Findings& findings, const Field& field) {
  Volume volume;
  Object object{findings, field};
  volume.name = object.required_string("name");
  if (!volume.name.empty() && !is_dns_label(volume.name))
    object.problem(cat("name ", in_quotes(volume.name), " is not a DNS label"));
  const auto empty_dir = object.take("emptyDir");
  const auto host_path = object.take("hostPath");
  if (empty_dir && host_path) object.problem("must have one kind");
  if (host_path)
    read_host_path(findings, *host_path, volume);
  else if (empty_dir)
    read_empty_dir(findings, *empty_dir, volume);
  for (const auto* kind : {"configMap",
                           "secret",
                           "projected",
                           "downwardAPI",
                           "persistentVolumeClaim",
                           "image",
                           "ephemeral",
                           "csi",
                           "nfs",
                           "iscsi",
                           "fc",
                           "rbd",
                           "cephfs",
                           "cinder",
                           "glusterfs",
                           "flexVolume",
                           "flocker",
                           "gitRepo",
                           "quobyte",
                           "azureDisk",
                           "azureFile",
                           "awsElasticBlockStore",
                           "gcePersistentDisk",
                           "photonPersistentDisk",
                           "portworxVolume",
                           "scaleIO",
                           "storageos",
                           "vsphereVolume"})
    object.refuse(kind, cat("volumes of the kind ", kind, " are not supported"));
  object.rest();
  return volume;
}

ResourceReading read_resources(Findings& findings, const Field& field, const NodeFacts& node) {
  ResourceReading out;
  Object object{findings, field};
  if (const auto limits = object.take("limits")) {
    const auto bound = read_bound(findings, *limits, "limit");
    out.cpu_limit = bound.cpu;
    out.memory_limit = bound.memory;
  }
  if (const auto requests = object.take("requests")) {
    const auto bound = read_bound(findings, *requests, "request");
    out.cpu_request = bound.cpu;
    out.memory_request = bound.memory;
  }
  object.refuse("claims", "resource claims are not supported");
  object.rest();
  compare(findings, field, out, node);
  // Nothing at all is no limit, as in Kubernetes.
  if (out.cpu_limit && out.cpu_limit->milli() > 0) out.limits.cpu_milli = out.cpu_limit->milli();
  if (out.memory_limit && out.memory_limit->units() > 0)
    out.limits.memory_bytes = out.memory_limit->units();
  if (out.cpu_request) out.limits.cpu_request_milli = out.cpu_request->milli();
  if (out.memory_request) out.limits.memory_request_bytes = out.memory_request->units();
  return out;
}

}  // namespace wherry::pod
