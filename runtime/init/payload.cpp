#include "runtime/init/payload.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/init/credentials.h"
#include "runtime/init/hooks.h"

namespace wherry::init {
namespace {

constexpr Millis kCreatorKnows{10'000};

std::string_view path_of(const std::vector<std::string>& env) {
  for (const auto& entry : env)
    if (entry.starts_with("PATH=")) return std::string_view{entry}.substr(5);
  return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

// errno of execve's likely answer: 0 when it should work.
int try_program(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) < 0) return errno;
  if (!S_ISREG(st.st_mode)) return EACCES;
  return ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) < 0 ? errno : 0;
}

Error not_runnable(const std::string& program, int err) {
  return Error::sys("exec", program, err)
      .code(err == ENOENT || err == ENOTDIR ? Code::kNotFound : Code::kDenied);
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (auto& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

Result<> load_seccomp(const Plan& plan) {
  if (plan.seccomp.empty()) return {};
  const sock_fprog program{static_cast<unsigned short>(plan.seccomp.size()),
                           const_cast<sock_filter*>(plan.seccomp.data())};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, plan.seccomp_flags, &program) < 0)
    return Error::sys("seccomp(SET_MODE_FILTER)");
  return {};
}

// Two written orders. With no-new-privileges the filter comes last and only execve runs under it
// (and what a terminal needs, for an exec into a pid namespace). Without, loading needs
// CAP_SYS_ADMIN, so it comes before the credentials and the profile has to allow what they take.
Result<> give_up_privileges(const Plan& plan, Where& where) {
  if (!plan.no_new_privileges) {
    where = Where::kSeccomp;
    TRY(load_seccomp(plan));
  }
  where = Where::kCredentials;
  TRY(set_credentials(plan));
  return plan.no_new_privileges ? sys::prctl(PR_SET_NO_NEW_PRIVS, 1) : Result<>{};
}

// execve's arguments, made before the filter, after which nothing may allocate or call.
struct Arguments {
  explicit Arguments(Plan& plan) : args{pointers(plan.args)}, env{pointers(plan.env)} {}
  std::vector<char*> args, env;
};

Error execute(const Plan& plan, const std::string& program, const Arguments& with, Where& where) {
  if (plan.no_new_privileges) {
    where = Where::kSeccomp;
    if (auto done = load_seccomp(plan); !done.ok()) return std::move(done).error();
  }
  where = Where::kExec;
  ::execve(program.c_str(), with.args.data(), with.env.data());
  const int err = errno;
  if (err == E2BIG)
    return Error::sys("exec", program, err)
        .hint(
            "arguments and environment together may have 2 MiB or a quarter of RLIMIT_STACK, one "
            "string 128 KiB");
  return not_runnable(program, err);
}

Error become_payload(Plan& plan, const std::string& program, Where& where) {
  ::umask(plan.umask);
  const Arguments with{plan};
  if (auto done = give_up_privileges(plan, where); !done.ok()) return std::move(done).error();
  return execute(plan, program, with, where);
}

[[noreturn]] void end(const Channel& channel, Where where, const Error& error) {
  channel.send(failure(where, error)).ignore("the creator is gone");
  ::_exit(error.code() == Code::kNotFound ? 127 : 126);
}

// The second process of an exec: seen by the container, with the payload's own rights and nothing
// else open than what the payload gets.
[[noreturn]] void run_in_sight(const Plan& plan, const std::string& program, const Arguments& with,
                               const Channel& channel) {
  Where where = Where::kSession;
  if (::setsid() < 0) end(channel, where, Error::sys("setsid"));
  if (plan.terminal && ::ioctl(0, TIOCSCTTY, 0) < 0)
    end(channel, where, Error::sys("ioctl(TIOCSCTTY)"));
  const auto error = execute(plan, program, with, where);
  end(channel, where, error);
}

constexpr auto kStartHooksWait = Millis{50000};  // of a hook without a timeout; start waits longer

// runtime-spec, config.md: startContainer runs in the container's namespaces and root, before the
// payload.
Result<> run_start_hooks(const Plan& plan) {
  if (!plan.hooks || plan.hooks->start_container.empty()) return {};
  auto state = plan.hooks->state;
  state.status = oci::Status::kCreated;
  state.pid = ::getpid();
  return run_hooks("startContainer", plan.hooks->start_container, state, "/",
                   Deadline::in(kStartHooksWait));
}

}  // namespace

Result<std::string> find_program(const Plan& plan) {
  const auto& name = plan.args.front();
  if (name.empty()) return Error::make(Code::kInvalid, "exec '': the program's name is empty");
  if (name.find('/') != std::string::npos) {
    if (const int err = try_program(name); err != 0) return not_runnable(name, err);
    return name;
  }
  int denied = 0;
  for (const auto dir : split(path_of(plan.env), ':')) {
    auto candidate = cat(dir.empty() ? "." : dir, "/", name);
    const int err = try_program(candidate);
    if (err == 0) return candidate;
    if (err == EACCES) denied = err;
  }
  if (denied != 0) return not_runnable(name, denied);
  return Error::make(Code::kNotFound,
                     cat("exec '", name, "': no such program in PATH '", path_of(plan.env), "'"));
}

void run_behind_gate(Plan& plan, const std::string& program) {
  char byte = 0;
  if (!sys::read(plan.gate.get(), {&byte, 1}, "gate").ok()) ::_exit(1);
  Where where = Where::kGate;
  if (auto run = run_start_hooks(plan); !run.ok()) {
    sys::write_all(plan.result.get(), "X" + encode(failure(Where::kHooks, run.error())))
        .ignore("start is gone");
    ::_exit(1);
  }
  // 'X' tells start that what follows is execve; its absence at the end of the FIFO means that we
  // died before.
  sys::write_all(plan.result.get(), "X").ignore("start is gone; the payload runs all the same");
  const auto error = become_payload(plan, program, where);
  sys::write_all(plan.result.get(), encode(failure(where, error))).ignore("start is gone");
  ::_exit(error.code() == Code::kNotFound ? 127 : 126);
}

void run_at_once(Plan& plan, const std::string& program, const Channel& channel) {
  Where where = Where::kReady;
  const auto error = become_payload(plan, program, where);
  end(channel, where, error);
}

void run_in_pid_namespace(Plan& plan, const std::string& program, const Channel& channel) {
  ::umask(plan.umask);
  const Arguments with{plan};
  plan.pid_namespace.reset();
  Where where = Where::kCredentials;
  if (auto done = give_up_privileges(plan, where); !done.ok()) end(channel, where, done.error());
  CloneArgs args;
  if (plan.child_of_creator) args.flags |= CLONE_PARENT;
  auto second = clone_process(args);
  if (!second.ok())
    end(channel, Where::kPidNamespace,
        std::move(second).error().hint("pids.max of the container, or its seccomp profile"));
  if (second->pid == 0) run_in_sight(plan, program, with, channel);
  Message entered;
  entered.step = Step::kEntered;
  entered.pid = second->pid;
  entered.fd = std::move(second->pidfd);
  if (!channel.send(entered).ok()) ::_exit(1);
  // As its parent we keep its number from being another's until the creator knows who it is.
  channel.receive(Deadline::in(kCreatorKnows)).ignore("the creator is gone: the keeper sees it");
  ::_exit(0);
}

}  // namespace wherry::init
