// What only the creator can write for a process in new namespaces, and the maps of idmapped mounts.
#pragma once
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "oci/spec.h"

namespace wherry::container {

// uid_map and gid_map of a process in a new user namespace; nothing when both are empty. setgroups
// stays allowed: with our capabilities the gids are ours to give (user_namespaces(7)).
Result<> write_id_maps(pid_t pid, const std::vector<oci::IdMapping>& uids,
                       const std::vector<oci::IdMapping>& gids);
// timens_offsets of a process that has unshared its time namespace (time_namespaces(7)).
Result<> write_time_offsets(pid_t pid, const std::map<std::string, oci::TimeOffset>& offsets);

// The user namespace for an idmapped mount: with the maps that are given or, without, the
// container's own (a new one's maps, or `joined`).
Result<UniqueFd> mount_id_maps(const oci::Spec& spec, const UniqueFd& joined,
                               const std::vector<oci::IdMapping>& uids,
                               const std::vector<oci::IdMapping>& gids);

}  // namespace wherry::container
