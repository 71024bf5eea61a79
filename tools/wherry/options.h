// What the command line says, as plain data: one struct a verb. Words are still words here; each
// verb finds out what they mean and refuses by name what it cannot do.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "shim/pods.h"

namespace wherry::cli {

struct Global {
  Places places;
  std::string log_level = "warning";
  char** arguments = nullptr;  // as they came, for a verb that another program carries out
};

struct RunOptions {
  bool rm = false, detach = false, interactive = false, tty = false, privileged = false,
       read_only = false;
  std::string name, ns = "default", user, workdir, network = "pod", rootfs, hostname,
                    restart = "no", stop_signal;
  std::optional<std::string> entrypoint, memory, cpus;
  std::optional<std::int64_t> pids_limit;
  std::int64_t stop_timeout = 10;  // seconds
  std::vector<std::string> env, volumes, devices, cap_add, cap_drop, labels, security;
  std::vector<std::string> operands;  // IMAGE and COMMAND, or COMMAND with --rootfs
};

struct ManifestOptions {
  std::string file, ns, output = "table";
  std::int64_t timeout = 300;  // seconds
};

struct TargetOptions {  // of every verb that names pods or containers
  std::string ns = "default";
  std::vector<std::string> targets;
};

struct ListOptions {
  bool all = false, quiet = false;
  std::string output = "table", ns;
  std::vector<std::string> filters, labels;
};

struct InspectOptions : TargetOptions {
  bool all = false;
  std::string output = "json";
};

struct LogsOptions : TargetOptions {
  bool follow = false, timestamps = false;
  std::optional<unsigned> tail;
};

struct ExecOptions {
  bool interactive = false, tty = false;
  std::string ns = "default", user, workdir;
  std::vector<std::string> env;
  std::vector<std::string> operands;  // TARGET COMMAND [ARG...]
};

struct WaitOptions : TargetOptions {
  std::optional<std::int64_t> timeout;  // seconds
};

struct StopOptions : TargetOptions {
  std::optional<std::int64_t> grace;  // seconds
};

struct RemoveOptions : TargetOptions {
  bool force = false;
};

struct KillOptions : TargetOptions {
  std::string signal = "KILL";
};

struct EventsOptions {
  bool follow = false;
  std::optional<std::uint64_t> since;
  std::string output = "table", ns, pod;  // empty: of all
};

struct ImageImportOptions {
  std::string path, name;
};

struct ImageRemoveOptions {
  std::vector<std::string> names;
};

struct OutputOptions {
  std::string output = "table";
  bool quiet = false;
};

struct ShimCallOptions {
  std::string ns = "default", target, method, params = "{}";
  std::int64_t timeout = 10;  // seconds
};

struct LeaksOptions {
  std::string output = "table";
  int exit_code = 1;
};

}  // namespace wherry::cli
