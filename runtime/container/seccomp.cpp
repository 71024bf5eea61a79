#include "runtime/container/seccomp.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>

#include "base/file.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/container/seccomp_rules.h"

namespace wherry::container {
namespace {

constexpr std::size_t kLargestFilter = sizeof(sock_filter) * BPF_MAXINSNS;
constexpr std::string_view kCacheVersion = "2";

Result<std::uint32_t> action_value(const std::string& action, unsigned errno_value) {
  static const std::map<std::string_view, std::uint32_t> kActions = {
      {"SCMP_ACT_KILL", SCMP_ACT_KILL_THREAD},
      {"SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD},
      {"SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS},
      {"SCMP_ACT_TRAP", SCMP_ACT_TRAP},
      {"SCMP_ACT_ALLOW", SCMP_ACT_ALLOW},
      {"SCMP_ACT_LOG", SCMP_ACT_LOG}};
  if (action == "SCMP_ACT_ERRNO") return SCMP_ACT_ERRNO(errno_value);
  if (action == "SCMP_ACT_TRACE") return SCMP_ACT_TRACE(errno_value);
  const auto found = kActions.find(action);
  if (found == kActions.end())
    return Error::make(Code::kUnsupported,
                       cat("seccomp action ", in_quotes(action), " is not supported"));
  return found->second;
}

Result<scmp_compare> operator_value(const std::string& op) {
  static const std::map<std::string_view, scmp_compare> kOperators = {
      {"SCMP_CMP_NE", SCMP_CMP_NE},
      {"SCMP_CMP_LT", SCMP_CMP_LT},
      {"SCMP_CMP_LE", SCMP_CMP_LE},
      {"SCMP_CMP_EQ", SCMP_CMP_EQ},
      {"SCMP_CMP_GE", SCMP_CMP_GE},
      {"SCMP_CMP_GT", SCMP_CMP_GT},
      {"SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ}};
  const auto found = kOperators.find(op);
  if (found == kOperators.end())
    return Error::make(Code::kInvalid, cat("seccomp operator ", in_quotes(op), " is unknown"));
  return found->second;
}

Result<std::uint32_t> architecture_value(const std::string& name) {
  std::string lower = name.starts_with("SCMP_ARCH_") ? name.substr(10) : name;
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  const auto value = ::seccomp_arch_resolve_name(lower.c_str());
  if (value == 0)
    return Error::make(Code::kUnsupported,
                       cat("seccomp architecture ", in_quotes(name), " is unknown to libseccomp"));
  return value;
}

Result<unsigned> flag_value(const std::string& flag) {
  if (flag == "SECCOMP_FILTER_FLAG_LOG") return unsigned{SECCOMP_FILTER_FLAG_LOG};
  if (flag == "SECCOMP_FILTER_FLAG_SPEC_ALLOW") return unsigned{SECCOMP_FILTER_FLAG_SPEC_ALLOW};
  if (flag == "SECCOMP_FILTER_FLAG_TSYNC") return unsigned{SECCOMP_FILTER_FLAG_TSYNC};
  return Error::make(Code::kUnsupported,
                     cat("seccomp flag ", in_quotes(flag), " is not supported"));
}

struct Context {
  scmp_filter_ctx raw = nullptr;
  ~Context() { ::seccomp_release(raw); }
};

Result<> failed(int rc, std::string_view call, std::string_view object) {
  return Error::sys(call, object, -rc);
}

Result<> add_rule(const Context& context, const oci::SeccompRule& rule,
                  std::uint32_t default_action, const std::set<std::string>& covered) {
  const auto action = TRY(action_value(rule.action, rule.errno_ret.value_or(EPERM)));
  if (action == default_action) return {};  // libseccomp refuses what would change nothing
  std::vector<scmp_arg_cmp> args;
  for (const auto& arg : rule.args) {
    scmp_arg_cmp compare{};
    compare.arg = arg.index;
    compare.op = TRY(operator_value(arg.op));
    compare.datum_a = arg.value;
    compare.datum_b = arg.value_two;
    for (const auto& other : args)
      if (other.arg == compare.arg)
        return Error::make(Code::kUnsupported,
                           cat("seccomp rule for '", rule.names.empty() ? "" : rule.names.front(),
                               "' compares argument ", arg.index, " twice"));
    args.push_back(compare);
  }
  for (const auto& name : rule.names) {
    if (covered.contains(name)) continue;
    const int number = ::seccomp_syscall_resolve_name(name.c_str());
    if (number == __NR_SCMP_ERROR)
      continue;  // of another kernel or a newer one: covered by the ENOSYS prologue
    const int rc = ::seccomp_rule_add_array(context.raw, action, number,
                                            static_cast<unsigned>(args.size()), args.data());
    // -EDOM: not there on one of the architectures.
    if (rc < 0 && rc != -EDOM) return failed(rc, "seccomp_rule_add", name);
  }
  return {};
}

std::uint32_t newest_known_syscall() {
  constexpr int kFarEnough = 1024;
  int newest = 0;
  for (int number = 0; number < kFarEnough; ++number) {
    char* name = ::seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
    if (name != nullptr) newest = number;
    std::free(name);
  }
  return static_cast<std::uint32_t>(newest);
}

// Only for the native architecture and only where an unknown call would get an errno anyhow.
std::vector<sock_filter> enosys_prologue(std::uint32_t newest) {
#if defined(__x86_64__)
  constexpr std::uint32_t kNative = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  constexpr std::uint32_t kNative = AUDIT_ARCH_AARCH64;
#endif
  constexpr std::uint32_t kX32Bit = 0x40000000;
  return {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, arch))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kNative, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, nr))),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, newest, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
  };
}

std::vector<RuleTarget> rule_targets(const oci::Seccomp& profile) {
  std::vector<std::uint32_t> architectures{::seccomp_arch_native()};
  for (const auto& name : profile.architectures)
    if (const auto value = architecture_value(name);
        value.ok() &&
        std::find(architectures.begin(), architectures.end(), value.value()) == architectures.end())
      architectures.push_back(value.value());
  std::vector<RuleTarget> targets;
  for (const auto architecture : architectures) {
    const auto number_of = [architecture](const std::string& name) {
      return ::seccomp_syscall_resolve_name_arch(architecture, name.c_str());
    };
    // x32 is told from x86-64 by a bit of the number alone.
    const auto audit = architecture == SCMP_ARCH_X32 ? SCMP_ARCH_X86_64 : architecture;
    targets.push_back({audit, number_of});
  }
  return targets;
}

// In the throw-away child: the filter, or an error.
Result<> compile_into(const oci::Seccomp& profile, int out) {
  const auto default_action =
      TRY(action_value(profile.default_action, profile.default_errno_ret.value_or(EPERM)));
  const Context context{::seccomp_init(default_action)};
  if (context.raw == nullptr) return Error::make(Code::kSystem, "seccomp_init failed");
  for (const auto& architecture : profile.architectures) {
    const int rc = ::seccomp_arch_add(context.raw, TRY(architecture_value(architecture)));
    if (rc < 0 && rc != -EEXIST) return failed(rc, "seccomp_arch_add", architecture);
  }
  ::seccomp_attr_set(context.raw, SCMP_FLTATR_CTL_OPTIMIZE,
                     2);  // a binary tree: a tenth of the instructions run
  const auto own = TRY(compile_own_rules(
      profile, rule_targets(profile), default_action, [](const oci::SeccompRule& rule) {
        return action_value(rule.action, rule.errno_ret.value_or(EPERM));
      }));
  for (const auto& rule : profile.syscalls)
    TRY(add_rule(context, rule, default_action, own.covered));
  const auto write = [&](const std::vector<sock_filter>& code) {
    return sys::write_all(
        out, {reinterpret_cast<const char*>(code.data()), code.size() * sizeof(sock_filter)});
  };
  TRY(write(own.code));
  if (profile.default_action == "SCMP_ACT_ERRNO")
    TRY(write(enosys_prologue(newest_known_syscall())));
  if (const int rc = ::seccomp_export_bpf(context.raw, out); rc < 0)
    return failed(rc, "seccomp_export_bpf", "");
  return {};
}

[[noreturn]] void compile_and_exit(const oci::Seccomp& profile, int out) {
  const auto done = compile_into(profile, out);
  if (done.ok()) ::_exit(0);
  sys::ftruncate(out, 0).ignore("the message is longer than nothing");
  ::lseek(out, 0, SEEK_SET);
  sys::write_all(out, done.error().message()).ignore("nobody else to tell");
  ::_exit(done.error().code() == Code::kUnsupported ? 2 : 1);
}

Result<std::string> compile_apart(const oci::Seccomp& profile, Deadline deadline) {
  const auto out = TRY(sys::memfd_create("seccomp", 0));
  const auto child = TRY(clone_process({}));
  if (child.pid == 0) compile_and_exit(profile, out.get());
  if (TRY(sys::poll_one(child.pidfd.get(), POLLIN, deadline)) == 0) {
    sys::pidfd_send_signal(child.pidfd.get(), SIGKILL).ignore("it may have ended just now");
    TRY(sys::waitid_pidfd(child.pidfd.get(), WEXITED));
    return Error::make(Code::kTimeout, "compiling the seccomp profile took too long");
  }
  const auto info = TRY(sys::waitid_pidfd(child.pidfd.get(), WEXITED));
  ::lseek(out.get(), 0, SEEK_SET);
  auto text = TRY(sys::read_to_end(out.get(), kLargestFilter, "seccomp filter"));
  if (info->si_code == CLD_EXITED && info->si_status == 0) return text;
  return Error::make(info->si_status == 2 ? Code::kUnsupported : Code::kInvalid,
                     text.empty() ? "the seccomp compiler died" : text);
}

// What the filter depends on, as text: two profiles with the same text are the same profile.
std::string source_text(const oci::Seccomp& profile) {
  const auto* version = ::seccomp_version();
  std::string text =
      cat(kCacheVersion, " libseccomp ", version->major, ".", version->minor, ".", version->micro,
          "\n", profile.default_action, " ", profile.default_errno_ret.value_or(EPERM), "\n");
  for (const auto& name : profile.architectures) text += cat(name, " ");
  for (const auto& rule : profile.syscalls) {
    text += cat("\n", rule.action, " ", rule.errno_ret.value_or(EPERM));
    for (const auto& name : rule.names) text += cat(" ", name);
    for (const auto& arg : rule.args)
      text += cat(" [", arg.index, " ", arg.op, " ", arg.value, " ", arg.value_two, "]");
  }
  return text + "\n";
}

// FNV-1a: only a file name. The whole source text is compared before a cached filter is believed.
std::string cache_name(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::array<char, 8> bytes{};
  std::memcpy(bytes.data(), &hash, sizeof hash);
  return cat("seccomp.", hex({bytes.data(), bytes.size()}));
}

std::string cached(int dir, const std::string& name, std::string_view source) {
  auto content = read_file_at(dir, name, kLargestFilter + source.size());
  if (!content.ok() || !content->starts_with(source)) return {};
  auto filter = content->substr(source.size());
  return filter.size() % sizeof(sock_filter) == 0 ? filter : std::string{};
}

Result<std::string> compile_cached(const oci::Seccomp& profile, const std::string& cache_dir,
                                   Deadline deadline) {
  if (cache_dir.empty()) return compile_apart(profile, deadline);
  const auto dir = TRY(open_private_dir(cache_dir));
  const auto source = source_text(profile);
  const auto name = cache_name(source);
  if (auto filter = cached(dir.get(), name, source); !filter.empty()) return filter;
  auto filter = TRY(compile_apart(profile, deadline));
  replace_file(dir.get(), name, source + filter, 0600)
      .ignore("a cache that cannot be written only costs time");
  return filter;
}

}  // namespace

Result<SeccompFilter> compile_seccomp(const oci::Seccomp& profile, const std::string& cache_dir,
                                      Deadline deadline) {
  if (!profile.listener_path.empty())
    return Error::make(Code::kUnsupported,
                       "linux.seccomp.listenerPath is not supported by this version");
  SeccompFilter filter;
  for (const auto& flag : profile.flags) filter.flags |= TRY(flag_value(flag));
  const auto bytes = TRY_CTX(compile_cached(profile, cache_dir, deadline), "linux.seccomp");
  filter.instructions.resize(bytes.size() / sizeof(sock_filter));
  std::memcpy(filter.instructions.data(), bytes.data(), bytes.size());
  if (filter.instructions.empty() || filter.instructions.size() > BPF_MAXINSNS)
    return Error::make(Code::kInvalid,
                       cat("linux.seccomp: a filter of ", filter.instructions.size(),
                           " instructions; the kernel takes 1 to ", BPF_MAXINSNS));
  return filter;
}

}  // namespace wherry::container
