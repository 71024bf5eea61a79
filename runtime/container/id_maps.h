// What only the creator can write for a process in new namespaces, and the maps of idmapped mounts.
#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "oci/spec.h"

namespace wherry::container {

// The directory of a child in procfs: of it and of no other process that got its number.
Result<UniqueFd> open_process(pid_t pid, const UniqueFd& pidfd);

// In all of these `process` is such a directory.
// uid_map and gid_map of a process in a new user namespace; nothing when both are empty. setgroups
// stays allowed: with our capabilities the gids are ours to give (user_namespaces(7)).
Result<> write_id_maps(int process, const std::vector<oci::IdMapping>& uids,
                       const std::vector<oci::IdMapping>& gids);
// Which id of the caller's user namespace `uid` is in that of the process; nothing when it is
// mapped to none.
Result<std::optional<uid_t>> outside_uid(int process, uid_t uid);
// timens_offsets of a process that has unshared its time namespace (time_namespaces(7)).
Result<> write_time_offsets(int process, const std::map<std::string, oci::TimeOffset>& offsets);

// The user namespace for an idmapped mount: with the maps that are given or, without, the
// container's own (a new one's maps, or `joined`).
Result<UniqueFd> mount_id_maps(const oci::Spec& spec, const UniqueFd& joined,
                               const std::vector<oci::IdMapping>& uids,
                               const std::vector<oci::IdMapping>& gids);

}  // namespace wherry::container
