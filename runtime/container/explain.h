// Why a start may have failed: a process that a limit has ended cannot say so itself.
#pragma once
#include "base/result.h"
#include "cgroups/cgroups.h"
#include "oci/spec.h"

namespace wherry::container {

// The error of a create or start that failed, with the limits of the spec that its errno, or an end
// without a word, point to. With a `place` (may be null) a kill by the OOM killer is told as what
// it is.
Error explain_failed_start(Error error, const oci::Spec& spec, const cgroups::Place* place);

}  // namespace wherry::container
