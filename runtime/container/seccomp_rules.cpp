#include "runtime/container/seccomp_rules.h"

#include <linux/seccomp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>

#include "base/text.h"

namespace wherry::container {
namespace {

using Code = std::vector<sock_filter>;
using Rules = std::vector<const oci::SeccompRule*>;

std::uint32_t high(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}
std::uint32_t low(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
sock_filter jump(unsigned test, std::uint32_t k, std::uint8_t yes, std::uint8_t no) {
  return BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | BPF_K | test), k, yes, no);
}

// The comparisons of one rule: each falls through when it holds and goes to the end of the rule
// when it does not.
class Comparisons {
 public:
  Result<> add(const oci::SeccompArg& arg) {
    // Both supported machines are little-endian.
    const std::size_t at = offsetof(seccomp_data, args) + arg.index * sizeof(std::uint64_t);
    load_ = {load(at), load(at + sizeof(std::uint32_t))};
    const auto value = arg.value;
    if (arg.op == "SCMP_CMP_EQ") return equal(~0ULL, value);
    if (arg.op == "SCMP_CMP_MASKED_EQ") return equal(value, value & arg.value_two);
    if (arg.op == "SCMP_CMP_NE") return differs(value);
    if (arg.op == "SCMP_CMP_GT") return above(value, BPF_JGT);
    if (arg.op == "SCMP_CMP_GE") return above(value, BPF_JGE);
    if (arg.op == "SCMP_CMP_LT") return below(value, BPF_JGE);
    if (arg.op == "SCMP_CMP_LE") return below(value, BPF_JGT);
    return Error::make(wherry::Code::kInvalid,
                       cat("seccomp operator ", in_quotes(arg.op), " is unknown"));
  }
  Code finish(std::uint32_t action) && {
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, action));
    for (const auto& [at, on_yes] : to_end_) {
      const auto distance = static_cast<std::uint8_t>(code_.size() - at - 1);
      (on_yes ? code_[at].jt : code_[at].jf) = distance;
    }
    return std::move(code_);
  }

 private:
  Result<> equal(std::uint64_t mask, std::uint64_t value) {
    for (const bool upper : {true, false}) {
      const auto part = upper ? high(mask) : low(mask);
      code_.push_back(load_[upper ? 1 : 0]);
      if (part != ~0U) code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, part));
      fail_unless(jump(BPF_JEQ, upper ? high(value) : low(value), 0, 0));
    }
    return {};
  }
  Result<> differs(std::uint64_t value) {
    code_.push_back(load_[1]);
    code_.push_back(jump(BPF_JEQ, high(value), 0, 2));  // the upper halves differ: it holds
    code_.push_back(load_[0]);
    fail_if(jump(BPF_JEQ, low(value), 0, 0));
    return {};
  }
  Result<> above(std::uint64_t value, unsigned test) {
    code_.push_back(load_[1]);
    code_.push_back(jump(BPF_JGT, high(value), 3, 0));
    fail_unless(jump(BPF_JEQ, high(value), 0, 0));
    code_.push_back(load_[0]);
    fail_unless(jump(test, low(value), 0, 0));
    return {};
  }
  Result<> below(std::uint64_t value, unsigned not_test) {
    code_.push_back(load_[1]);
    fail_if(jump(BPF_JGT, high(value), 0, 0));
    code_.push_back(jump(BPF_JEQ, high(value), 0, 2));
    code_.push_back(load_[0]);
    fail_if(jump(not_test, low(value), 0, 0));
    return {};
  }
  void fail_if(sock_filter test) {
    to_end_.emplace_back(code_.size(), true);
    code_.push_back(test);
  }
  void fail_unless(sock_filter test) {
    to_end_.emplace_back(code_.size(), false);
    code_.push_back(test);
  }

  std::array<sock_filter, 2> load_{};  // lower half, upper half
  Code code_;
  std::vector<std::pair<std::size_t, bool>> to_end_;
};

bool needs_own_code(const Rules& rules) {
  return rules.size() > 1 && std::any_of(rules.begin(), rules.end(), [](const auto* rule) {
           return std::any_of(rule->args.begin(), rule->args.end(), [](const auto& arg) {
             return arg.op != "SCMP_CMP_EQ" && arg.op != "SCMP_CMP_MASKED_EQ";
           });
         });
}

std::map<std::string, Rules> rules_by_name(const oci::Seccomp& profile) {
  std::map<std::string, Rules> all;
  for (const auto& rule : profile.syscalls)
    for (const auto& name : rule.names) all[name].push_back(&rule);
  std::erase_if(all, [](const auto& entry) { return !needs_own_code(entry.second); });
  return all;
}

Result<Code> compile_rules(const Rules& rules, std::uint32_t default_action,
                           const ActionOf& action_of) {
  Code code;
  for (const auto* rule : rules) {
    Comparisons comparisons;
    for (const auto& arg : rule->args) TRY(comparisons.add(arg));
    const auto part = std::move(comparisons).finish(TRY(action_of(*rule)));
    code.insert(code.end(), part.begin(), part.end());
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, default_action));
  return code;
}

// `body` behind a test for `value` of what is loaded, of any length.
void append_if_equal(Code& code, std::uint32_t value, const Code& body) {
  code.push_back(jump(BPF_JEQ, value, 1, 0));
  code.push_back(BPF_STMT(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(body.size())));
  code.insert(code.end(), body.begin(), body.end());
}

}  // namespace

Result<OwnRules> compile_own_rules(const oci::Seccomp& profile,
                                   const std::vector<RuleTarget>& targets,
                                   std::uint32_t default_action, const ActionOf& action_of) {
  OwnRules own;
  const auto all = rules_by_name(profile);
  for (const auto& entry : all)
    if (std::all_of(targets.begin(), targets.end(),
                    [&](const auto& target) { return target.number_of(entry.first) >= -1; }))
      own.covered.insert(entry.first);
  for (const auto& target : targets) {
    Code calls;
    for (const auto& [name, rules] : all) {
      const int number = target.number_of(name);
      if (number < 0) continue;
      append_if_equal(calls, static_cast<std::uint32_t>(number),
                      TRY(compile_rules(rules, default_action, action_of)));
    }
    if (calls.empty()) continue;
    calls.insert(calls.begin(), load(offsetof(seccomp_data, nr)));
    own.code.push_back(load(offsetof(seccomp_data, arch)));
    append_if_equal(own.code, target.audit_arch, calls);
  }
  return own;
}

}  // namespace wherry::container
