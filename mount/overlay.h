// An overlay as a detached mount: it belongs to no mount namespace and is gone with its descriptor.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace wherry::mount {

struct Overlay {
  // What a sync promises. kVolatile (Linux 5.10) is for an upper directory that is thrown away with
  // the mount: nothing is ever synced, neither by fsync inside nor by the unmount, which otherwise
  // syncs the whole file system below. The kernel then refuses to mount the same work directory a
  // second time.
  enum class Sync : std::uint8_t { kDurable, kVolatile };

  std::vector<std::string> lower;  // absolute, lowest first (as layers are listed); at least one
  std::string upper, work;  // both empty: a read-only overlay. On one file system, `work` empty
  Sync sync = Sync::kDurable;
};

// Needs CAP_SYS_ADMIN in the initial user namespace (trusted.* attributes). No nodev or nosuid is
// set on it. kInvalid for a list of layers that cannot be an overlay; the kernel's own words come
// with every other failure.
Result<UniqueFd> mount_overlay(const Overlay& overlay);

}  // namespace wherry::mount
