// The defaults behind to_spec(): what a container is given when nobody says otherwise. Pure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "oci/spec.h"
#include "runtime/pod/pod.h"
#include "runtime/pod/to_spec.h"

namespace wherry::pod {

// The usual fourteen, changed by capAdd and capDrop; all of our own when privileged. Bounding,
// permitted and effective; inheritable and ambient stay empty (CVE-2022-24769). A user other than
// root keeps only the bounding set.
Result<oci::Capabilities> capabilities_of(const Container& container, const Surroundings& around);

// Deny all, then: making (not opening) any node, the harmless devices, terminals, and the
// container's own.
std::vector<oci::DeviceRule> device_rules(const Container& container, const Surroundings& around);

// SEC-21. Paths that this kernel lacks do no harm.
std::vector<std::string> masked_paths(unsigned cpus);
std::vector<std::string> readonly_paths();

oci::Resources resources_of(const Limits& limits);

// Why a sysctl may not be set for this pod: not of a namespace, or of one that is the host's.
// Empty: it may (SEC-50).
std::string sysctl_problem(const Pod& pod, std::string_view key, std::string_view value);

}  // namespace wherry::pod
