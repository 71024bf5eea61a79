// `linux` of the runtime-spec 1.3 (config-linux.md), without its resources.
#pragma once
#include "base/json.h"
#include "oci/fields_resources.h"

namespace wherry::oci {

template <class Visitor, Is<IdMapping> T>
void members(Visitor& v, T& mapping) {
  v.required("containerID", mapping.container_id);
  v.required("hostID", mapping.host_id);
  v.required("size", mapping.size);
}

void read(const Cursor& at, NamespaceType& out);
inline Json write(NamespaceType type) {
  return to_string(type);
}

template <class Visitor, Is<Namespace> T>
void members(Visitor& v, T& ns) {
  v.required("type", ns.type);
  v.optional("path", ns.path);
}

template <class Visitor, Is<TimeOffset> T>
void members(Visitor& v, T& offset) {
  v.optional("secs", offset.secs);
  v.optional("nanosecs", offset.nanosecs);
}

template <class Visitor, Is<Device> T>
void members(Visitor& v, T& device) {
  v.required("path", device.path);
  v.required("type", device.type);
  const auto numbers = device.type == "p" ? Need::kOptional : Need::kRequired;  // a FIFO has none
  v.field("major", device.major, numbers);
  v.field("minor", device.minor, numbers);
  v.optional("fileMode", device.file_mode);
  v.optional("uid", device.uid);
  v.optional("gid", device.gid);
}

template <class Visitor, Is<SeccompArg> T>
void members(Visitor& v, T& arg) {
  v.always("index", arg.index);  // encoders that leave zeros out leave these out too
  v.always("value", arg.value);
  v.optional("valueTwo", arg.value_two);
  v.required("op", arg.op);
}

template <class Visitor, Is<SeccompRule> T>
void members(Visitor& v, T& rule) {
  v.required("names", rule.names);
  v.required("action", rule.action);
  v.optional("errnoRet", rule.errno_ret);
  v.optional("args", rule.args);
}

template <class Visitor, Is<Seccomp> T>
void members(Visitor& v, T& seccomp) {
  v.required("defaultAction", seccomp.default_action);
  v.optional("defaultErrnoRet", seccomp.default_errno_ret);
  v.optional("architectures", seccomp.architectures);
  v.optional("flags", seccomp.flags);
  v.optional("listenerPath", seccomp.listener_path);
  v.optional("listenerMetadata", seccomp.listener_metadata);
  v.optional("syscalls", seccomp.syscalls);
}

template <class Visitor, Is<IntelRdt> T>
void members(Visitor& v, T& rdt) {
  v.optional("closID", rdt.clos_id);
  v.optional("schemata", rdt.schemata);
  v.optional("l3CacheSchema", rdt.l3_cache_schema);
  v.optional("memBwSchema", rdt.mem_bw_schema);
  v.optional("enableMonitoring", rdt.enable_monitoring);
}

template <class Visitor, Is<Personality> T>
void members(Visitor& v, T& personality) {
  v.required("domain", personality.domain);
  v.optional("flags", personality.flags);
}

template <class Visitor, Is<MemoryPolicy> T>
void members(Visitor& v, T& policy) {
  v.required("mode", policy.mode);
  v.optional("nodes", policy.nodes);
  v.optional("flags", policy.flags);
}

template <class Visitor, Is<Linux> T>
void members(Visitor& v, T& lin) {
  v.optional("namespaces", lin.namespaces);
  v.optional("uidMappings", lin.uid_mappings);
  v.optional("gidMappings", lin.gid_mappings);
  v.optional("timeOffsets", lin.time_offsets);
  v.optional("devices", lin.devices);
  v.each("netDevices", lin.net_devices,
         [](auto& device, auto& name) { device.optional("name", name); });
  v.optional("cgroupsPath", lin.cgroups_path);
  v.optional("resources", lin.resources);
  v.optional("intelRdt", lin.intel_rdt);
  v.optional("sysctl", lin.sysctl);
  v.optional("seccomp", lin.seccomp);
  v.optional("rootfsPropagation", lin.rootfs_propagation);
  v.optional("maskedPaths", lin.masked_paths);
  v.optional("readonlyPaths", lin.readonly_paths);
  v.optional("mountLabel", lin.mount_label);
  v.optional("personality", lin.personality);
  v.optional("memoryPolicy", lin.memory_policy);
}

}  // namespace wherry::oci
