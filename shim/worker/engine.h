// The containers of one pod on this host: carries out what the machine asks for, one at a time, and
// knows nothing of why. What it holds of a container is lost with the worker and found again by
// adopt().
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"
#include "oci/spec.h"
#include "oci/state.h"
#include "runtime/container/container.h"
#include "shim/protocol/exit_record.h"
#include "shim/worker/container_io.h"
#include "shim/worker/context.h"

namespace wherry::shim {

struct LiveContainer {
  std::string name;
  unsigned attempt = 0;
  UniqueFd record_dir;
  ProcessIdentity init;
  UniqueFd pidfd;
  oci::Spec spec;  // as it was created
  std::unique_ptr<ContainerIo> io;
  bool exited = false;  // its exit is on disk
};

class Engine {
 public:
  explicit Engine(Context& context) : context_{context} {}

  Result<> create(const std::string& name, unsigned attempt);
  Result<> start(const std::string& name);
  Result<> signal(const std::string& name, int signum);
  Result<> kill(const std::string& name);  // everything in it
  // Process, cgroup and record are gone after it; logs and exit record stay. Works for any name of
  // the pod.
  Result<> destroy(const std::string& name);

  LiveContainer* find(const std::string& name);
  LiveContainer* find_by_pid(const ChildExit& exit);  // nullptr: none of ours
  const std::map<std::string, LiveContainer>& all() const { return containers_; }

  // Writes down how it ended; what is known of it is known to the disk when this returns.
  Result<ExitRecord> record_exit(LiveContainer& container, const ChildExit* exit);

  // What a worker before us left of a container.
  struct Found {
    enum class What : std::uint8_t { kNothing, kAtGate, kAlive, kGone } what{};
    std::optional<ExitRecord> exit;  // kGone: when it was written down
  };
  Result<> rejoin();  // what all containers share; before the first adopt()
  Result<Found> adopt(const std::string& name, unsigned attempt);
  std::string log_path(const std::string& name, unsigned attempt) const;
  Result<UniqueFd> record_dir(const std::string& name) const;

 private:
  // `bind_sources` is filled for the container's creation.
  Result<oci::Spec> make_spec(const pod::Container& container, int root_mount,
                              mount::OpenedSources& bind_sources);
  ContainerIo::Options io_options(const pod::Container& container, unsigned attempt, int record_dir,
                                  int log_dir) const;
  Result<UniqueFd> log_dir(const std::string& name) const;
  Result<> make_namespaces();
  std::string pinned(const char* which) const;

  Context& context_;
  bool prepared_ = false;  // what all containers share
  std::map<std::string, LiveContainer> containers_;
  std::map<std::string, UniqueFd> namespaces_;  // of the pod: "net", "ipc", "uts"
};

}  // namespace wherry::shim
