// create and run.
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/timing.h"
#include "runtime/container/container.h"
#include "runtime/container/record.h"
#include "tools/wherry-oci/verbs.h"

namespace wherry::tool {
namespace {

Result<std::string> absolute(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return Error::sys("realpath", path);
  std::string out = real;
  std::free(real);
  return out;
}

Result<> check_terminal(const Options& options, const oci::Spec& spec) {
  const bool attached = options.verb == "run" && !options.detach;
  if (!spec.process || !spec.process->terminal) {
    if (!options.console_socket.empty())
      return Error::make(Code::kInvalid, "--console-socket: the process has no terminal");
    return {};
  }
  if (!attached && options.console_socket.empty())
    return Error::make(Code::kInvalid, "the process wants a terminal")
        .hint("give --console-socket, or run it in the foreground");
  if (attached && !options.console_socket.empty())
    return Error::make(Code::kInvalid, "--console-socket: only with create and run --detach");
  return {};
}

struct Made {
  StateDir dir;
  container::Created created;
};

Result<> undo(const StateDir& dir, const std::string& id) {
  TRY(container::destroy(dir.container.get(), "", Deadline::in(kVerbTime)));
  return remove_container_dir(dir, id);
}

Result<Made> make(const Options& options, const std::string& id) {
  const auto bundle = TRY(absolute(options.bundle));
  const auto spec = TRY(load_spec(bundle));
  TRY(check_terminal(options, spec));
  mark_phase("config.json");
  Made made{TRY(make_container_dir(options, id)), {}};
  mark_phase("record");
  container::CreateOptions create;
  create.id = id;
  create.bundle = bundle;
  create.record_dir = made.dir.container.get();
  create.preserve_fds = options.preserve_fds;
  create.no_new_keyring = options.no_new_keyring;
  create.cgroup_default = "/wherry-oci/" + id;
  create.seccomp_cache = seccomp_cache(options);
  auto finish = [&]() -> Result<> {
    made.created = TRY(container::create(spec, std::move(create), Deadline::in(kVerbTime)));
    if (!options.console_socket.empty()) {
      TRY(send_console(options.console_socket, made.created.console.get()));
      made.created.console.reset();
    }
    return write_pid_file(options.pid_file, made.created.init.pid);
  };
  if (auto finished = finish(); !finished.ok()) {
    if (auto undone = undo(made.dir, id); !undone.ok())
      LOG(kWarning, "undo of container '", id, "': ", undone.error().message());
    return std::move(finished).error();
  }
  return made;
}

// Orphans of the container come to us when it has no PID namespace; the destroy before this has
// killed them.
void reap_orphans() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

// Unless somebody has deleted it already: then the id may be another container's.
Result<> delete_ended(StateDir& dir, const std::string& id) {
  if (!TRY(lock_container(dir, id))) return {};
  return undo(dir, id);
}

Result<int> attend_and_delete(const Options& options, Made made, const std::string& id) {
  made.dir.lock.reset();  // exec, kill and the like may go on while it runs
  auto code = attend(made.created.pidfd, std::move(made.created.console));
  mark_phase("the payload");
  if (options.keep) return code;
  auto removed = delete_ended(made.dir, id);
  reap_orphans();
  mark_phase("delete");
  if (code.ok() && !removed.ok()) return std::move(removed).error();
  return code;
}

}  // namespace

Result<int> create_or_run(const Options& options) {
  const auto id = TRY(the_id(options, 1));
  const bool foreground = options.verb == "run" && !options.detach;
  if (foreground && !options.no_subreaper) TRY(sys::prctl(PR_SET_CHILD_SUBREAPER, 1));
  auto made = TRY_CTX(make(options, id), cat("create container '", id, "'"));
  if (options.verb == "create") return 0;
  if (auto started = container::start(made.dir.container.get(), Deadline::in(kVerbTime));
      !started.ok()) {
    auto error = explain_start(std::move(started).error(), made.dir);
    undo(made.dir, id).ignore("the first error is the one to tell");
    return std::move(error).context(cat("start container '", id, "'"));
  }
  mark_phase("gate and execve");
  if (!foreground) return 0;
  return attend_and_delete(options, std::move(made), id);
}

}  // namespace wherry::tool
