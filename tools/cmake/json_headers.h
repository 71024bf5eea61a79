// The same for modules that speak JSON: the others would pay a second a file for loading it.
#pragma once
#include "base/json.h"
#include "tools/cmake/common_headers.h"
