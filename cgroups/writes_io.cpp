#include <algorithm>

#include "base/text.h"
#include "cgroups/writes.h"

namespace wherry::cgroups {
namespace {

using Side = Writes::Side;

constexpr std::uint16_t kLeastWeight = 10, kMostWeight = 1000;  // runtime-spec, config-linux.md

// 10..1000 of the specification -> 1..10000 of io.weight, straight through both ends.
std::uint64_t io_weight(std::uint16_t weight) {
  return 1 + (std::uint64_t{weight} - kLeastWeight) * 9999 / (kMostWeight - kLeastWeight);
}

Result<> write_weights(const oci::BlockIo& io, Side side, Writes& out) {
  const auto one = [&](const std::optional<std::uint16_t>& weight, const std::string& device,
                       std::string_view field) -> Result<> {
    if (weight.value_or(0) == 0) return {};
    if (*weight < kLeastWeight || *weight > kMostWeight)
      return invalid(field, cat(*weight, " is not in 10 to 1000"));
    if (side == Side::kV2)
      out.v2("io.weight", cat(device.empty() ? "default" : device, " ", io_weight(*weight)));
    else if (device.empty())  // the proportional policy of v1 is BFQ's alone (Linux 5.0)
      out.v1("blkio", "blkio.bfq.weight", cat(*weight));
    else
      out.v1("blkio", "blkio.bfq.weight_device", cat(device, " ", *weight));
    return {};
  };
  if (io.leaf_weight.value_or(0) != 0)
    return unsupported("blockIO.leafWeight", "the kernel has no leaf weight any more (Linux 5.0)");
  TRY(one(io.weight, "", "blockIO.weight"));
  for (std::size_t i = 0; i < io.weight_device.size(); ++i) {
    const auto& device = io.weight_device[i];
    const auto field = cat("blockIO.weightDevice[", i, "]");
    if (device.leaf_weight.value_or(0) != 0)
      return unsupported(cat(field, ".leafWeight"),
                         "the kernel has no leaf weight any more (Linux 5.0)");
    TRY(one(device.weight, cat(device.major, ":", device.minor), cat(field, ".weight")));
  }
  return {};
}

void write_throttle(const std::vector<oci::ThrottleDevice>& devices, Side side, const char* v1_file,
                    const char* v2_key, Writes& out) {
  for (const auto& device : devices) {
    const auto name = cat(device.major, ":", device.minor);
    if (side == Side::kV1)
      out.v1("blkio", v1_file, cat(name, " ", device.rate));  // 0 takes the limit away
    else
      out.v2("io.max", cat(name, " ", v2_key, "=", device.rate == 0 ? "max" : cat(device.rate)));
  }
}

// "2MB", "1GB", "64KB": part of a file name, so nothing else is let through (runc #4103).
bool is_page_size(std::string_view text) {
  const auto digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || text.front() == '0') return false;
  const auto unit = text.substr(digits);
  return unit == "KB" || unit == "MB" || unit == "GB";
}

bool is_plain_word(std::string_view text) {
  return !text.empty() && !has_control(text) && text.find(' ') == std::string_view::npos;
}

}  // namespace

Result<> write_block_io(const oci::BlockIo& io, Writes& out) {
  const auto side = TRY(out.side("io", "blockIO"));
  TRY(write_weights(io, side, out));
  write_throttle(io.read_bps, side, "blkio.throttle.read_bps_device", "rbps", out);
  write_throttle(io.write_bps, side, "blkio.throttle.write_bps_device", "wbps", out);
  write_throttle(io.read_iops, side, "blkio.throttle.read_iops_device", "riops", out);
  write_throttle(io.write_iops, side, "blkio.throttle.write_iops_device", "wiops", out);
  return {};
}

Result<> write_hugepages(const std::vector<oci::HugepageLimit>& limits, Writes& out) {
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const auto& [size, limit] = limits[i];
    const auto field = cat("hugepageLimits[", i, "].pageSize");
    if (!is_page_size(size)) return invalid(field, cat(in_quotes(size), " is not a page size"));
    const auto side = TRY(out.side("hugetlb", field));
    // Reservations as well as use: a process that maps more than it may is refused then, instead of
    // being killed by SIGBUS at its first touch (Linux 5.7).
    for (const auto* part : {".rsvd", ""}) {
      const auto file = cat("hugetlb.", size, part);
      if (side == Side::kV1)
        out.v1("hugetlb", cat(file, ".limit_in_bytes"), cat(limit));
      else
        out.v2(cat(file, ".max"), cat(limit));
    }
  }
  return {};
}

Result<> write_network(const oci::Resources& resources, Writes& out) {
  if (resources.network_class_id) {
    TRY(out.side("net_cls", "network.classID"));
    out.v1("net_cls", "net_cls.classid", cat(*resources.network_class_id));
  }
  for (const auto& [interface, priority] : resources.network_priorities) {
    TRY(out.side("net_prio", "network.priorities"));
    if (!is_plain_word(interface))
      return invalid("network.priorities", cat(in_quotes(interface), " is not an interface name"));
    out.v1("net_prio", "net_prio.ifpriomap", cat(interface, " ", priority));
  }
  return {};
}

Result<> write_rdma(const oci::Resources& resources, Writes& out) {
  for (const auto& [device, limits] : resources.rdma) {
    const auto field = cat("rdma[", in_quotes(device), "]");
    if (!is_plain_word(device)) return invalid(field, "is not the name of a device");
    const auto side = TRY(out.side("rdma", field));
    const auto& [handles, objects] = limits;
    std::string value = device;
    if (handles) value += cat(" hca_handle=", *handles);
    if (objects) value += cat(" hca_object=", *objects);
    if (side == Side::kV1)
      out.v1("rdma", "rdma.max", std::move(value));
    else
      out.v2("rdma.max", std::move(value));
  }
  return {};
}

}  // namespace wherry::cgroups
