// What a container, run or exec that could not be made means to a shell.
#pragma once
#include "base/result.h"

namespace wherry {

// 127: the program was not found, by its path or in any directory of PATH; 126: it cannot be
// executed; 125: everything else. As podman-run(1) has them.
inline int exit_code_of_failure(const Error& error) {
  if (error.step() != "exec") return 125;
  return error.code() == Code::kNotFound ? 127 : 126;
}

}  // namespace wherry
