// What changes a living container: pause, resume, new limits.
#include "base/text.h"
#include "bpf/device_filter.h"
#include "runtime/container/container.h"
#include "runtime/container/launch.h"
#include "runtime/container/record.h"

namespace wherry::container {
namespace {

Error not_running() {
  return Error::make(Code::kState, "it is not running");
}

Result<cgroups::Place> living_place(const Record& record) {
  if (record.init.pid == 0 || !open_pidfd(record.init).ok()) return not_running();
  auto place = TRY(own_place(record));
  if (!place) return not_running();
  return std::move(*place);
}

// v2 has quota and period in one file: the one that is not given keeps its value.
Result<> complete_cpu(const cgroups::Place& place, oci::Resources& resources) {
  if (!resources.cpu) return {};
  auto& cpu = *resources.cpu;
  if ((cpu.quota.value_or(0) == 0) == (cpu.period.value_or(0) == 0)) return {};
  const auto now = place.read("", "cpu.max");
  if (!now.ok()) return {};  // the controller is v1's, or to_writes() tells that nobody has it
  const auto words = split(trim(now.value()), ' ');
  if (words.size() != 2)
    return Error::make(Code::kSystem, cat("cpu.max is ", in_quotes(trim(now.value()))));
  if (cpu.quota.value_or(0) == 0)
    cpu.quota = words[0] == "max" ? -1 : parse_int<std::int64_t>(words[0]).value_or(-1);
  else
    cpu.period = parse_int<std::uint64_t>(words[1]);
  return {};
}

}  // namespace

Result<> pause(int record_dir, Deadline deadline) {
  const auto record = TRY(load_record(record_dir));
  const auto place = TRY(living_place(record));
  if (TRY(place.frozen())) return Error::make(Code::kState, "it is paused already");
  return place.freeze(deadline);
}

Result<> resume(int record_dir) {
  const auto record = TRY(load_record(record_dir));
  const auto place = TRY(living_place(record));
  if (!TRY(place.frozen())) return Error::make(Code::kState, "it is not paused");
  return place.thaw();
}

Result<std::vector<pid_t>> processes(int record_dir) {
  const auto record = TRY(load_record(record_dir));
  const auto place = TRY(own_place(record));
  if (!place) return std::vector<pid_t>{};
  return place->processes();
}

Result<> update(int record_dir, oci::Resources resources) {
  const auto record = TRY(load_record(record_dir));
  const auto place = TRY(living_place(record));
  TRY(complete_cpu(place, resources));
  const auto writes = TRY(cgroups::to_writes(resources, TRY(cgroups::discover())));
  if (resources.devices.empty()) return place.apply(writes);
  // Compiled before anything is changed.
  const auto program = TRY_CTX(bpf::compile_device_rules(with_default_devices(resources.devices)),
                               "linux.resources.devices");
  TRY(place.apply(writes));
  return bpf::attach_device_filter(place.unified_fd(), program);
}

}  // namespace wherry::container
