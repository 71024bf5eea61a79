// Fault points: places where a test build can be told, by environment variable, to die or to fail.
// In a release build they are nothing. WHERRY_FAULT="name=kill" or "name=error:ENOSPC", comma
// separated; "name@3=kill": at its third pass.
#pragma once
#include "base/result.h"

namespace wherry {
#ifdef WHERRY_FAULT_POINTS
Result<> fault_point(const char* name);
#define FAULT_POINT(name) TRY(::wherry::fault_point(name))
#else
#define FAULT_POINT(name) static_cast<void>(0)
#endif
}  // namespace wherry
