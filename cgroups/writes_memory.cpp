#include "base/text.h"
#include "cgroups/writes.h"

namespace wherry::cgroups {
namespace {

constexpr std::int64_t kUnlimited = -1;

std::string limit_v2(std::int64_t bytes) {
  return bytes == kUnlimited ? "max" : cat(bytes);
}

Result<> check(const oci::MemoryResources& memory) {
  auto at_least = [](const std::optional<std::int64_t>& value, std::string_view field) -> Result<> {
    if (value && *value < kUnlimited) return invalid(field, cat(*value, " is below -1"));
    return {};
  };
  TRY(at_least(memory.limit, "memory.limit"));
  TRY(at_least(memory.reservation, "memory.reservation"));
  TRY(at_least(memory.swap, "memory.swap"));
  TRY(at_least(memory.kernel_tcp, "memory.kernelTCP"));
  if (memory.kernel)
    return unsupported("memory.kernel", "the kernel has no such limit any more (Linux 5.16)");
  if (memory.use_hierarchy && !*memory.use_hierarchy)
    return unsupported("memory.useHierarchy",
                       "memory is always accounted hierarchically (Linux 5.11)");
  const auto swap = memory.swap.value_or(0);
  if (swap > 0 && memory.limit.value_or(0) <= 0)
    return invalid("memory.swap", "is memory and swap together and needs memory.limit");
  if (swap > 0 && swap < *memory.limit)
    return invalid("memory.swap", cat("memory and swap together (", swap, ") below memory.limit (",
                                      *memory.limit, ")"));
  return {};
}

Result<> write_memory_v2(const oci::MemoryResources& memory, Writes& out) {
  if (memory.kernel_tcp) return unsupported("memory.kernelTCP", "needs the v1 memory controller");
  if (memory.swappiness) return unsupported("memory.swappiness", "needs the v1 memory controller");
  if (memory.disable_oom_killer.value_or(false))
    return unsupported("memory.disableOOMKiller", "needs the v1 memory controller");
  const auto limit = memory.limit.value_or(0);
  const auto swap = memory.swap.value_or(0);
  // Swap first: where memory shrinks, there is room for what has to leave it.
  if (swap == kUnlimited || (swap == 0 && limit == kUnlimited))
    out.v2("memory.swap.max", "max");
  else if (swap > 0)
    out.v2("memory.swap.max", cat(swap - limit));  // OCI counts memory and swap together
  if (limit != 0) {
    const bool checked = memory.check_before_update.value_or(false) && limit != kUnlimited;
    out.v2("memory.max", limit_v2(limit), checked ? "memory.current" : "");
  }
  if (memory.reservation.value_or(0) != 0) out.v2("memory.low", limit_v2(*memory.reservation));
  return {};
}

Result<> write_memory_v1(const oci::MemoryResources& memory, Writes& out) {
  const auto set = [&](const char* file, std::int64_t value) {
    out.v1("memory", file, cat(value));
  };
  // The kernel wants limit <= memsw at every moment; apply() turns the two round when that needs
  // it.
  if (memory.limit.value_or(0) != 0) set("memory.limit_in_bytes", *memory.limit);
  if (memory.swap.value_or(0) != 0) set("memory.memsw.limit_in_bytes", *memory.swap);
  if (memory.reservation.value_or(0) != 0) set("memory.soft_limit_in_bytes", *memory.reservation);
  if (memory.kernel_tcp) set("memory.kmem.tcp.limit_in_bytes", *memory.kernel_tcp);
  if (memory.swappiness) {
    constexpr std::uint64_t kMost = 100;
    if (*memory.swappiness > kMost)
      return invalid("memory.swappiness", cat(*memory.swappiness, " is above 100"));
    out.v1("memory", "memory.swappiness", cat(*memory.swappiness));
  }
  if (memory.disable_oom_killer) set("memory.oom_control", *memory.disable_oom_killer ? 1 : 0);
  return {};
}

}  // namespace

Result<> write_memory(const oci::MemoryResources& memory, Writes& out) {
  TRY(check(memory));
  if (TRY(out.side("memory", "memory")) == Writes::Side::kV1) return write_memory_v1(memory, out);
  return write_memory_v2(memory, out);
}

}  // namespace wherry::cgroups
