// Hooks of the runtime-spec (config.md, "POSIX-platform Hooks"): programs that are run at points of
// a container's life, by the creator or by the process that becomes the container.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "oci/spec.h"
#include "oci/state.h"

namespace wherry::init {

// One after the other in the caller's own namespaces and root, each with the state on its stdin, an
// environment that is the hook's own and nothing else, descriptors 0 to 2, `cwd` and umask 022. The
// first that does not end with 0 ends it: kSystem with what it wrote last, or kTimeout after its
// own timeout, or at `otherwise` when it has none; its whole process group is killed then. `kind`
// is the specification's word ("createRuntime") for the message.
Result<> run_hooks(std::string_view kind, const std::vector<oci::Hook>& hooks,
                   const oci::State& state, const std::string& cwd, Deadline otherwise);
// What the timeouts of `hooks` may add to the time of the step that runs them.
Millis time_of(const std::vector<oci::Hook>& hooks);

}  // namespace wherry::init
