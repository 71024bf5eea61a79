// What a pod's status means to whoever asked for a run, an exit code or a log.
#pragma once
#include <string>

#include "base/result.h"
#include "shim/protocol/pod_status.h"

namespace wherry::shim {

bool has_ended(const PodStatus& status);
// "pod 'web'", "container 'a' of pod 'web'"
std::string words_for(const PodStatus& status, const std::string& container);

// After a start: kState when the pod has ended and a main container has never run, with the init
// container that failed as the reason and its log as the hint.
Result<> check_started(const PodStatus& status);
// Of a pod that nobody keeps any more, or of a container that will not run again. `container`
// empty: the pod. kState when there is no code: it never started, or nobody can tell.
Result<int> code_at_the_end(const PodStatus& status, const std::string& container);
// A container that has no log: "container 'a' never started".
Error never_started(const PodStatus& status, const std::string& container);

}  // namespace wherry::shim
