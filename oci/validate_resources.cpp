#include <algorithm>

#include "base/text.h"
#include "oci/validate.h"

namespace wherry::oci {
namespace {

// A name that becomes a file below a cgroup directory or a word of a line written there.
bool is_plain_name(std::string_view name) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !name.empty() && name[0] != '.' &&
         name.find_first_not_of(kLetters) == std::string_view::npos;
}

bool is_page_size(std::string_view text) {
  if (text.size() < 3 || text.back() != 'B' || text[0] < '1' || text[0] > '9') return false;
  if (std::string_view{"KMG"}.find(text[text.size() - 2]) == std::string_view::npos) return false;
  return parse_int<std::uint64_t>(text.substr(0, text.size() - 2)).has_value();
}

void check_number(Rules& rules, const std::string& pointer, std::int64_t number) {
  constexpr std::int64_t kMost = 0xffffffff;
  if (number < 0 || number > kMost)
    rules.problem(pointer, cat("must be a device number, not ", number));
}

void check_device_rule(Rules& rules, const std::string& pointer, const DeviceRule& rule) {
  if (!rule.type.empty()) rules.one_of(member(pointer, "type"), rule.type, {"a", "b", "c"});
  if (rule.major) check_number(rules, member(pointer, "major"), *rule.major);
  if (rule.minor) check_number(rules, member(pointer, "minor"), *rule.minor);
  if (rule.access.find_first_not_of("rwm") != std::string::npos)
    rules.problem(member(pointer, "access"),
                  cat("must be made of 'r', 'w' and 'm', not ", in_quotes(rule.access)));
}

void check_memory(Rules& rules, const std::string& pointer, const MemoryResources& memory) {
  const std::pair<const char*, std::optional<std::int64_t>> all[] = {
      {"limit", memory.limit},
      {"reservation", memory.reservation},
      {"swap", memory.swap},
      {"kernel", memory.kernel},
      {"kernelTCP", memory.kernel_tcp}};
  for (const auto& [name, value] : all)
    if (value && *value < -1)
      rules.problem(member(pointer, name),
                    cat("must be a number of bytes, or -1 for no limit, not ", *value));
  if (memory.swappiness && *memory.swappiness > 100)
    rules.problem(member(pointer, "swappiness"),
                  cat("must be between 0 and 100, not ", *memory.swappiness));
  if (memory.limit && memory.swap && *memory.swap > 0 && *memory.limit > *memory.swap)
    rules.problem(member(pointer, "swap"),
                  cat("is memory and swap together: it must not be below the limit of ",
                      *memory.limit, ", but is ", *memory.swap));
}

void check_cpu(Rules& rules, const std::string& pointer, const CpuResources& cpu) {
  rules.cpu_list(member(pointer, "cpus"), cpu.cpus);
  rules.cpu_list(member(pointer, "mems"), cpu.mems);
  if (cpu.idle && *cpu.idle != 0 && *cpu.idle != 1)
    rules.problem(member(pointer, "idle"), cat("must be 0 or 1, not ", *cpu.idle));
}

void check_weight(Rules& rules, const std::string& pointer, std::optional<std::uint16_t> weight) {
  if (weight && *weight != 0 && (*weight < 10 || *weight > 1000))
    rules.problem(pointer, cat("must be between 10 and 1000, or 0 for the default, not ", *weight));
}

void check_block_io(Rules& rules, const std::string& pointer, const BlockIo& io) {
  check_weight(rules, member(pointer, "weight"), io.weight);
  check_weight(rules, member(pointer, "leafWeight"), io.leaf_weight);
  for (std::size_t i = 0; i < io.weight_device.size(); ++i) {
    const auto& device = io.weight_device[i];
    const auto here = element(member(pointer, "weightDevice"), i);
    check_number(rules, member(here, "major"), device.major);
    check_number(rules, member(here, "minor"), device.minor);
    check_weight(rules, member(here, "weight"), device.weight);
    check_weight(rules, member(here, "leafWeight"), device.leaf_weight);
    if (!device.weight && !device.leaf_weight)
      rules.problem(here, "must give 'weight' or 'leafWeight'");
  }
  const std::pair<const char*, const std::vector<ThrottleDevice>*> all[] = {
      {"throttleReadBpsDevice", &io.read_bps},
      {"throttleWriteBpsDevice", &io.write_bps},
      {"throttleReadIOPSDevice", &io.read_iops},
      {"throttleWriteIOPSDevice", &io.write_iops}};
  for (const auto& [name, devices] : all) {
    for (std::size_t i = 0; i < devices->size(); ++i) {
      const auto here = element(member(pointer, name), i);
      check_number(rules, member(here, "major"), (*devices)[i].major);
      check_number(rules, member(here, "minor"), (*devices)[i].minor);
    }
  }
}

void check_hugepages(Rules& rules, const std::string& pointer,
                     const std::vector<HugepageLimit>& limits) {
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const auto here = member(element(pointer, i), "pageSize");
    const auto& size = limits[i].page_size;
    if (!is_page_size(size))
      rules.problem(here, cat("must be a size like '64KB', '2MB' or '1GB', not ", in_quotes(size)));
    const auto end = limits.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(limits.begin(), end,
                    [&](const HugepageLimit& before) { return before.page_size == size; }))
      rules.problem(here, cat("stands twice: ", in_quotes(size)));
  }
}

}  // namespace

void check_resources(Rules& rules, const std::string& pointer, const Resources& resources) {
  const auto at = [&](std::string_view name) { return member(pointer, name); };
  for (std::size_t i = 0; i < resources.devices.size(); ++i)
    check_device_rule(rules, element(at("devices"), i), resources.devices[i]);
  if (resources.memory) check_memory(rules, at("memory"), *resources.memory);
  if (resources.cpu) check_cpu(rules, at("cpu"), *resources.cpu);
  if (resources.block_io) check_block_io(rules, at("blockIO"), *resources.block_io);
  check_hugepages(rules, at("hugepageLimits"), resources.hugepage_limits);
  for (std::size_t i = 0; i < resources.network_priorities.size(); ++i)
    rules.interface_name(member(element(at("network") + "/priorities", i), "name"),
                         resources.network_priorities[i].first);
  for (const auto& [device, limit] : resources.rdma) {
    if (!is_plain_name(device))
      rules.problem(member(at("rdma"), device), "must be the name of an RDMA device");
    if (!limit.first && !limit.second)
      rules.problem(member(at("rdma"), device), "must give 'hcaHandles' or 'hcaObjects'");
  }
  for (const auto& [file, value] : resources.unified)
    if (!is_plain_name(file) || file.find('.') == std::string::npos)
      rules.problem(member(at("unified"), file),
                    "must be the name of a cgroup file like 'memory.high', without a '/'");
}

}  // namespace wherry::oci
