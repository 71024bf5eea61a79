// The hooks of a container: kept beside its record, so that whoever starts or deletes it runs them.
#pragma once
#include "base/clock.h"
#include "base/result.h"
#include "oci/spec.h"
#include "oci/state.h"
#include "runtime/container/container.h"
#include "runtime/init/plan.h"

namespace wherry::container {

// prestart, createRuntime and createContainer run before the root is entered.
bool looks_before_entering(const oci::Hooks& hooks);
init::HookPlan plan_hooks(const oci::Hooks& hooks, const Record& record, Deadline deadline);
oci::State state_for_hooks(const Record& record, oci::Status status, pid_t pid);

Result<> save_hooks(int record_dir, const oci::Hooks& hooks);
Result<oci::Hooks> load_hooks(int record_dir);  // none when there is no file

// prestart and createRuntime, in the creator's namespaces. The hooks are saved first: from here on
// the end of the container is told to poststop.
Result<> run_create_hooks(int record_dir, const oci::Hooks& hooks, const Record& record,
                          pid_t child, Deadline deadline);
// The saved poststop hooks. A failure is logged and the next one run (config.md, lifecycle).
void run_poststop(int record_dir, const Record& record, Deadline deadline);

}  // namespace wherry::container
