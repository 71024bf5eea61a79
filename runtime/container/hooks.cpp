#include "runtime/container/hooks.h"

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "oci/config.h"
#include "runtime/container/record.h"
#include "runtime/init/hooks.h"

namespace wherry::container {
namespace {
constexpr std::size_t kLargestFile = std::size_t{16} << 20;
}

bool looks_before_entering(const oci::Hooks& hooks) {
  return !hooks.prestart.empty() || !hooks.create_runtime.empty() ||
         !hooks.create_container.empty();
}

oci::State state_for_hooks(const Record& record, oci::Status status, pid_t pid) {
  oci::State state;
  state.oci_version = record.oci_version;
  state.id = record.id;
  state.status = status;
  state.pid = pid;
  state.bundle = record.bundle;
  state.annotations = record.annotations;
  return state;
}

init::HookPlan plan_hooks(const oci::Hooks& hooks, const Record& record, Deadline deadline) {
  init::HookPlan plan;
  plan.create_container = hooks.create_container;
  plan.start_container = hooks.start_container;
  plan.state = state_for_hooks(record, oci::Status::kCreating, 0);
  // A little less than the creator waits, so that it hears which hook it was.
  plan.create_wait = deadline.left() * 9 / 10;
  plan.creator_is_asked = looks_before_entering(hooks);
  return plan;
}

Result<> save_hooks(int record_dir, const oci::Hooks& hooks) {
  return replace_file(record_dir, kHooksFile, dump_json(oci::to_json(hooks)) + "\n", 0600);
}

Result<oci::Hooks> load_hooks(int record_dir) {
  auto text = read_file_at(record_dir, kHooksFile, kLargestFile);
  if (!text.ok()) {
    if (text.error().code() == Code::kNotFound) return oci::Hooks{};
    return std::move(text).error();
  }
  return oci::parse_hooks(text.value(), kHooksFile);
}

Result<> run_create_hooks(int record_dir, const oci::Hooks& hooks, const Record& record,
                          pid_t child, Deadline deadline) {
  TRY(save_hooks(record_dir, hooks));
  const auto state = state_for_hooks(record, oci::Status::kCreating, child);
  TRY(init::run_hooks("prestart", hooks.prestart, state, record.bundle, deadline));
  return init::run_hooks("createRuntime", hooks.create_runtime, state, record.bundle, deadline);
}

void run_poststop(int record_dir, const Record& record, Deadline deadline) {
  const auto hooks = load_hooks(record_dir);
  if (!hooks.ok()) {
    LOG(kWarning, "hooks of container '", record.id, "': ", hooks.error().message());
    return;
  }
  const auto state = state_for_hooks(record, oci::Status::kStopped, 0);
  for (const auto& hook : hooks.value().poststop)
    if (const auto run = init::run_hooks("poststop", {hook}, state, record.bundle, deadline);
        !run.ok())
      LOG(kWarning, "container '", record.id, "': ", run.error().message());
}

}  // namespace wherry::container
