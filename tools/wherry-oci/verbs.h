// The verbs of wherry-oci. Each gives the exit status of the program.
#pragma once
#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "oci/spec.h"
#include "tools/wherry-oci/options.h"

namespace wherry::tool {

Result<int> create_or_run(const Options& options);
Result<int> start(const Options& options);
Result<int> state(const Options& options);
Result<int> kill(const Options& options);
Result<int> remove(const Options& options);
Result<int> list(const Options& options);
Result<int> exec(const Options& options);
Result<int> ps(const Options& options);
Result<int> pause(const Options& options);
Result<int> resume(const Options& options);
Result<int> update(const Options& options);
Result<int> events(const Options& options);
Result<int> spec(const Options& options);
Result<int> features(const Options& options);

inline constexpr auto kVerbTime = Millis{60000};
inline constexpr auto kFreezeTime = Millis{10000};  // a process in state D may never stop

// ---- shared by the verbs
// ------------------------------------------------------------------------------------------
struct StateDir {
  UniqueFd root;       // --root
  UniqueFd container;  // <root>/<id>
  UniqueFd lock;       // of the container: one verb at a time changes it
};
Result<std::string> the_id(const Options& options, std::size_t most_operands);
enum class Locking : std::uint8_t { kNo, kYes };
Result<StateDir> open_container(const Options& options, const std::string& id, Locking locking);
Result<StateDir> make_container_dir(const Options& options, const std::string& id);
// Takes the lock of the container behind the descriptor (again). false: it has been deleted
// meanwhile; whatever has its id now is another one.
Result<bool> lock_container(StateDir& dir, const std::string& id);
Result<> remove_container_dir(const StateDir& dir, const std::string& id);  // needs the lock
std::string seccomp_cache(const Options& options);
// The error of a create or start with what probably caused it.
Error explain_start(Error error, const StateDir& dir);
Result<oci::Spec> load_spec(const std::string& bundle);
Result<> write_pid_file(const std::string& path, pid_t pid);
Result<> send_console(const std::string& socket_path, int console);

// Relays between the caller's terminal and `console` (or only waits, when it is -1), passes signals
// on to the process, and gives its exit code.
Result<int> attend(const UniqueFd& pidfd, UniqueFd console);

}  // namespace wherry::tool
