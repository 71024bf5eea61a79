// `linux.resources` of the runtime-spec 1.3 (config-linux.md, "Control groups").
#pragma once
#include "oci/reader.h"
#include "oci/spec.h"

namespace wherry::oci {

template <class Visitor, Is<DeviceRule> T>
void members(Visitor& v, T& rule) {
  v.always("allow", rule.allow);
  v.optional("type", rule.type);
  v.wildcard("major", rule.major);
  v.wildcard("minor", rule.minor);
  v.optional("access", rule.access);
}

template <class Visitor, Is<MemoryResources> T>
void members(Visitor& v, T& memory) {
  v.optional("limit", memory.limit);
  v.optional("reservation", memory.reservation);
  v.optional("swap", memory.swap);
  v.optional("kernel", memory.kernel);
  v.optional("kernelTCP", memory.kernel_tcp);
  v.optional("swappiness", memory.swappiness);
  v.optional("disableOOMKiller", memory.disable_oom_killer);
  v.optional("useHierarchy", memory.use_hierarchy);
  v.optional("checkBeforeUpdate", memory.check_before_update);
}

template <class Visitor, Is<CpuResources> T>
void members(Visitor& v, T& cpu) {
  v.optional("shares", cpu.shares);
  v.optional("quota", cpu.quota);
  v.optional("burst", cpu.burst);
  v.optional("period", cpu.period);
  v.optional("realtimeRuntime", cpu.realtime_runtime);
  v.optional("realtimePeriod", cpu.realtime_period);
  v.optional("cpus", cpu.cpus);
  v.optional("mems", cpu.mems);
  v.optional("idle", cpu.idle);
}

template <class Visitor, Is<WeightDevice> T>
void members(Visitor& v, T& device) {
  v.required("major", device.major);
  v.required("minor", device.minor);
  v.optional("weight", device.weight);
  v.optional("leafWeight", device.leaf_weight);
}

template <class Visitor, Is<ThrottleDevice> T>
void members(Visitor& v, T& device) {
  v.required("major", device.major);
  v.required("minor", device.minor);
  v.always("rate", device.rate);
}

template <class Visitor, Is<BlockIo> T>
void members(Visitor& v, T& io) {
  v.optional("weight", io.weight);
  v.optional("leafWeight", io.leaf_weight);
  v.optional("weightDevice", io.weight_device);
  v.optional("throttleReadBpsDevice", io.read_bps);
  v.optional("throttleWriteBpsDevice", io.write_bps);
  v.optional("throttleReadIOPSDevice", io.read_iops);
  v.optional("throttleWriteIOPSDevice", io.write_iops);
}

template <class Visitor, Is<HugepageLimit> T>
void members(Visitor& v, T& limit) {
  v.required("pageSize", limit.page_size);
  v.required("limit", limit.limit);
}

template <class Visitor, Is<std::pair<std::string, std::uint32_t>> T>
void members(Visitor& v, T& interface) {
  v.required("name", interface.first);
  v.required("priority", interface.second);
}

template <class Visitor,
          Is<std::pair<std::optional<std::uint32_t>, std::optional<std::uint32_t>>> T>
void members(Visitor& v, T& rdma) {
  v.optional("hcaHandles", rdma.first);
  v.optional("hcaObjects", rdma.second);
}

template <class Visitor, Is<Resources> T>
void members(Visitor& v, T& resources) {
  v.optional("devices", resources.devices);
  v.optional("memory", resources.memory);
  v.optional("cpu", resources.cpu);
  v.group("pids", resources.pids_limit.has_value(),
          [&](auto& pids) { pids.required("limit", resources.pids_limit); });
  v.optional("blockIO", resources.block_io);
  v.optional("hugepageLimits", resources.hugepage_limits);
  v.group("network", resources.network_class_id || !resources.network_priorities.empty(),
          [&](auto& network) {
            network.optional("classID", resources.network_class_id);
            network.optional("priorities", resources.network_priorities);
          });
  v.optional("rdma", resources.rdma);
  v.optional("unified", resources.unified);
}

}  // namespace wherry::oci
