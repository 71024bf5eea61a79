#include "runtime/init/payload.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/text.h"
#include "runtime/init/credentials.h"

namespace wherry::init {
namespace {

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

// Two written orders. With no-new-privileges the filter comes last and only execve runs under it.
// Without, loading needs CAP_SYS_ADMIN, so it comes before the credentials and the profile has to
// allow what they take.
Result<> secure(const Plan& plan, Where& where) {
  if (plan.no_new_privileges) {
    where = Where::kCredentials;
    TRY(set_credentials(plan));
    TRY(sys::prctl(PR_SET_NO_NEW_PRIVS, 1));
    where = Where::kSeccomp;
    return load_seccomp(plan);
  }
  where = Where::kSeccomp;
  TRY(load_seccomp(plan));
  where = Where::kCredentials;
  return set_credentials(plan);
}

// Everything that execve needs is made before the filter, after which nothing may allocate or call.
Error become_payload(Plan& plan, const std::string& program, Where& where) {
  ::umask(plan.umask);
  auto args = pointers(plan.args);
  auto env = pointers(plan.env);
  if (auto done = secure(plan, where); !done.ok()) return std::move(done).error();
  where = Where::kExec;
  ::execve(program.c_str(), args.data(), env.data());
  const int err = errno;
  if (err == E2BIG)
    return Error::sys("exec", program, err)
        .hint(
            "arguments and environment together may have 2 MiB or a quarter of RLIMIT_STACK, one "
            "string 128 KiB");
  return not_runnable(program, err);
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
  channel.send(failure(where, error)).ignore("the creator is gone");
  ::_exit(error.code() == Code::kNotFound ? 127 : 126);
}

}  // namespace wherry::init
