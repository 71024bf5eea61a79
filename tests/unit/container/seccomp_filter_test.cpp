// The compiled filter against the profile itself: an interpreter of classic BPF (bpf.rst;
// seccomp_data in linux/seccomp.h) and an evaluation of the rules as config-linux.md has them, on a
// million random calls.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <random>

#include "base/text.h"
#include "runtime/container/seccomp.h"

namespace wherry::container {
namespace {

constexpr std::uint32_t kNative = AUDIT_ARCH_X86_64;
constexpr std::uint32_t kNoVerdict = 0xdeadbeef;

std::uint32_t interpret(const std::vector<sock_filter>& program, const seccomp_data& data) {
  std::uint32_t a = 0;
  for (std::size_t pc = 0; pc < program.size(); ++pc) {
    const auto code = program[pc].code;
    const auto k = program[pc].k;
    const auto jump = [&pc, &at = program[pc]](bool yes) { pc += yes ? at.jt : at.jf; };
    switch (code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (k + sizeof a > sizeof data) return kNoVerdict;
        std::memcpy(&a, reinterpret_cast<const char*>(&data) + k, sizeof a);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= k;
        break;
      case BPF_JMP | BPF_JA:
        pc += k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        jump(a == k);
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        jump(a > k);
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        jump(a >= k);
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        jump((a & k) != 0);
        break;
      case BPF_RET | BPF_K:
        return k;
      default:
        return kNoVerdict;
    }
  }
  return kNoVerdict;
}

struct Syscall {
  const char* name;
  int number;
};
constexpr std::array kSyscalls = {Syscall{"read", SYS_read},
                                  Syscall{"write", SYS_write},
                                  Syscall{"mmap", SYS_mmap},
                                  Syscall{"ioctl", SYS_ioctl},
                                  Syscall{"clone", SYS_clone},
                                  Syscall{"socket", SYS_socket},
                                  Syscall{"personality", SYS_personality},
                                  Syscall{"fcntl", SYS_fcntl},
                                  Syscall{"kill", SYS_kill},
                                  Syscall{"openat", SYS_openat},
                                  Syscall{"mount", SYS_mount},
                                  Syscall{"bpf", SYS_bpf},
                                  Syscall{"prctl", SYS_prctl},
                                  Syscall{"futex", SYS_futex},
                                  Syscall{"getpid", SYS_getpid}};

bool holds(const oci::SeccompArg& arg, const seccomp_data& call) {
  const std::uint64_t value = call.args[arg.index];
  if (arg.op == "SCMP_CMP_NE") return value != arg.value;
  if (arg.op == "SCMP_CMP_LT") return value < arg.value;
  if (arg.op == "SCMP_CMP_LE") return value <= arg.value;
  if (arg.op == "SCMP_CMP_EQ") return value == arg.value;
  if (arg.op == "SCMP_CMP_GE") return value >= arg.value;
  if (arg.op == "SCMP_CMP_GT") return value > arg.value;
  return (value & arg.value) == arg.value_two;  // SCMP_CMP_MASKED_EQ
}

std::uint32_t verdict(const std::string& action, std::optional<unsigned> number) {
  if (action == "SCMP_ACT_ALLOW") return SECCOMP_RET_ALLOW;
  if (action == "SCMP_ACT_LOG") return SECCOMP_RET_LOG;
  if (action == "SCMP_ACT_TRAP") return SECCOMP_RET_TRAP;
  if (action == "SCMP_ACT_KILL_PROCESS") return SECCOMP_RET_KILL_PROCESS;
  if (action == "SCMP_ACT_KILL_THREAD") return SECCOMP_RET_KILL_THREAD;
  const auto base = action == "SCMP_ACT_TRACE" ? SECCOMP_RET_TRACE : SECCOMP_RET_ERRNO;
  return base | number.value_or(EPERM);
}

std::string text_of(const oci::Seccomp& profile, const seccomp_data& call) {
  std::string text = cat("system call ", call.nr, "(");
  for (const auto arg : call.args) text += cat(arg, " ");
  text += cat("), default ", profile.default_action);
  for (const auto& rule : profile.syscalls)
    for (const auto& known : kSyscalls)
      if (known.number == call.nr && rule.names.front() == known.name) {
        text += cat("\n", rule.action);
        for (const auto& arg : rule.args)
          text += cat(" [", arg.index, " ", arg.op, " ", arg.value, " ", arg.value_two, "]");
      }
  return text;
}

std::uint32_t evaluate(const oci::Seccomp& profile, const seccomp_data& call) {
  for (const auto& rule : profile.syscalls) {
    bool all = true;
    for (const auto& arg : rule.args) all = all && holds(arg, call);
    for (const auto& name : rule.names)
      for (const auto& known : kSyscalls)
        if (all && name == known.name && known.number == call.nr)
          return verdict(rule.action, rule.errno_ret);
  }
  return verdict(profile.default_action, profile.default_errno_ret);
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_{seed} {}
  std::size_t below(std::size_t bound) { return engine_() % bound; }
  template <class Values>
  auto of(const Values& values) {
    return values[below(std::size(values))];
  }
  // Values that differ in one half, so that both halves of a comparison of 64 bits matter.
  std::uint64_t argument() {
    constexpr std::array<std::uint64_t, 8> kHalves = {0,    1,          2,          7,
                                                      0x10, 0x7fffffff, 0x80000000, 0xffffffff};
    return of(kHalves) << 32 | of(kHalves);
  }
  std::string action() {
    constexpr std::array kActions = {
        "SCMP_ACT_ALLOW",        "SCMP_ACT_ERRNO",       "SCMP_ACT_LOG",  "SCMP_ACT_TRAP",
        "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD", "SCMP_ACT_TRACE"};
    return of(kActions);
  }
  oci::SeccompArg comparison(unsigned index) {
    constexpr std::array kOperators = {"SCMP_CMP_NE",       "SCMP_CMP_LT", "SCMP_CMP_LE",
                                       "SCMP_CMP_EQ",       "SCMP_CMP_GE", "SCMP_CMP_GT",
                                       "SCMP_CMP_MASKED_EQ"};
    oci::SeccompArg arg{index, argument(), argument(), of(kOperators)};
    if (arg.op == "SCMP_CMP_MASKED_EQ") arg.value_two &= arg.value;
    return arg;
  }
  // Of a system call all rules do the same (any of them that holds): what two different ones mean,
  // the specification does not say.
  oci::Seccomp profile() {
    oci::Seccomp profile;
    profile.default_action = action();
    if (below(2) == 0) profile.default_errno_ret = 1 + below(100);
    for (const auto& syscall : kSyscalls) {
      if (below(3) == 0) continue;
      oci::SeccompRule rule;
      rule.names = {syscall.name};
      rule.action = action();
      if (below(2) == 0) rule.errno_ret = 1 + below(100);
      const auto rules = below(2) == 0 ? 1 : 1 + below(3);
      for (std::size_t i = 0; i < rules; ++i) {
        rule.args.clear();
        const auto comparisons = rules > 1 ? 1 + below(2) : below(3);
        for (unsigned index = 0; index < comparisons; ++index)
          rule.args.push_back(comparison(index));
        profile.syscalls.push_back(rule);
      }
    }
    return profile;
  }
  seccomp_data call() {
    seccomp_data call{};
    call.arch = kNative;
    call.nr = below(10) == 0 ? static_cast<int>(below(330)) : of(kSyscalls).number;
    for (auto& arg : call.args) arg = argument();
    return call;
  }

 private:
  std::mt19937 engine_;
};

TEST(SeccompFilter, AMillionRandomCalls) {
  constexpr unsigned kProfiles = 250;
  constexpr int kCalls = 4000;
  for (unsigned seed = 0; seed < kProfiles; ++seed) {
    Random random{seed};
    const auto profile = random.profile();
    auto filter = compile_seccomp(profile, "", Deadline::in(Millis{10'000}));
    ASSERT_TRUE(filter.ok()) << "seed " << seed << ": " << filter.error().message();
    for (int i = 0; i < kCalls; ++i) {
      const auto call = random.call();
      ASSERT_EQ(interpret(filter->instructions, call), evaluate(profile, call))
          << "seed " << seed << ": " << text_of(profile, call);
    }
  }
}

TEST(SeccompFilter, OtherArchitecturesDie) {
  oci::Seccomp profile;
  profile.default_action = "SCMP_ACT_ERRNO";
  profile.syscalls = {{{"read"}, "SCMP_ACT_ALLOW", {}, {}}};
  auto filter = compile_seccomp(profile, "", Deadline::in(Millis{10'000}));
  ASSERT_TRUE(filter.ok());
  seccomp_data call{};
  call.nr = 3;  // read of i386
  call.arch = AUDIT_ARCH_I386;
  EXPECT_EQ(interpret(filter->instructions, call), SECCOMP_RET_KILL_THREAD);
}

// REL-50
TEST(SeccompFilter, CallsThatAreNewerThanTheLibraryAreNotThere) {
  seccomp_data call{};
  call.arch = kNative;
  call.nr = 900;
  for (const auto& [action, wanted] :
       {std::pair{"SCMP_ACT_ERRNO", SECCOMP_RET_ERRNO | ENOSYS},
        std::pair{"SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS}}) {
    oci::Seccomp profile;
    profile.default_action = action;
    profile.syscalls = {{{"read"}, "SCMP_ACT_ALLOW", {}, {}}};
    auto filter = compile_seccomp(profile, "", Deadline::in(Millis{10'000}));
    ASSERT_TRUE(filter.ok());
    EXPECT_EQ(interpret(filter->instructions, call), wanted) << action;
  }
}

}  // namespace
}  // namespace wherry::container
