// create: from a spec to a process behind the gate. Undo is written beside do.
#include <sched.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/path.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/timing.h"
#include "bpf/device_filter.h"
#include "runtime/container/container.h"
#include "runtime/container/explain.h"
#include "runtime/container/hooks.h"
#include "runtime/container/launch.h"
#include "runtime/container/planner.h"
#include "runtime/container/record.h"
#include "runtime/init/hooks.h"
#include "runtime/init/sync.h"

namespace wherry::container {
namespace {

constexpr auto kUndoTime = Millis{10000};

Result<std::string> cgroup_path(const oci::Spec& spec, const CreateOptions& options) {
  auto path = spec.linux_->cgroups_path;
  if (path.empty()) path = options.cgroup_default;
  if (path.find(':') != std::string::npos && !path.starts_with('/'))
    return Error::make(
        Code::kUnsupported,
        cat("linux.cgroupsPath: '", path,
            "' is a systemd unit; this runtime manages cgroups itself and takes a path"));
  if (!path.starts_with('/')) path.insert(0, "/");
  TRY_CTX(cgroups::check_path(path), "linux.cgroupsPath");
  return path;
}

struct DeviceFilter {
  std::vector<bpf_insn> program;
  // When init has to make a node of linux.devices that the rules keep the container from making:
  // with that exception, in force until init has done it, which is before anything of the
  // container's own runs. Empty otherwise.
  std::vector<bpf_insn> while_made;
};

std::uint32_t bpf_type(const oci::Device& device) {
  return device.type == "b" ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
}

Result<DeviceFilter> plan_device_filter(const oci::Linux& linux_) {
  DeviceFilter filter;
  // Deny by default, also when the spec has no list (GHSA-g54h-m393-cpwq).
  auto rules = with_default_devices(linux_.resources.value_or(oci::Resources{}).devices);
  filter.program = TRY_CTX(bpf::compile_device_rules(rules), "linux.resources.devices");
  const auto count = rules.size();
  for (const auto& device : linux_.devices) {
    if (device.type == "p") continue;
    const bpf::DeviceAccess making{bpf_type(device), BPF_DEVCG_ACC_MKNOD,
                                   static_cast<std::uint32_t>(device.major),
                                   static_cast<std::uint32_t>(device.minor)};
    if (TRY(bpf::run_device_program(filter.program, making))) continue;
    oci::DeviceRule rule;
    rule.allow = true;
    rule.type = device.type == "b" ? "b" : "c";
    rule.major = device.major;
    rule.minor = device.minor;
    rule.access = "m";
    rules.push_back(std::move(rule));
  }
  if (rules.size() > count)
    filter.while_made = TRY_CTX(bpf::compile_device_rules(rules), "linux.devices");
  return filter;
}

// Limits and the device filter are in force before there is a process that they could miss.
Result<cgroups::Place> make_place(const oci::Spec& spec, const DeviceFilter& filter,
                                  const cgroups::Hierarchies& hierarchies, const std::string& path,
                                  const std::vector<std::string>& controllers) {
  const oci::Resources none;
  const auto& resources = spec.linux_->resources ? *spec.linux_->resources : none;
  const auto writes = TRY(cgroups::to_writes(resources, hierarchies));
  const auto& program = filter.while_made.empty() ? filter.program : filter.while_made;
  auto place = TRY(cgroups::Place::create(hierarchies, path, controllers));
  auto limit = [&]() -> Result<> {
    TRY(place.apply(writes));
    return bpf::attach_device_filter(place.unified_fd(), program);
  };
  if (auto limited = limit(); !limited.ok()) {
    place.remove(Deadline::in(kUndoTime)).ignore("the first error is the one to tell");
    return std::move(limited).error();
  }
  return place;
}

struct Fifos {
  UniqueFd gate, result;
};

Result<Fifos> make_fifos(int record_dir) {
  Fifos fifos;
  for (auto [name, fd] :
       {std::pair{kGateFile, &fifos.gate}, std::pair{kResultFile, &fifos.result}}) {
    TRY(sys::mknodat(record_dir, name, S_IFIFO | 0600, 0));
    // Read-write: opening never blocks, and the end of start cannot be mistaken for an answer.
    *fd = TRY(sys::openat(record_dir, name, O_RDWR | O_NOFOLLOW));
  }
  return fifos;
}

Result<Created> launch_behind_gate(const oci::Spec& spec, CreateOptions& options,
                                   const cgroups::Hierarchies& hierarchies,
                                   const std::vector<std::string>& controllers,
                                   const cgroups::Place& place, Record& record, Deadline deadline) {
  mark_phase("record");
  auto planned = TRY(make_plan({spec, options, hierarchies, controllers}, deadline));
  UniqueFd null;
  TRY(plan_stdio(options.stdio, planned.plan, null));
  planned.plan.placement = TRY(place.open_self_placement());
  FAULT_POINT("create.fifos");
  auto fifos = TRY(make_fifos(options.record_dir));
  planned.plan.gate = std::move(fifos.gate);
  planned.plan.result = std::move(fifos.result);
  if (!spec.hooks.empty()) planned.plan.hooks = plan_hooks(spec.hooks, record, deadline);
  Launch launch;
  launch.plan = std::move(planned.plan);
  launch.clone_flags = planned.clone_flags;
  launch.cgroup_fd = place.unified_fd();
  launch.visits = std::move(planned.visits);
  launch.user_namespace = std::move(planned.user_namespace);
  if (launch.plan.new_user_namespace)
    launch.maps.uids = spec.linux_->uid_mappings, launch.maps.gids = spec.linux_->gid_mappings;
  launch.maps.time_offsets = spec.linux_->time_offsets;
  launch.clone_parent = options.clone_parent;
  // Nobody in the container's mount namespace has anything to look for in there.
  if (launch.plan.user_namespace)
    launch.plan.root->stage_at = TRY(sys::readlinkat(AT_FDCWD, fd_path(options.record_dir)));
  if (launch.plan.hooks && launch.plan.hooks->creator_is_asked) {
    launch.child_hooks = init::time_of(spec.hooks.create_container);
    launch.run_hooks = [&](pid_t child) {
      return run_create_hooks(options.record_dir, spec.hooks, record, child, deadline);
    };
  }
  mark_phase("plan, seccomp included");
  auto child = TRY(launch_child(launch, deadline));
  auto finish = [&]() -> Result<> {
    FAULT_POINT("create.record");
    record.init = TRY(identify(child.pid));
    if (!spec.hooks.empty()) TRY(save_hooks(options.record_dir, spec.hooks));
    TRY(save_record(options.record_dir, record));
    FAULT_POINT("create.recorded");
    return child.channel.send({.step = init::Step::kRecorded, .text = {}, .fd = {}});
  };
  if (auto finished = finish(); !finished.ok()) {
    abandon(child, deadline);
    return std::move(finished).error();
  }
  mark_phase("record");
  return Created{record.init, std::move(child.pidfd), std::move(child.console)};
}

}  // namespace

Result<Created> create(const oci::Spec& spec, CreateOptions options, Deadline deadline) {
  TRY(check_id(options.id));
  TRY(refuse_unsupported(spec));
  mark_phase("check of the spec");
  const auto hierarchies = TRY(cgroups::discover());
  Record record;
  record.id = options.id;
  record.bundle = options.bundle;
  record.cgroup = TRY(cgroup_path(spec, options));
  record.created = rfc3339_now();
  record.annotations = spec.annotations;
  record.oci_version = spec.oci_version;
  record.terminal = spec.process->terminal;
  const auto controllers =
      cgroups::needed_controllers(spec.linux_->resources.value_or(oci::Resources{}));
  record.directories = cgroups::Place::planned(hierarchies, controllers);
  // Before the first resource: from here on destroy() can find whatever there will be (REL-10).
  TRY(save_record(options.record_dir, record));
  mark_phase("record");
  FAULT_POINT("create.announced");
  const int record_dir = options.record_dir;
  auto build = [&]() -> Result<Created> {
    const auto filter = TRY(plan_device_filter(*spec.linux_));
    auto place = TRY(make_place(spec, filter, hierarchies, record.cgroup, controllers));
    const auto launch = [&]() -> Result<Created> {
      mark_phase("cgroups and device filter");
      FAULT_POINT("create.placed");
      // Nothing is put in before it is on record which directories are ours.
      record.directories = TRY(place.directories());
      TRY(save_record(options.record_dir, record));
      auto made =
          TRY(launch_behind_gate(spec, options, hierarchies, controllers, place, record, deadline));
      if (!filter.while_made.empty())
        TRY(bpf::attach_device_filter(place.unified_fd(), filter.program));
      return made;
    };
    auto created = launch();
    if (!created.ok()) {
      created = explain_failed_start(std::move(created).error(), spec, &place);
      place.kill().ignore("the first error is the one to tell");
      place.remove(Deadline::in(kUndoTime)).ignore("the first error is the one to tell");
    }
    return created;
  };
  auto created = build();
  if (!created.ok()) {
    run_poststop(record_dir, record, Deadline::in(kUndoTime));
    remove_files(record_dir);
  }
  return created;
}

}  // namespace wherry::container
