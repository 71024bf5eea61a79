// An overlay as a detached mount: it belongs to no mount namespace and is gone with its descriptor.
#pragma once
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace wherry::mount {

struct Overlay {
  std::vector<std::string> lower;  // absolute, lowest first (as layers are listed)
  std::string upper, work;         // both empty: a read-only overlay
};
Result<UniqueFd> mount_overlay(const Overlay& overlay);

}  // namespace wherry::mount
