// exec.
#include <fcntl.h>

#include <algorithm>

#include "base/file.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "oci/config.h"
#include "runtime/container/container.h"
#include "tools/wherry-oci/verbs.h"

namespace wherry::tool {
namespace {

constexpr std::size_t kLargestProcess = 16U << 20;

Result<> set_user(const std::string& text, oci::User& user) {
  const auto parts = split(text, ':');
  const auto uid = parse_int<std::uint32_t>(parts[0]);
  const auto gid = parts.size() > 1 ? parse_int<std::uint32_t>(parts[1]) : std::optional{user.gid};
  if (!uid || !gid || parts.size() > 2)
    return Error::make(Code::kInvalid,
                       cat("--user: ", in_quotes(text), " is not UID[:GID] in numbers"));
  if (*uid == ~0U || *gid == ~0U)
    return Error::make(Code::kInvalid,
                       cat("--user: ", in_quotes(text), ": 4294967295 is not an id"));
  user.uid = *uid;
  user.gid = *gid;
  user.additional_gids.clear();
  return {};
}

void add_capabilities(const std::vector<std::string>& names, oci::Process& process) {
  if (names.empty()) return;
  if (!process.capabilities) process.capabilities.emplace();
  // Not into the inheritable and ambient sets: those would survive an exec as another user
  // (CVE-2022-29162).
  for (const auto& name : names)
    for (auto* set : {&process.capabilities->bounding, &process.capabilities->effective,
                      &process.capabilities->permitted})
      if (std::find(set->begin(), set->end(), name) == set->end()) set->push_back(name);
}

Result<oci::Process> make_process(const Options& options, const oci::Spec& spec) {
  if (!options.process_file.empty()) {
    if (options.operands.size() > 1)
      return Error::make(Code::kInvalid, "either --process or a command");
    const auto text =
        TRY_CTX(read_file_at(AT_FDCWD, options.process_file, kLargestProcess), "--process");
    return oci::parse_process(text, options.process_file);
  }
  if (options.operands.size() < 2)
    return Error::make(Code::kInvalid, "the command is missing").hint(see_help("exec"));
  oci::Process process = *spec.process;
  process.args.assign(options.operands.begin() + 1, options.operands.end());
  process.env.insert(process.env.end(), options.env.begin(), options.env.end());
  process.terminal = options.tty;
  process.console_size.reset();
  if (!options.cwd.empty()) process.cwd = options.cwd;
  if (!options.user.empty()) TRY(set_user(options.user, process.user));
  for (const auto gid : options.additional_gids) process.user.additional_gids.push_back(gid);
  add_capabilities(options.capabilities, process);
  if (options.no_new_privileges) process.no_new_privileges = true;
  return process;
}

Result<int> run(const Options& options, const std::string& id) {
  const auto dir = TRY(open_container(options, id, Locking::kNo));
  const auto record = TRY(container::load_record(dir.container.get()));
  const auto spec = TRY(load_spec(record.bundle));
  container::ExecOptions exec;
  exec.process = TRY(make_process(options, spec));
  exec.preserve_fds = options.preserve_fds;
  exec.seccomp_cache = seccomp_cache(options);
  if (exec.process.terminal && options.detach && options.console_socket.empty())
    return Error::make(Code::kInvalid, "--tty with --detach needs --console-socket");
  auto executed =
      TRY(container::exec(dir.container.get(), spec, std::move(exec), Deadline::in(kVerbTime)));
  if (auto outcome = executed.outcome(Deadline::in(kVerbTime)); !outcome.ok()) {
    container::finish_exec(dir.container.get(), executed.leaf_path, Deadline::in(kVerbTime))
        .ignore("the first error is the one to tell");
    return std::move(outcome).error();
  }
  if (!options.console_socket.empty() && executed.console) {
    TRY(send_console(options.console_socket, executed.console.get()));
    executed.console.reset();
  }
  TRY(write_pid_file(options.pid_file, executed.process.pid));
  if (options.detach) return 0;
  auto code = attend(executed.pidfd, std::move(executed.console));
  auto finished =
      container::finish_exec(dir.container.get(), executed.leaf_path, Deadline::in(kVerbTime));
  if (code.ok() && !finished.ok()) return std::move(finished).error();
  return code;
}

}  // namespace

Result<int> exec(const Options& options) {
  if (options.operands.empty())
    return Error::make(Code::kInvalid, "the id of the container is missing").hint(see_help("exec"));
  const auto& id = options.operands[0];
  return TRY_CTX(run(options, id), cat("exec in container '", id, "'"));
}

}  // namespace wherry::tool
