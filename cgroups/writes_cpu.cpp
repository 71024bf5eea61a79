#include <cmath>

#include "base/text.h"
#include "cgroups/writes.h"

namespace wherry::cgroups {
namespace {

constexpr std::uint64_t kDefaultPeriod = 100000;  // microseconds, sched-bwc.rst

void write_cpu_v1(const oci::CpuResources& cpu, Writes& out) {
  const auto set = [&](const char* file, const auto& value) {
    if (value) out.v1("cpu", file, cat(*value));
  };
  if (cpu.shares.value_or(0) != 0) set("cpu.shares", cpu.shares);
  set("cpu.idle", cpu.idle);
  // Each of these pairs is refused while it contradicts the other's old value: see Place::apply().
  if (cpu.period.value_or(0) != 0) set("cpu.cfs_period_us", cpu.period);
  if (cpu.quota.value_or(0) != 0) set("cpu.cfs_quota_us", cpu.quota);
  set("cpu.cfs_burst_us", cpu.burst);
  if (cpu.realtime_period.value_or(0) != 0) set("cpu.rt_period_us", cpu.realtime_period);
  if (cpu.realtime_runtime.value_or(0) != 0) set("cpu.rt_runtime_us", cpu.realtime_runtime);
}

Result<> write_cpu_v2(const oci::CpuResources& cpu, Writes& out) {
  if (cpu.realtime_runtime.value_or(0) != 0)
    return unsupported("cpu.realtimeRuntime", "needs the v1 cpu controller");
  if (cpu.realtime_period.value_or(0) != 0)
    return unsupported("cpu.realtimePeriod", "needs the v1 cpu controller");
  if (cpu.shares.value_or(0) != 0) out.v2("cpu.weight", cat(weight_of_shares(*cpu.shares)));
  if (cpu.idle) out.v2("cpu.idle", cat(*cpu.idle));
  const auto quota = cpu.quota.value_or(0);
  const auto period = cpu.period.value_or(0);
  if (quota != 0 || period != 0)
    out.v2("cpu.max",
           cat(quota > 0 ? cat(quota) : "max", " ", period != 0 ? period : kDefaultPeriod));
  if (cpu.burst) out.v2("cpu.max.burst", cat(*cpu.burst));
  return {};
}

}  // namespace

std::uint64_t weight_of_shares(std::uint64_t shares) {
  constexpr std::uint64_t kLeast = 2, kMost = 1U << 18;
  if (shares == 0) return 0;
  if (shares <= kLeast) return 1;
  if (shares >= kMost) return 10000;
  const double l = std::log2(static_cast<double>(shares));
  const double weight = std::pow(10.0, (l * l + 125.0 * l) / 612.0 - 7.0 / 34.0);
  // 1,024 is to be 100, whatever the last bit of pow() is.
  constexpr double kRoundingError = 1e-9;
  return static_cast<std::uint64_t>(std::ceil(weight - kRoundingError));
}

Result<> write_cpu(const oci::CpuResources& cpu, Writes& out) {
  const bool set = cpu.shares || cpu.quota || cpu.burst || cpu.period || cpu.realtime_runtime ||
                   cpu.realtime_period || cpu.idle;
  if (set && cpu.quota.value_or(0) < -1)
    return invalid("cpu.quota", cat(*cpu.quota, " is below -1"));
  if (set) {
    if (TRY(out.side("cpu", "cpu")) == Writes::Side::kV1)
      write_cpu_v1(cpu, out);
    else
      TRY(write_cpu_v2(cpu, out));
  }
  const auto cpuset = [&](const std::string& value, const char* file,
                          std::string_view field) -> Result<> {
    if (value.empty()) return {};
    if (TRY(out.side("cpuset", field)) == Writes::Side::kV1)
      out.v1("cpuset", file, value);
    else
      out.v2(file, value);
    return {};
  };
  TRY(cpuset(cpu.cpus, "cpuset.cpus", "cpu.cpus"));
  return cpuset(cpu.mems, "cpuset.mems", "cpu.mems");
}

}  // namespace wherry::cgroups
