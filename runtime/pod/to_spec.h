// A container of a pod -> config.json. Pure: what must be looked up on the host is handed in.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "oci/image.h"
#include "oci/spec.h"
#include "runtime/pod/pod.h"

namespace wherry::pod {

struct RunAs {  // the user of the container, resolved in its root
  std::uint32_t uid = 0, gid = 0;
  std::vector<std::uint32_t> additional_gids;
  std::string home;
};

struct NodeDevice {  // a device of the host, looked up
  std::string path;  // in the container
  char type = 'c';   // 'c' or 'b'
  std::uint32_t major = 0, minor = 0;
  std::uint32_t mode = 0666, uid = 0, gid = 0;
  std::string permissions = "rwm";
};

// What the worker knows and the pod does not say.
struct Surroundings {
  RunAs user;
  std::string rootfs = "rootfs";  // root.path
  std::string cgroup_path;        // "/wherry/<pod>/<container>"
  // Namespaces of the pod to join ("/proc/<keeper>/fd/N"). Empty: the container gets a new one, or
  // the host's where the pod says so.
  std::string net_ns, ipc_ns, uts_ns, pid_ns;
  // Directories and files to bind, by volume_key(). A hostPath volume without a sub-path need not
  // be in it.
  std::map<std::string, std::string> volumes;
  std::string hosts, hostname, resolv_conf;  // files on the host; empty: not mounted
  std::string shm;  // the pod's /dev/shm on the host; empty: a tmpfs of the container's own
  std::vector<NodeDevice> devices;  // of Container::devices; all of the host's when privileged
  std::vector<std::string>
      own_capabilities;  // our bounding set, "CAP_CHOWN": privileged and ALL come to it
  std::optional<oci::Seccomp> seccomp;  // the profile from a file, for SeccompMode::kLocalhost
  unsigned cpus = 1;                    // online, for values that grow with them
};

// "volume" or "volume/sub/path": the key in Surroundings::volumes. A sub-path is the caller's to
// resolve inside the volume (open_beneath) and to hand to the creation as a descriptor
// (CreateOptions::bind_sources), because the pod can put links there (CVE-2017-1002101,
// CVE-2021-25741); the path here is then for people.
std::string volume_key(const VolumeMount& mount);

// kInvalid and kUnsupported name the field. Besides the container's own words: Kubernetes' rules
// for command and args, default mounts, devices, masked paths, capabilities and seccomp profile.
Result<oci::Spec> to_spec(const Pod& pod, const Container& container, const oci::ImageConfig& image,
                          const Surroundings& around);

// Who the container runs as, in the grammar of container::resolve_user: the container's own word,
// else the image's. The gid of runAsGroup is put behind it.
std::string user_of(const Container& container, const oci::ImageConfig& image);
// kDenied when runAsNonRoot stands against it.
Result<> check_user(const Container& container, const RunAs& user);

// What the container asks for and we cannot give: a warning of the pod, not a failure. to_spec()
// leaves it out.
std::vector<std::string> lacking_capabilities(const Container& container,
                                              const Surroundings& around);

oci::Resources pod_resources(const Pod& pod);  // of the pod's own cgroup; pids.max is always there
oci::Resources container_resources(const Container& container);

std::string hostname_of(const Pod& pod);  // spec.hostname, else the name; at most 63 bytes
std::string hosts_file(const Pod& pod,
                       const std::string& pod_ip = {});  // pod_ip empty: only loopback
std::string hostname_file(const Pod& pod);
// From the host's own text: search and options are kept; a nameserver on loopback is of no use in a
// namespace of the pod's own and is left out there.
std::string resolv_conf_file(const Pod& pod, const std::string& host_text);
std::string tmpfs_options(
    const Volume& volume);  // of an emptyDir in memory: "mode=1777,size=52428800"

}  // namespace wherry::pod
