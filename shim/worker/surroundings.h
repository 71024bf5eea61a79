// What a container of the pod finds around it on this host: volumes, files of the pod, devices,
// namespaces.
#pragma once
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "mount/root.h"
#include "runtime/pod/to_spec.h"
#include "shim/worker/context.h"

namespace wherry::shim {

struct Prepared {
  pod::Surroundings around;           // without user, rootfs and namespaces
  mount::OpenedSources bind_sources;  // what sub-paths led to, for CreateOptions::bind_sources
};

// hosts, hostname, resolv.conf and the volumes of the pod; once, before its first container.
enum class VolumesIn : std::uint8_t {
  kHost,
  kOwnNamespace,  // the worker has left the host's mount namespace: whoever comes after it must
                  // join its
};
Result<VolumesIn> prepare_pod_files(const Context& context);
// Before the directories of the pod are removed: the kernel lets nobody remove a mount point of his
// own namespace.
void detach_memory_volumes(const Context& context);
Result<Prepared> prepare_surroundings(const Context& context, const pod::Container& container);

}  // namespace wherry::shim
