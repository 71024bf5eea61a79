// The mounts of a process's namespace, in plain data. libmount reads them; it stands behind this
// header only, which no static program may link.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace wherry::mount {

struct MountEntry {
  int id = 0, parent = 0;
  std::string root;    // within the file system
  std::string target;  // mount point, as the process sees it
  std::string fstype, source;
  std::string options;     // of the mount
  std::string fs_options;  // of the file system
  // "private", "shared:N", "master:N", both joined by ',', or "unbindable" (mount_namespaces(7)).
  std::string propagation;
};

// /proc/PID/mountinfo of `process`, a number or "self"; in the order of the kernel, later ones over
// earlier ones. kNotFound when there is no such process.
Result<std::vector<MountEntry>> read_table(const std::string& process = "self");

}  // namespace wherry::mount
