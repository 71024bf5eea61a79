#include "base/text.h"
#include "oci/validate.h"

namespace wherry::oci {
namespace {

constexpr unsigned kMaxErrno =
    4095;  // MAX_ERRNO of the kernel: above it the number would be a valid return value
constexpr unsigned kLastArgument = 5;

void check_action(Rules& rules, const std::string& pointer, const std::string& action) {
  rules.one_of(
      pointer, action,
      {"SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD", "SCMP_ACT_TRAP",
       "SCMP_ACT_ERRNO", "SCMP_ACT_TRACE", "SCMP_ACT_ALLOW", "SCMP_ACT_LOG", "SCMP_ACT_NOTIFY"});
}

void check_errno(Rules& rules, const std::string& pointer, std::optional<unsigned> number,
                 const std::string& action) {
  if (!number) return;
  if (*number > kMaxErrno)
    rules.problem(pointer, cat("must be at most ", kMaxErrno, ", not ", *number));
  if (action != "SCMP_ACT_ERRNO" && action != "SCMP_ACT_TRACE")
    rules.note(pointer, cat("is for SCMP_ACT_ERRNO and SCMP_ACT_TRACE; ", in_quotes(action),
                            " has no use for it"));
}

void check_rule(Rules& rules, const std::string& pointer, const SeccompRule& rule) {
  if (rule.names.empty())
    rules.problem(member(pointer, "names"), "must name at least one system call");
  for (std::size_t i = 0; i < rule.names.size(); ++i)
    if (rule.names[i].empty())
      rules.problem(element(member(pointer, "names"), i), "must not be empty");
  check_action(rules, member(pointer, "action"), rule.action);
  check_errno(rules, member(pointer, "errnoRet"), rule.errno_ret, rule.action);
  for (std::size_t i = 0; i < rule.args.size(); ++i) {
    const auto here = element(member(pointer, "args"), i);
    if (rule.args[i].index > kLastArgument)
      rules.problem(member(here, "index"),
                    cat("must be between 0 and 5, not ", rule.args[i].index));
    rules.one_of(member(here, "op"), rule.args[i].op,
                 {"SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE", "SCMP_CMP_EQ", "SCMP_CMP_GE",
                  "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"});
  }
}

void check_listener(Rules& rules, const std::string& pointer, const Seccomp& seccomp) {
  // Nobody could answer for the call with which the listener itself is handed over.
  if (seccomp.default_action == "SCMP_ACT_NOTIFY")
    rules.problem(member(pointer, "defaultAction"), "must not be SCMP_ACT_NOTIFY");
  bool notifies = false;
  for (const auto& rule : seccomp.syscalls) notifies = notifies || rule.action == "SCMP_ACT_NOTIFY";
  if (notifies && seccomp.listener_path.empty())
    rules.problem(member(pointer, "listenerPath"), "is missing but required by SCMP_ACT_NOTIFY");
  if (!seccomp.listener_path.empty())
    rules.absolute(member(pointer, "listenerPath"), seccomp.listener_path);
  if (!seccomp.listener_metadata.empty() && seccomp.listener_path.empty())
    rules.problem(member(pointer, "listenerMetadata"), "must not be given without 'listenerPath'");
}

}  // namespace

void check_seccomp(Rules& rules, const std::string& pointer, const Seccomp& seccomp) {
  check_action(rules, member(pointer, "defaultAction"), seccomp.default_action);
  check_errno(rules, member(pointer, "defaultErrnoRet"), seccomp.default_errno_ret,
              seccomp.default_action);
  for (std::size_t i = 0; i < seccomp.architectures.size(); ++i)
    rules.one_of(
        element(member(pointer, "architectures"), i), seccomp.architectures[i],
        {"SCMP_ARCH_X86",         "SCMP_ARCH_X86_64",      "SCMP_ARCH_X32",    "SCMP_ARCH_ARM",
         "SCMP_ARCH_AARCH64",     "SCMP_ARCH_LOONGARCH64", "SCMP_ARCH_M68K",   "SCMP_ARCH_MIPS",
         "SCMP_ARCH_MIPS64",      "SCMP_ARCH_MIPS64N32",   "SCMP_ARCH_MIPSEL", "SCMP_ARCH_MIPSEL64",
         "SCMP_ARCH_MIPSEL64N32", "SCMP_ARCH_PPC",         "SCMP_ARCH_PPC64",  "SCMP_ARCH_PPC64LE",
         "SCMP_ARCH_S390",        "SCMP_ARCH_S390X",       "SCMP_ARCH_SH",     "SCMP_ARCH_SHEB",
         "SCMP_ARCH_PARISC",      "SCMP_ARCH_PARISC64",    "SCMP_ARCH_RISCV64"});
  for (std::size_t i = 0; i < seccomp.flags.size(); ++i)
    rules.one_of(element(member(pointer, "flags"), i), seccomp.flags[i],
                 {"SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_LOG",
                  "SECCOMP_FILTER_FLAG_SPEC_ALLOW", "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"});
  check_listener(rules, pointer, seccomp);
  for (std::size_t i = 0; i < seccomp.syscalls.size(); ++i)
    check_rule(rules, element(member(pointer, "syscalls"), i), seccomp.syscalls[i]);
}

}  // namespace wherry::oci
