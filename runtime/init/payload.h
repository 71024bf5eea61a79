// The last stretch: from the gate to execve.
#pragma once
#include <string>

#include "base/result.h"
#include "runtime/init/plan.h"
#include "runtime/init/sync.h"

namespace wherry::init {

// args[0] as the payload's PATH finds it, inside the root. kNotFound or kDenied says how it was
// looked for.
Result<std::string> find_program(const Plan& plan);

// Waits for a byte in the gate, then becomes the payload; a failure goes to the result FIFO.
[[noreturn]] void run_behind_gate(Plan& plan, const std::string& program);
// An exec: no gate, a failure goes to the channel.
[[noreturn]] void run_at_once(Plan& plan, const std::string& program, const Channel& channel);
// The same by a second process that is born in plan.pid_namespace; kEntered names it.
[[noreturn]] void run_in_pid_namespace(Plan& plan, const std::string& program,
                                       const Channel& channel);

}  // namespace wherry::init
