// spec: a config.json to begin with, which runs a shell in ./rootfs.
#include <fcntl.h>

#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "tools/wherry-oci/verbs.h"

namespace wherry::tool {
namespace {

Json mount(const char* destination, const char* type, const char* source,
           std::vector<std::string> options) {
  return {{"destination", destination}, {"type", type}, {"source", source}, {"options", options}};
}

Json process() {
  const std::vector<std::string> capabilities{"CAP_AUDIT_WRITE", "CAP_KILL",
                                              "CAP_NET_BIND_SERVICE"};
  Json sets;
  for (const auto* set : {"bounding", "effective", "permitted"}) sets[set] = capabilities;
  Json limit{{"type", "RLIMIT_NOFILE"}, {"hard", 1024}, {"soft", 1024}};
  return {{"terminal", true},
          {"user", {{"uid", 0}, {"gid", 0}}},
          {"args", Json::array({"sh"})},
          {"env", Json::array({"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                               "TERM=xterm"})},
          {"cwd", "/"},
          {"capabilities", sets},
          {"rlimits", Json::array({limit})},
          {"noNewPrivileges", true}};
}

Json mounts() {
  return Json::array(
      {mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}),
       mount("/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}),
       mount("/dev/pts", "devpts", "devpts",
             {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}),
       mount("/dev/shm", "tmpfs", "shm", {"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}),
       mount("/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}),
       mount("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"}),
       mount("/sys/fs/cgroup", "cgroup", "cgroup",
             {"nosuid", "noexec", "nodev", "relatime", "ro"})});
}

Json linux_part() {
  Json namespaces = Json::array();
  for (const auto* type : {"pid", "network", "ipc", "uts", "mount", "cgroup"})
    namespaces.push_back(Json{{"type", type}});
  Json deny{{"allow", false}, {"access", "rwm"}};
  return {{"resources", {{"devices", Json::array({deny})}}},
          {"namespaces", namespaces},
          {"maskedPaths",
           {"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys",
            "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list",
            "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware"}},
          {"readonlyPaths",
           {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}}};
}

}  // namespace

Result<int> spec(const Options& options) {
  if (!options.operands.empty())
    return Error::make(Code::kInvalid, cat("one word too many: ", in_quotes(options.operands[0])));
  const Json config{{"ociVersion", "1.0.2"},
                    {"process", process()},
                    {"root", {{"path", "rootfs"}, {"readonly", true}}},
                    {"hostname", "wherry"},
                    {"mounts", mounts()},
                    {"linux", linux_part()}};
  const auto dir = TRY_CTX(sys::openat(AT_FDCWD, options.bundle, O_RDONLY | O_DIRECTORY), "bundle");
  const auto file =
      TRY_CTX(sys::openat(dir.get(), "config.json", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644),
              "one that is there is not overwritten");
  TRY(sys::write_all(file.get(), dump_json_pretty(config), "config.json"));
  return 0;
}

}  // namespace wherry::tool
