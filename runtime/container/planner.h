// Spec -> init::Plan: everything that can be parsed, checked, opened or compiled before the process
// exists.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "cgroups/cgroups.h"
#include "oci/spec.h"
#include "runtime/container/container.h"
#include "runtime/init/plan.h"

namespace wherry::container {

// What this version cannot do is refused by the name of its field, before anything is made (TM-4).
// All of it at once.
Result<> refuse_unsupported(const oci::Spec& spec);

// Every id of the process is one of its user namespace's.
Result<> check_mapped(const oci::Process& process, const oci::Linux& linux_);

struct Planned {
  init::Plan plan;
  std::uint64_t clone_flags = 0;   // new namespaces
  std::vector<init::Join> visits;  // as in Launch
  UniqueFd user_namespace;         // as in Launch
};

struct PlanInputs {
  const oci::Spec& spec;
  CreateOptions& options;  // root_mount is moved from
  const cgroups::Hierarchies& hierarchies;
  const std::vector<std::string>& controllers;  // those that the container has a place in
};
Result<Planned> make_plan(const PlanInputs& inputs, Deadline deadline);

// The parts that an exec shares with a create. `rootfd` is where /etc/passwd is, or -1.
Result<> plan_process(const oci::Process& process, int rootfd, init::Plan& plan);
Result<> plan_properties(const oci::Process& process, const oci::Linux& linux_,
                         init::Properties& out);
// process.execCPUAffinity; `field` is for the error.
Result<cpu_set_t> cpu_set(const std::string& list, std::string_view field);
Result<> check_mount_label(const std::string& label);
Result<> plan_seccomp(const oci::Spec& spec, const std::string& cache, init::Plan& plan,
                      Deadline deadline);
Result<> plan_stdio(const std::array<int, 3>& stdio, init::Plan& plan,
                    UniqueFd& null);  // `null` must live until the clone

}  // namespace wherry::container
