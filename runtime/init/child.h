// What runs between clone and exec.
#pragma once
#include "runtime/init/plan.h"
#include "runtime/init/sync.h"

namespace wherry::init {

// Entry of the cloned process, which owns a copy of everything. Never returns: it becomes the
// payload or ends.
[[noreturn]] void become_container(Plan& plan, Channel& channel);

}  // namespace wherry::init
