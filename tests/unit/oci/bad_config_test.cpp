// Documents that must be refused, each with the place and the words that the user gets.
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "oci/config.h"

namespace wherry::oci {
namespace {

// Each case is a good document with one thing changed: `member` put at `pointer` (or taken away,
// when it is empty).
struct Bad {
  const char* at;     // JSON pointer of what is replaced
  const char* value;  // its new JSON text; nullptr takes the member away
  const char* where;  // pointer in the message
  const char* what;   // part of the message
};

const char* const kGood = R"({
  "ociVersion": "1.3.0",
  "process": {
    "user": {"uid": 0, "gid": 0, "umask": 18, "additionalGids": [5]},
    "consoleSize": {"height": 24, "width": 80},
    "args": ["sh", "-c", "true"], "env": ["PATH=/bin"], "cwd": "/",
    "capabilities": {"bounding": ["CAP_KILL"], "ambient": ["CAP_KILL"]},
    "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 1024, "hard": 4096}],
    "noNewPrivileges": true, "apparmorProfile": "a", "selinuxLabel": "b", "oomScoreAdj": 100,
    "scheduler": {"policy": "SCHED_FIFO", "priority": 5, "nice": 0, "flags": ["SCHED_FLAG_RESET_ON_FORK"]},
    "ioPriority": {"class": "IOPRIO_CLASS_BE", "priority": 4},
    "execCPUAffinity": {"initial": "0-1", "final": "0,1"}
  },
  "root": {"path": "rootfs", "readonly": true},
  "hostname": "boat", "domainname": "harbour",
  "mounts": [
    {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid"]},
    {"destination": "/data", "type": "bind", "source": "/srv", "options": ["rbind"],
     "uidMappings": [{"containerID": 0, "hostID": 1000, "size": 10}],
     "gidMappings": [{"containerID": 0, "hostID": 1000, "size": 10}]}
  ],
  "hooks": {"prestart": [{"path": "/bin/true", "args": ["true"], "env": ["A=b"], "timeout": 5}]},
  "linux": {
    "namespaces": [{"type": "pid"}, {"type": "network", "path": "/proc/1/ns/net"}, {"type": "mount"}, {"type": "ipc"},
                   {"type": "uts"}, {"type": "user"}, {"type": "cgroup"}, {"type": "time"}],
    "uidMappings": [{"containerID": 0, "hostID": 1000, "size": 100}, {"containerID": 100, "hostID": 2000, "size": 100}],
    "gidMappings": [{"containerID": 0, "hostID": 1000, "size": 100}],
    "timeOffsets": {"monotonic": {"secs": -5, "nanosecs": 1}},
    "devices": [{"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229, "fileMode": 438, "uid": 0, "gid": 0}],
    "netDevices": {"eth0": {"name": "lan0"}},
    "cgroupsPath": "/wherry/x",
    "resources": {
      "devices": [{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 3, "access": "rw"}],
      "memory": {"limit": 1000, "reservation": 500, "swap": 2000, "swappiness": 60, "disableOOMKiller": false},
      "cpu": {"shares": 1024, "quota": -1, "period": 100000, "cpus": "0-1", "mems": "0", "idle": 0},
      "pids": {"limit": 100},
      "blockIO": {"weight": 10, "weightDevice": [{"major": 8, "minor": 0, "weight": 500}],
                  "throttleReadBpsDevice": [{"major": 8, "minor": 0, "rate": 600}]},
      "hugepageLimits": [{"pageSize": "2MB", "limit": 18446744073709551615}],
      "network": {"classID": 1, "priorities": [{"name": "eth0", "priority": 5}]},
      "rdma": {"mlx5_1": {"hcaHandles": 3, "hcaObjects": 4}},
      "unified": {"memory.high": "1000"}
    },
    "intelRdt": {"closID": "id", "memBwSchema": "MB:0=20", "schemata": ["L3:0=f"], "enableMonitoring": true},
    "sysctl": {"net.ipv4.ip_forward": "1", "kernel.shmmax": "100"},
    "seccomp": {
      "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1, "architectures": ["SCMP_ARCH_X86_64"],
      "flags": ["SECCOMP_FILTER_FLAG_LOG"], "listenerPath": "/run/l", "listenerMetadata": "m",
      "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW",
                    "args": [{"index": 0, "value": 18446744073709551615, "valueTwo": 1, "op": "SCMP_CMP_EQ"}]}]
    },
    "rootfsPropagation": "slave",
    "maskedPaths": ["/proc/kcore"], "readonlyPaths": ["/proc/sys"], "mountLabel": "c",
    "personality": {"domain": "LINUX32"},
    "memoryPolicy": {"mode": "MPOL_BIND", "nodes": "0-1", "flags": ["MPOL_F_STATIC_NODES"]}
  },
  "annotations": {"a": "b"}
})";

const Bad kBad[] = {
    // The version and the root.
    {"/ociVersion", nullptr, "/ociVersion", "is missing but required"},
    {"/ociVersion", "3", "/ociVersion", "must be a string, not a number"},
    {"/ociVersion", "\"\"", "/ociVersion", "must be a semantic version"},
    {"/ociVersion", "\"1.2\"", "/ociVersion", "must be a semantic version"},
    {"/ociVersion", "\"1.2.3.4\"", "/ociVersion", "must be a semantic version"},
    {"/ociVersion", "\"v1.2.0\"", "/ociVersion", "must be a semantic version"},
    {"/ociVersion", "\"1.02.0\"", "/ociVersion", "must be a semantic version"},
    {"/ociVersion", "\"1.2.0-\"", "/ociVersion", "must be a semantic version"},
    {"/ociVersion", "\"1.2.0-a b\"", "/ociVersion", "must be a semantic version"},
    {"/ociVersion", "\"2.0.0\"", "/ociVersion", "version 2.0.0 is not supported"},
    {"/ociVersion", "null", "/ociVersion", "must be a string, not null"},
    {"/root", nullptr, "/root", "is missing but required"},
    {"/root", "null", "/root", "is missing but required"},
    {"/root", "[]", "/root", "must be an object, not an array"},
    {"/root/path", nullptr, "/root/path", "is missing but required"},
    {"/root/path", "\"\"", "/root/path", "must not be empty"},
    {"/root/path", "true", "/root/path", "must be a string, not a boolean"},
    {"/root/readonly", "\"true\"", "/root/readonly", "must be true or false, not a string"},
    {"/root/readonly", "1", "/root/readonly", "must be true or false, not a number"},
    // The process.
    {"/process", "\"sh\"", "/process", "must be an object, not a string"},
    {"/process/terminal", "0", "/process/terminal", "must be true or false, not a number"},
    {"/process/cwd", nullptr, "/process/cwd", "is missing but required"},
    {"/process/cwd", "\"\"", "/process/cwd", "must be an absolute path, not ''"},
    {"/process/cwd", "\"tmp\"", "/process/cwd", "must be an absolute path, not 'tmp'"},
    {"/process/cwd", "null", "/process/cwd", "must be a string, not null"},
    {"/process/args", nullptr, "/process/args", "must name a program"},
    {"/process/args", "[]", "/process/args", "must name a program"},
    {"/process/args", "\"sh\"", "/process/args", "must be an array, not a string"},
    {"/process/args", "{\"0\": \"sh\"}", "/process/args", "must be an array, not an object"},
    {"/process/args/0", "\"\"", "/process/args/0", "must name a program"},
    {"/process/args/1", "null", "/process/args/1", "must be a string, not null"},
    {"/process/args/2", "[\"x\"]", "/process/args/2", "must be a string, not an array"},
    {"/process/env/0", "\"PATH\"", "/process/env/0", "must have the form NAME=VALUE"},
    {"/process/env/0", "\"=x\"", "/process/env/0", "must have the form NAME=VALUE"},
    {"/process/env/0", "\"\"", "/process/env/0", "must have the form NAME=VALUE"},
    {"/process/env", "{\"PATH\": \"/bin\"}", "/process/env", "must be an array, not an object"},
    {"/process/consoleSize/height", "65536", "/process/consoleSize/height",
     "must be at most 65535"},
    {"/process/consoleSize/width", "-1", "/process/consoleSize/width",
     "must be an integer of 0 to 4294967295, not -1"},
    {"/process/user/uid", "-1", "/process/user/uid",
     "must be an integer of 0 to 4294967295, not -1"},
    {"/process/user/uid", "4294967296", "/process/user/uid", "not 4294967296"},
    {"/process/user/uid", "4294967295", "/process/user/uid", "is no user id"},
    {"/process/user/uid", "\"0\"", "/process/user/uid", "not a string"},
    {"/process/user/uid", "1.0", "/process/user/uid", "without fraction and exponent, not 1.0"},
    {"/process/user/uid", "1e3", "/process/user/uid", "without fraction and exponent, not 1e3"},
    {"/process/user/uid", "0E0", "/process/user/uid", "without fraction and exponent"},
    {"/process/user/gid", "4294967295", "/process/user/gid", "is no group id"},
    {"/process/user/gid", "1234567890123456789012345678901234567890123456789", "/process/user/gid",
     "7890..."},
    {"/process/user/umask", "512", "/process/user/umask", "must be at most 511"},
    {"/process/user/additionalGids/0", "4294967295", "/process/user/additionalGids/0",
     "is no group id"},
    {"/process/user/additionalGids", "5", "/process/user/additionalGids",
     "must be an array, not a number"},
    {"/process/user/username", "\"admin\"", "/process/user/username", "is for Windows only"},
    {"/process/capabilities", "[]", "/process/capabilities", "must be an object, not an array"},
    {"/process/capabilities/bounding/0", "\"KILL\"", "/process/capabilities/bounding/0",
     "like 'CAP_CHOWN', not 'KILL'"},
    {"/process/capabilities/effective", "[\"cap_kill\"]", "/process/capabilities/effective/0",
     "not 'cap_kill'"},
    {"/process/capabilities/permitted", "[\"CAP_\"]", "/process/capabilities/permitted/0",
     "not 'CAP_'"},
    {"/process/capabilities/inheritable", "[\"CAP_KILL\\n\"]",
     "/process/capabilities/inheritable/0", "CAP_KILL\\x0a"},
    {"/process/capabilities/ambient", "\"all\"", "/process/capabilities/ambient",
     "must be an array"},
    {"/process/rlimits/0/type", "\"RLIMIT_FOO\"", "/process/rlimits/0/type",
     "must be one of 'RLIMIT_AS'"},
    {"/process/rlimits/0/type", nullptr, "/process/rlimits/0/type", "is missing but required"},
    {"/process/rlimits/0/soft", nullptr, "/process/rlimits/0/soft", "is missing but required"},
    {"/process/rlimits/0/soft", "5000", "/process/rlimits/0/soft",
     "must not be above the hard limit, 4096"},
    {"/process/rlimits/0/hard", "18446744073709551616", "/process/rlimits/0/hard",
     "of 0 to 18446744073709551615"},
    {"/process/rlimits/0/hard", "-1", "/process/rlimits/0/hard", "not -1"},
    {"/process/rlimits/1", R"({"type": "RLIMIT_NOFILE", "soft": 1, "hard": 1})",
     "/process/rlimits/1/type", "stands twice"},
    {"/process/rlimits", "{}", "/process/rlimits", "must be an array, not an object"},
    {"/process/noNewPrivileges", "\"yes\"", "/process/noNewPrivileges", "must be true or false"},
    {"/process/apparmorProfile", "\"a\\nb\"", "/process/apparmorProfile",
     "must not hold control characters"},
    {"/process/selinuxLabel", "\"a\\u0001\"", "/process/selinuxLabel",
     "must not hold control characters"},
    {"/process/oomScoreAdj", "1001", "/process/oomScoreAdj", "must be between -1000 and 1000"},
    {"/process/oomScoreAdj", "-1001", "/process/oomScoreAdj", "must be between -1000 and 1000"},
    {"/process/oomScoreAdj", "2147483648", "/process/oomScoreAdj",
     "must be an integer of -2147483648 to 2147483647"},
    {"/process/scheduler/policy", "\"SCHED_FAST\"", "/process/scheduler/policy",
     "must be one of 'SCHED_OTHER'"},
    {"/process/scheduler/policy", "\"SCHED_OTHER\"", "/process/scheduler/priority",
     "'SCHED_OTHER' has none"},
    {"/process/scheduler/policy", nullptr, "/process/scheduler/policy", "is missing but required"},
    {"/process/scheduler/priority", "0", "/process/scheduler/priority", "must be between 1 and 99"},
    {"/process/scheduler/nice", "20", "/process/scheduler/nice", "must be between -20 and 19"},
    {"/process/scheduler/flags/0", "\"X\"", "/process/scheduler/flags/0",
     "must be one of 'SCHED_FLAG_RESET_ON_FORK'"},
    {"/process/scheduler/runtime", "5", "/process/scheduler", "are for SCHED_DEADLINE only"},
    {"/process/ioPriority/class", "\"BE\"", "/process/ioPriority/class",
     "must be one of 'IOPRIO_CLASS_RT'"},
    {"/process/ioPriority/priority", "8", "/process/ioPriority/priority",
     "must be between 0 and 7"},
    {"/process/execCPUAffinity/initial", "\"1-0\"", "/process/execCPUAffinity/initial",
     "must be a list of numbers"},
    {"/process/execCPUAffinity/final", "\"all\"", "/process/execCPUAffinity/final",
     "must be a list of numbers"},
    // Names, mounts, hooks.
    {"/hostname", "\"a\\nb\"", "/hostname", "must not hold control characters: 'a\\x0ab'"},
    {"/hostname", "\"a\\rb\"", "/hostname", "must not hold control characters"},
    {"/hostname", "5", "/hostname", "must be a string, not a number"},
    {"/hostname", "\"0123456789012345678901234567890123456789012345678901234567890123x\"",
     "/hostname", "at most 64 bytes"},
    {"/domainname", "\"\\u007f\"", "/domainname", "must not hold control characters"},
    {"/mounts", "{}", "/mounts", "must be an array, not an object"},
    {"/mounts/0", "\"/proc\"", "/mounts/0", "must be an object, not a string"},
    {"/mounts/0", "null", "/mounts/0", "must be an object, not null"},
    {"/mounts/0/destination", nullptr, "/mounts/0/destination", "is missing but required"},
    {"/mounts/0/destination", "\"\"", "/mounts/0/destination", "must not be empty"},
    {"/mounts/0/options", "\"ro\"", "/mounts/0/options", "must be an array, not a string"},
    {"/mounts/0/options/0", "7", "/mounts/0/options/0", "must be a string, not a number"},
    {"/mounts/1/source", nullptr, "/mounts/1/source", "a bind mount needs a source"},
    {"/mounts/1/gidMappings", nullptr, "/mounts/1", "must be given together"},
    {"/mounts/1/uidMappings/0/size", "0", "/mounts/1/uidMappings/0", "must map at least one id"},
    {"/mounts/1/uidMappings/0/hostID", nullptr, "/mounts/1/uidMappings/0/hostID",
     "is missing but required"},
    {"/hooks", "[]", "/hooks", "must be an object, not an array"},
    {"/hooks/prestart", "{}", "/hooks/prestart", "must be an array, not an object"},
    {"/hooks/prestart/0/path", nullptr, "/hooks/prestart/0/path", "is missing but required"},
    {"/hooks/prestart/0/path", "\"bin/true\"", "/hooks/prestart/0/path",
     "must be an absolute path"},
    {"/hooks/prestart/0/timeout", "0", "/hooks/prestart/0/timeout", "must be at least 1 second"},
    {"/hooks/prestart/0/timeout", "-3", "/hooks/prestart/0/timeout", "must be an integer of 0"},
    {"/hooks/prestart/0/env/0", "\"A\"", "/hooks/prestart/0/env/0",
     "must have the form NAME=VALUE"},
    {"/hooks/poststop", R"([{"path": "x"}])", "/hooks/poststop/0/path", "must be an absolute path"},
    {"/annotations", "[]", "/annotations", "must be an object, not an array"},
    {"/annotations/a", "1", "/annotations/a", "must be a string, not a number"},
    {"/annotations/", "\"x\"", "/annotations/", "must not be empty"},
    // Namespaces and what needs them.
    {"/linux", "[]", "/linux", "must be an object, not an array"},
    {"/linux/namespaces", "{}", "/linux/namespaces", "must be an array"},
    {"/linux/namespaces/0/type", "\"PID\"", "/linux/namespaces/0/type",
     "must be one of 'pid', 'network'"},
    {"/linux/namespaces/0/type", nullptr, "/linux/namespaces/0/type", "is missing but required"},
    {"/linux/namespaces/0/type", "\"mount\"", "/linux/namespaces/2",
     "of type 'mount' stands twice"},
    {"/linux/namespaces/1/path", "\"ns/net\"", "/linux/namespaces/1/path",
     "must be an absolute path"},
    {"/linux/namespaces/4/type", "\"uts \"", "/linux/namespaces/4/type", "must be one of"},
    {"/linux/namespaces", R"([{"type": "mount"}])", "/hostname", "needs a namespace of type 'uts'"},
    {"/linux/namespaces", R"([{"type": "mount"}])", "/domainname",
     "needs a namespace of type 'uts'"},
    {"/linux/namespaces", "[]", "/mounts", "needs a namespace of type 'mount'"},
    {"/linux/namespaces", "[]", "/linux/maskedPaths", "needs a namespace of type 'mount'"},
    {"/linux/namespaces", "[]", "/linux/readonlyPaths", "needs a namespace of type 'mount'"},
    {"/linux/namespaces", "[]", "/linux/uidMappings", "needs a namespace of type 'user'"},
    {"/linux/namespaces", "[]", "/linux/gidMappings", "needs a namespace of type 'user'"},
    {"/linux/namespaces", "[]", "/linux/timeOffsets", "needs a namespace of type 'time'"},
    {"/linux/namespaces", "[]", "/linux/sysctl/net.ipv4.ip_forward",
     "needs a namespace of type 'network'"},
    {"/linux/namespaces", "[]", "/linux/sysctl/kernel.shmmax", "needs a namespace of type 'ipc'"},
    {"/linux/uidMappings/0/size", "101", "/linux/uidMappings/1",
     "overlaps the container ids of the mapping at index 0"},
    {"/linux/uidMappings/1/hostID", "1099", "/linux/uidMappings/1",
     "overlaps the host ids of the mapping at index 0"},
    {"/linux/uidMappings/1/hostID", "901", "/linux/uidMappings/0",
     "overlaps the host ids of the mapping at index 1"},
    {"/linux/gidMappings/0/size", "0", "/linux/gidMappings/0", "must map at least one id"},
    {"/linux/gidMappings/0/size", "4294967295", "/linux/gidMappings/0",
     "reaches beyond the last id"},
    {"/linux/gidMappings/0/containerID", nullptr, "/linux/gidMappings/0/containerID", "is missing"},
    {"/linux/timeOffsets/realtime", "{}", "/linux/timeOffsets/realtime",
     "must be 'monotonic' or 'boottime'"},
    {"/linux/timeOffsets/monotonic/nanosecs", "1000000000", "/linux/timeOffsets/monotonic/nanosecs",
     "below 1000000000"},
    {"/linux/timeOffsets/monotonic/secs", "9223372036854775808",
     "/linux/timeOffsets/monotonic/secs", "9223372036854775807"},
    {"/linux/timeOffsets/monotonic/secs", "-9223372036854775809",
     "/linux/timeOffsets/monotonic/secs", "must be an integer"},
    // Devices.
    {"/linux/devices/0/path", nullptr, "/linux/devices/0/path", "is missing but required"},
    {"/linux/devices/0/path", "\"fuse\"", "/linux/devices/0/path", "must be an absolute path"},
    {"/linux/devices/0/type", "\"x\"", "/linux/devices/0/type",
     "must be one of 'c', 'b', 'u', 'p'"},
    {"/linux/devices/0/type", "\"\"", "/linux/devices/0/type", "must be one of"},
    {"/linux/devices/0/major", nullptr, "/linux/devices/0/major", "is missing but required"},
    {"/linux/devices/0/minor", nullptr, "/linux/devices/0/minor", "is missing but required"},
    {"/linux/devices/0/minor", "-1", "/linux/devices/0/minor", "must be a device number"},
    {"/linux/devices/0/fileMode", "65536", "/linux/devices/0/fileMode", "must be a file mode"},
    {"/linux/devices/0/uid", "\"root\"", "/linux/devices/0/uid", "not a string"},
    {"/linux/netDevices/eth0/name", "\"a/b\"", "/linux/netDevices/eth0/name",
     "name of a network interface"},
    {"/linux/netDevices/eth0/name", "\"interface-of-16b\"", "/linux/netDevices/eth0/name",
     "1 to 15 bytes"},
    {"/linux/netDevices/..", "{}", "/linux/netDevices/..", "name of a network interface"},
    {"/linux/netDevices/lan0", "{}", "/linux/netDevices/lan0",
     "a second interface would be named 'lan0'"},
    {"/linux/netDevices/eth0", "\"lan0\"", "/linux/netDevices/eth0",
     "must be an object, not a string"},
    {"/linux/cgroupsPath", "\"../../x\"", "/linux/cgroupsPath", "must not hold a '..'"},
    {"/linux/cgroupsPath", "\"/a/../../x\"", "/linux/cgroupsPath", "must not hold a '..'"},
    {"/linux/cgroupsPath", "\"user.slice:..:x\"", "/linux/cgroupsPath", "must not hold a '..'"},
    {"/linux/cgroupsPath", "\"a\\nb\"", "/linux/cgroupsPath", "must not hold control characters"},
    // Resources.
    {"/linux/resources", "true", "/linux/resources", "must be an object, not a boolean"},
    {"/linux/resources/devices", "{}", "/linux/resources/devices", "must be an array"},
    {"/linux/resources/devices/0/allow", "\"false\"", "/linux/resources/devices/0/allow",
     "must be true or false"},
    {"/linux/resources/devices/1/type", "\"p\"", "/linux/resources/devices/1/type",
     "must be one of 'a', 'b', 'c'"},
    {"/linux/resources/devices/1/access", "\"rx\"", "/linux/resources/devices/1/access",
     "must be made of 'r', 'w' and 'm'"},
    {"/linux/resources/devices/1/major", "-2", "/linux/resources/devices/1/major",
     "must be a device number, not -2"},
    {"/linux/resources/devices/1/minor", "4294967296", "/linux/resources/devices/1/minor",
     "must be a device number"},
    {"/linux/resources/devices/1/minor", "\"*\"", "/linux/resources/devices/1/minor",
     "not a string"},
    {"/linux/resources/memory", "\"1G\"", "/linux/resources/memory",
     "must be an object, not a string"},
    {"/linux/resources/memory/limit", "\"1G\"", "/linux/resources/memory/limit", "not a string"},
    {"/linux/resources/memory/limit", "-2", "/linux/resources/memory/limit",
     "or -1 for no limit, not -2"},
    {"/linux/resources/memory/limit", "3000", "/linux/resources/memory/swap",
     "must not be below the limit of 3000"},
    {"/linux/resources/memory/limit", "1e9", "/linux/resources/memory/limit",
     "without fraction and exponent"},
    {"/linux/resources/memory/limit", "1000.5", "/linux/resources/memory/limit",
     "without fraction and exponent"},
    {"/linux/resources/memory/limit", "99999999999999999999", "/linux/resources/memory/limit",
     "not 99999999999999999999"},
    {"/linux/resources/memory/reservation", "-5", "/linux/resources/memory/reservation", "not -5"},
    {"/linux/resources/memory/kernel", "-5", "/linux/resources/memory/kernel", "not -5"},
    {"/linux/resources/memory/swappiness", "101", "/linux/resources/memory/swappiness",
     "between 0 and 100"},
    {"/linux/resources/memory/swappiness", "-1", "/linux/resources/memory/swappiness",
     "must be an integer of 0"},
    {"/linux/resources/memory/disableOOMKiller", "0", "/linux/resources/memory/disableOOMKiller",
     "must be true or false"},
    {"/linux/resources/cpu/shares", "-5", "/linux/resources/cpu/shares", "must be an integer of 0"},
    {"/linux/resources/cpu/cpus", "\"0-\"", "/linux/resources/cpu/cpus",
     "must be a list of numbers"},
    {"/linux/resources/cpu/cpus", "\"0,,1\"", "/linux/resources/cpu/cpus",
     "must be a list of numbers"},
    {"/linux/resources/cpu/mems", "\"0\\n1\"", "/linux/resources/cpu/mems",
     "must be a list of numbers"},
    {"/linux/resources/cpu/idle", "2", "/linux/resources/cpu/idle", "must be 0 or 1"},
    {"/linux/resources/pids/limit", nullptr, "/linux/resources/pids/limit",
     "is missing but required"},
    {"/linux/resources/pids/limit", "\"max\"", "/linux/resources/pids/limit", "not a string"},
    {"/linux/resources/pids", "5", "/linux/resources/pids", "must be an object, not a number"},
    {"/linux/resources/blockIO/weight", "9", "/linux/resources/blockIO/weight",
     "must be between 10 and 1000"},
    {"/linux/resources/blockIO/weight", "65536", "/linux/resources/blockIO/weight",
     "of 0 to 65535"},
    {"/linux/resources/blockIO/leafWeight", "1001", "/linux/resources/blockIO/leafWeight",
     "between 10 and 1000"},
    {"/linux/resources/blockIO/weightDevice/0/weight", nullptr,
     "/linux/resources/blockIO/weightDevice/0", "must give 'weight'"},
    {"/linux/resources/blockIO/weightDevice/0/major", nullptr,
     "/linux/resources/blockIO/weightDevice/0/major", "is missing"},
    {"/linux/resources/blockIO/weightDevice/0/minor", "-1",
     "/linux/resources/blockIO/weightDevice/0/minor", "device number"},
    {"/linux/resources/blockIO/throttleReadBpsDevice/0/rate", "-1",
     "/linux/resources/blockIO/throttleReadBpsDevice/0/rate", "must be an integer of 0"},
    {"/linux/resources/hugepageLimits/0/pageSize", "\"2mb\"",
     "/linux/resources/hugepageLimits/0/pageSize", "must be a size"},
    {"/linux/resources/hugepageLimits/0/pageSize", "\"../2MB\"",
     "/linux/resources/hugepageLimits/0/pageSize", "must be a size"},
    {"/linux/resources/hugepageLimits/0/pageSize", "\"02MB\"",
     "/linux/resources/hugepageLimits/0/pageSize", "must be a size"},
    {"/linux/resources/hugepageLimits/0/pageSize", "\"MB\"",
     "/linux/resources/hugepageLimits/0/pageSize", "must be a size"},
    {"/linux/resources/hugepageLimits/0/limit", nullptr, "/linux/resources/hugepageLimits/0/limit",
     "is missing"},
    {"/linux/resources/hugepageLimits/1", R"({"pageSize": "2MB", "limit": 0})",
     "/linux/resources/hugepageLimits/1/pageSize", "stands twice"},
    {"/linux/resources/network/priorities/0/name", "\"a b\"",
     "/linux/resources/network/priorities/0/name", "network interface"},
    {"/linux/resources/network/priorities/0/priority", nullptr,
     "/linux/resources/network/priorities/0/priority", "is missing"},
    {"/linux/resources/network/classID", "4294967296", "/linux/resources/network/classID",
     "must be an integer"},
    {"/linux/resources/rdma/mlx5_1", "{}", "/linux/resources/rdma/mlx5_1",
     "must give 'hcaHandles' or 'hcaObjects'"},
    {"/linux/resources/rdma/a~1b", R"({"hcaHandles": 1})", "/linux/resources/rdma/a~1b",
     "name of an RDMA device"},
    {"/linux/resources/unified/..~1..~1x", "\"1\"", "/linux/resources/unified/..~1..~1x",
     "without a '/'"},
    {"/linux/resources/unified/a~1memory.high", "\"1\"", "/linux/resources/unified/a~1memory.high",
     "without a '/'"},
    {"/linux/resources/unified/..", "\"1\"", "/linux/resources/unified/..",
     "name of a cgroup file"},
    {"/linux/resources/unified/", "\"1\"", "/linux/resources/unified/", "name of a cgroup file"},
    {"/linux/resources/unified/memory.high", "1000", "/linux/resources/unified/memory.high",
     "must be a string, not a number"},
    // The rest of the Linux section.
    {"/linux/intelRdt/closID", "\"../x\"", "/linux/intelRdt/closID",
     "must be the name of one directory"},
    {"/linux/intelRdt/memBwSchema", "\"L3:0=f\"", "/linux/intelRdt/memBwSchema",
     "begins with 'MB:'"},
    {"/linux/intelRdt/memBwSchema", "\"MB:0=1\\nL3:0=f\"", "/linux/intelRdt/memBwSchema",
     "one line"},
    {"/linux/intelRdt/schemata/0", "\"a\\nb\"", "/linux/intelRdt/schemata/0",
     "must not hold control characters"},
    {"/linux/sysctl/kernel.core_pattern", "\"|x\"", "/linux/sysctl/kernel.core_pattern",
     "belongs to no namespace"},
    {"/linux/sysctl/vm.swappiness", "\"1\"", "/linux/sysctl/vm.swappiness",
     "belongs to no namespace"},
    {"/linux/sysctl/kernel.shm_rmid_forced", "\"1\\nkernel.core_pattern=x\"",
     "/linux/sysctl/kernel.shm_rmid_forced", "must not hold control characters"},
    {"/linux/sysctl/net.~1~1.x", "\"1\"", "/linux/sysctl/net.~1~1.x",
     "must be the name of a sysctl"},
    {"/linux/sysctl/net~1..~1kernel~1core_pattern", "\"1\"",
     "/linux/sysctl/net~1..~1kernel~1core_pattern", "name of a sysctl"},
    {"/linux/sysctl/net..ipv4", "\"1\"", "/linux/sysctl/net..ipv4", "must be the name of a sysctl"},
    {"/linux/sysctl/net.ipv4.a+b", "\"1\"", "/linux/sysctl/net.ipv4.a+b",
     "must be the name of a sysctl"},
    {"/linux/sysctl/~1net~1x", "\"1\"", "/linux/sysctl/~1net~1x", "must be the name of a sysctl"},
    {"/linux/sysctl/net.ipv4.ip_forward", "1", "/linux/sysctl/net.ipv4.ip_forward",
     "must be a string, not a number"},
    {"/linux/seccomp/defaultAction", nullptr, "/linux/seccomp/defaultAction",
     "is missing but required"},
    {"/linux/seccomp/defaultAction", "\"SCMP_ACT_DENY\"", "/linux/seccomp/defaultAction",
     "must be one of 'SCMP_ACT_KILL'"},
    {"/linux/seccomp/defaultAction", "\"SCMP_ACT_NOTIFY\"", "/linux/seccomp/defaultAction",
     "must not be SCMP_ACT_NOTIFY"},
    {"/linux/seccomp/defaultErrnoRet", "4096", "/linux/seccomp/defaultErrnoRet",
     "must be at most 4095"},
    {"/linux/seccomp/architectures/0", "\"x86_64\"", "/linux/seccomp/architectures/0",
     "must be one of 'SCMP_ARCH_X86'"},
    {"/linux/seccomp/flags/0", "\"LOG\"", "/linux/seccomp/flags/0",
     "must be one of 'SECCOMP_FILTER_FLAG_TSYNC'"},
    {"/linux/seccomp/listenerPath", nullptr, "/linux/seccomp/listenerMetadata",
     "must not be given without 'listenerPath'"},
    {"/linux/seccomp/listenerPath", "\"run/l\"", "/linux/seccomp/listenerPath",
     "must be an absolute path"},
    {"/linux/seccomp/syscalls/0/names", "[]", "/linux/seccomp/syscalls/0/names",
     "must name at least one system call"},
    {"/linux/seccomp/syscalls/0/names", nullptr, "/linux/seccomp/syscalls/0/names",
     "is missing but required"},
    {"/linux/seccomp/syscalls/0/names/0", "\"\"", "/linux/seccomp/syscalls/0/names/0",
     "must not be empty"},
    {"/linux/seccomp/syscalls/0/action", nullptr, "/linux/seccomp/syscalls/0/action",
     "is missing but required"},
    {"/linux/seccomp/syscalls/0/action", "\"ALLOW\"", "/linux/seccomp/syscalls/0/action",
     "must be one of"},
    {"/linux/seccomp/syscalls/0/args/0/index", "6", "/linux/seccomp/syscalls/0/args/0/index",
     "must be between 0 and 5"},
    {"/linux/seccomp/syscalls/0/args/0/op", "\"==\"", "/linux/seccomp/syscalls/0/args/0/op",
     "must be one of 'SCMP_CMP_NE'"},
    {"/linux/seccomp/syscalls/0/args/0/op", nullptr, "/linux/seccomp/syscalls/0/args/0/op",
     "is missing but required"},
    {"/linux/seccomp/syscalls/0/args/0/value", "-1", "/linux/seccomp/syscalls/0/args/0/value",
     "18446744073709551615, not -1"},
    {"/linux/seccomp/syscalls/0/args/0/value", "1.5", "/linux/seccomp/syscalls/0/args/0/value",
     "without fraction"},
    {"/linux/rootfsPropagation", "\"public\"", "/linux/rootfsPropagation",
     "must be one of 'shared', 'slave'"},
    {"/linux/maskedPaths/0", "\"proc/kcore\"", "/linux/maskedPaths/0", "must be an absolute path"},
    {"/linux/readonlyPaths/0", "\"\"", "/linux/readonlyPaths/0", "must be an absolute path"},
    {"/linux/mountLabel", "\"a\\tb\"", "/linux/mountLabel", "must not hold control characters"},
    {"/linux/personality/domain", "\"SOLARIS\"", "/linux/personality/domain",
     "must be one of 'LINUX', 'LINUX32'"},
    {"/linux/personality/flags", "[\"X\"]", "/linux/personality/flags", "must be empty"},
    {"/linux/memoryPolicy/mode", nullptr, "/linux/memoryPolicy/mode", "is missing but required"},
    {"/linux/memoryPolicy/mode", "\"BIND\"", "/linux/memoryPolicy/mode",
     "must be one of 'MPOL_DEFAULT'"},
    {"/linux/memoryPolicy/nodes", "\"x\"", "/linux/memoryPolicy/nodes",
     "must be a list of numbers"},
    {"/linux/memoryPolicy/flags/0", "\"x\"", "/linux/memoryPolicy/flags/0",
     "must be one of 'MPOL_F_NUMA_BALANCING'"},
};

// The good document with the case's change; numbers are put in as text, so that none is rounded on
// the way.
std::string changed(const Bad& bad) {
  auto document = Json::parse(kGood);
  const Json::json_pointer pointer{bad.at};
  const std::string marker = "@changed@";
  if (!bad.value) {
    document[pointer.parent_pointer()].erase(pointer.back());
    return document.dump(1);
  }
  document[pointer] = marker;
  auto text = document.dump(1);
  text.replace(text.find('"' + marker + '"'), marker.size() + 2, bad.value);
  return text;
}

TEST(BadConfig, TheDocumentThatTheTableChangesIsGood) {
  auto got = parse_config(kGood);
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_TRUE(got->notes.empty()) << got->notes.front();
}

TEST(BadConfig, EachIsRefusedAtItsPlace) {
  for (const auto& bad : kBad) {
    SCOPED_TRACE(cat(bad.at, " = ", bad.value ? bad.value : "(absent)"));
    const auto got = parse_config(changed(bad));
    if (got.ok()) {
      ADD_FAILURE() << "accepted";
      continue;
    }
    const auto& message = got.error().message();
    EXPECT_EQ(got.error().code(), Code::kInvalid);
    bool found = false;
    for (const auto line : split(message, '\n')) {
      EXPECT_TRUE(line.starts_with("config.json:")) << line;
      const auto pointer = line.find(cat(": ", bad.where, ": "));
      found = found ||
              (pointer != std::string::npos && line.find(bad.what, pointer) != std::string::npos);
    }
    EXPECT_TRUE(found) << message;
  }
  EXPECT_GE(std::size(kBad), 200U);
}

// One mistake is told once: nothing that follows from it is told as well.
TEST(BadConfig, AValueOfTheWrongTypeIsOneProblem) {
  for (const auto* pointer :
       {"/root", "/root/path", "/process/args", "/process/cwd", "/linux/namespaces/0/type",
        "/process/rlimits/0/type", "/linux/seccomp/defaultAction", "/linux/devices/0/type"}) {
    const auto got = parse_config(changed({pointer, "7", "", ""}));
    ASSERT_FALSE(got.ok()) << pointer;
    EXPECT_EQ(split(got.error().message(), '\n').size(), 1U) << got.error().message();
  }
}

TEST(BadConfig, AllProblemsAreToldAtOnceInTheOrderOfTheDocument) {
  const auto got = parse_config(
      "{\n \"ociVersion\": \"1\",\n \"process\": {\"cwd\": 5, \"env\": [\"A\"]},\n"
      " \"root\": {\"path\": \"\"},\n \"hostname\": \"x\"\n}",
      "b/config.json");
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().message(),
            "b/config.json:2:16: /ociVersion: must be a semantic version like '1.3.0', not '1'\n"
            "b/config.json:3:13: /process/args: must name a program: it is missing or empty\n"
            "b/config.json:3:21: /process/cwd: must be a string, not a number\n"
            "b/config.json:3:32: /process/env/0: must have the form NAME=VALUE, not 'A'\n"
            "b/config.json:4:19: /root/path: must not be empty\n"
            "b/config.json:5:14: /hostname: needs a namespace of type 'uts' in /linux/namespaces");
}

TEST(BadConfig, ManyProblemsAreCounted) {
  std::string text =
      R"({"ociVersion": "1.0.0", "root": {"path": "r"}, "process": {"cwd": "/", "args": ["a"], "env": [)";
  for (int i = 0; i < 250; ++i) text += "0,";
  const auto got = parse_config(text + "0]}}");
  ASSERT_FALSE(got.ok());
  EXPECT_TRUE(got.error().message().ends_with("\nand 151 more"));
}

}  // namespace
}  // namespace wherry::oci
