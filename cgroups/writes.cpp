#include "cgroups/writes.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace wherry::cgroups {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

void need(std::vector<std::string>& list, std::string_view name) {
  if (!contains(list, name)) list.emplace_back(name);
}

// Files of the core that a configuration may set; the others start, stop or move processes, or make
// the cgroup one that its processes cannot be killed in (REL-17).
constexpr std::array<std::string_view, 3> kCoreFiles = {
    "cgroup.max.depth", "cgroup.max.descendants", "cgroup.pressure"};

std::string_view controller_of(std::string_view file) {
  return file.substr(0, file.find('.'));
}

}  // namespace

Error unsupported(std::string_view field, std::string_view why) {
  return Error::make(Code::kUnsupported, cat("linux.resources.", field, ": ", why));
}

Error invalid(std::string_view field, std::string_view why) {
  return Error::make(Code::kInvalid, cat("linux.resources.", field, ": ", why));
}

std::string v1_name(std::string_view controller) {
  return std::string{controller == "io" ? "blkio" : controller};
}

Result<Writes::Side> Writes::side(std::string_view controller, std::string_view field) const {
  if (contains(hierarchies_.unified_controllers, controller)) return Side::kV2;
  if (hierarchies_.v1.contains(v1_name(controller))) return Side::kV1;
  return unsupported(field, cat("this host has no cgroup controller '", controller, "'"));
}

Result<std::vector<Write>> to_writes(const oci::Resources& resources,
                                     const Hierarchies& hierarchies) {
  Writes out{hierarchies};
  if (resources.memory) TRY(write_memory(*resources.memory, out));
  if (resources.cpu) TRY(write_cpu(*resources.cpu, out));
  if (const auto limit = resources.pids_limit) {
    const std::string value = *limit > 0 ? cat(*limit) : "max";
    if (TRY(out.side("pids", "pids")) == Writes::Side::kV1)
      out.v1("pids", "pids.max", value);
    else
      out.v2("pids.max", value);
  }
  if (resources.block_io) TRY(write_block_io(*resources.block_io, out));
  TRY(write_hugepages(resources.hugepage_limits, out));
  TRY(write_network(resources, out));
  TRY(write_rdma(resources, out));
  TRY(write_unified(resources, out));  // last: what is set by file name is meant most exactly
  return std::move(out).take();
}

Result<> write_unified(const oci::Resources& resources, Writes& out) {
  for (const auto& [file, value] : resources.unified) {
    const auto name = cat("unified[", in_quotes(file), "]");
    if (file.empty() || file.find('/') != std::string::npos ||
        file.find('.') == std::string::npos || file.front() == '.' || has_control(file))
      return invalid(name, "is not the name of a cgroup file");
    const auto controller = controller_of(file);
    if (controller == "cgroup") {
      if (std::find(kCoreFiles.begin(), kCoreFiles.end(), file) == kCoreFiles.end())
        return unsupported(name, "is not a setting of resources");
    } else if (!contains(out.hierarchies().unified_controllers, controller)) {
      return unsupported(
          name, cat("the cgroup2 hierarchy of this host has no controller '", controller, "'"));
    }
    out.v2(file, value);
  }
  return {};
}

std::vector<std::string> needed_controllers(const oci::Resources& resources) {
  std::vector<std::string> list{"memory", "cpu", "pids"};
  if (resources.cpu && (!resources.cpu->cpus.empty() || !resources.cpu->mems.empty()))
    need(list, "cpuset");
  if (resources.block_io) need(list, "io");
  if (!resources.hugepage_limits.empty()) need(list, "hugetlb");
  if (resources.network_class_id) need(list, "net_cls");
  if (!resources.network_priorities.empty()) need(list, "net_prio");
  if (!resources.rdma.empty()) need(list, "rdma");
  for (const auto& [file, value] : resources.unified)
    if (const auto controller = controller_of(file); controller != "cgroup") need(list, controller);
  return list;
}

}  // namespace wherry::cgroups
