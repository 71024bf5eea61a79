// The pod lifecycle as a C++ API: one call per verb. The command line is a thin layer over this and
// nothing else.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json_fwd.h"
#include "base/result.h"
#include "runtime/pod/pod.h"
#include "shim/protocol/failure.h"
#include "shim/protocol/pod_status.h"

namespace wherry {

struct Places {  // --root, --state, --cgroup-parent
  std::string root = "/var/lib/wherry";
  std::string state = "/run/wherry";
  std::string cgroup_parent = "/wherry";
};

// A pod or a container of it: "web", "web/nginx", "3f2a", resolved by name within a namespace or
// unique id prefix.
struct Target {
  std::string pod_id,
      container;  // container "" : the pod (or its only / first container where one is needed)
};

struct ExecRequest {
  std::vector<std::string> argv, env;
  std::string user, cwd;
  bool tty = false, interactive = false;
  std::array<int, 3> stdio{
      0, 1, 2};  // the caller's own; relayed when tty, passed as descriptors otherwise
};

class Pods {
 public:
  static Result<Pods> open(Places places);

  // Reserves id and name, writes the record, starts keeper and worker and waits until every
  // container runs (or the pod has failed). The error of a container that cannot start comes back
  // whole, and nothing stays. That an init container has failed, or that the pod was stopped before
  // all of it ran, is an error too (kState), and the pod stays with its logs.
  Result<PodStatus> run(pod::Pod pod, Deadline deadline);
  // As `run`, with the caller's terminal or pipes attached to the primary container from its first
  // byte. Returns its exit code.
  Result<int> run_attached(pod::Pod pod, std::array<int, 3> stdio);
  // The caller's terminal or pipes and a running container's, from now on. The exit code when it
  // ended, 0 when the caller typed the detach keys (ctrl-p ctrl-q).
  Result<int> attach(const Target& target, std::array<int, 3> stdio);

  Result<Target> resolve(const std::string& text, const std::string& ns) const;
  Result<std::vector<PodStatus>> list() const;  // from status files: never waits for a worker
  Result<PodStatus> status(const Target& target) const;
  Result<Json> inspect(
      const Target& target) const;  // status, pod.json, config.json as used (secrets left out)
  // Until the pod has ended, or the container will not run again; the exit code of the pod's
  // primary container (or of what failed it), or of the container. kTimeout says that it still
  // runs, and for how long it was waited when that is given as `asked`.
  Result<int> wait(const Target& target, Deadline deadline,
                   std::optional<std::chrono::seconds> asked = {}) const;
  // kState when it does not run.
  Result<> kill(const Target& target, const std::string& signal, Deadline deadline) const;
  Result<int> exec(const Target& target, ExecRequest request, Deadline deadline);
  Result<> stop(const Target& target, std::optional<std::chrono::seconds> grace, Deadline deadline);
  enum class Force : std::uint8_t { kNo, kYes };
  Result<> remove(const Target& target, Force force, Deadline deadline);

  struct LogOptions {
    bool follow = false, timestamps = false;
    std::optional<unsigned> tail;
  };
  using OnLine =
      std::function<Result<>(bool is_stderr, std::string_view timestamp, std::string_view text)>;
  Result<> logs(const Target& target, const LogOptions& options, const OnLine& on_line) const;

  struct EventOptions {
    bool follow = false;
    std::optional<std::uint64_t> since;  // sequence number
  };
  Result<> events(const EventOptions& options,
                  const std::function<Result<>(const Json&)>& on_event) const;

  Result<Json> shim_list() const;
  Result<Json> shim_inspect(const Target& target) const;  // also when the worker hangs or is dead
  Result<Json> shim_call(const Target& target, const std::string& method, const Json& params,
                         Deadline deadline) const;
  // Everything that no living pod accounts for: processes, cgroups, mounts, namespaces, loop
  // devices, BPF programs, state and store directories. A line each: {kind, what, pod, why}.
  Result<Json> leaks() const;

 private:
  explicit Pods(Places places) : places_{std::move(places)} {}
  Places places_;
};

}  // namespace wherry
