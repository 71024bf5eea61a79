#include <gtest/gtest.h>

#include <random>

#include "base/text.h"
#include "bpf/device_filter.h"
#include "tests/support/device_model.h"

namespace wherry::bpf {
namespace {

using test::model_allows;
using test::ModelRule;

oci::DeviceRule to_oci(const ModelRule& rule) {
  oci::DeviceRule out;
  out.allow = rule.allow;
  out.type = std::string(1, rule.type);
  if (rule.major >= 0) out.major = rule.major;
  if (rule.minor >= 0) out.minor = rule.minor;
  out.access = rule.access;
  return out;
}

std::vector<bpf_insn> compiled(const std::vector<ModelRule>& rules) {
  std::vector<oci::DeviceRule> list;
  for (const auto& rule : rules) list.push_back(to_oci(rule));
  auto program = compile_device_rules(list);
  EXPECT_TRUE(program.ok()) << program.error().message();
  return program.ok() ? *program : std::vector<bpf_insn>{};
}

bool program_allows(const std::vector<bpf_insn>& program, char type, std::int64_t major,
                    std::int64_t minor, const std::string& access) {
  DeviceAccess asked;
  asked.type = type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
  for (const char c : access)
    asked.access |= static_cast<std::uint32_t>(c == 'r'   ? BPF_DEVCG_ACC_READ
                                               : c == 'w' ? BPF_DEVCG_ACC_WRITE
                                                          : BPF_DEVCG_ACC_MKNOD);
  asked.major = static_cast<std::uint32_t>(major);
  asked.minor = static_cast<std::uint32_t>(minor);
  auto verdict = run_device_program(program, asked);
  EXPECT_TRUE(verdict.ok()) << verdict.error().message();
  return verdict.ok() && *verdict;
}

constexpr std::array<const char*, 7> kAccesses = {"r", "w", "m", "rw", "rm", "wm", "rwm"};

std::string to_text(const std::vector<ModelRule>& rules) {
  std::string out;
  for (const auto& rule : rules)
    out += cat(rule.allow ? "allow " : "deny ", rule.type, " ", rule.major, ":", rule.minor, " ",
               rule.access, "\n");
  return out;
}

TEST(DeviceRules, Table) {
  struct Case {
    std::vector<ModelRule> rules;
    char type;
    std::int64_t major, minor;
    const char* access;
    bool allowed;
  };
  const Case cases[] = {
      {{}, 'c', 1, 3, "r", false},
      {{{true, 'a', -1, -1, "rwm"}}, 'b', 8, 0, "rwm", true},
      {{{true, 'c', 1, 3, "rw"}}, 'c', 1, 3, "rw", true},
      {{{true, 'c', 1, 3, "rw"}}, 'c', 1, 3, "m", false},
      {{{true, 'c', 1, 3, "rw"}}, 'c', 1, 3, "rwm", false},
      {{{true, 'c', 1, 3, "rw"}}, 'b', 1, 3, "r", false},
      // The letters may come from two rules.
      {{{true, 'c', 1, 3, "r"}, {true, 'c', 1, 3, "w"}}, 'c', 1, 3, "rw", true},
      // Denying one letter denies what asks for it among others.
      {{{true, 'c', 1, -1, "rwm"}, {false, 'c', 1, 3, "w"}}, 'c', 1, 3, "rw", false},
      {{{true, 'c', 1, -1, "rwm"}, {false, 'c', 1, 3, "w"}}, 'c', 1, 3, "r", true},
      {{{true, 'c', 1, -1, "rwm"}, {false, 'c', 1, 3, "w"}}, 'c', 1, 4, "rw", true},
      // The last match decides, so all before a rule for everything is forgotten.
      {{{true, 'c', 1, 3, "rwm"}, {false, 'a', -1, -1, "rwm"}}, 'c', 1, 3, "r", false},
      {{{false, 'a', -1, -1, "rwm"}, {true, 'c', 1, 3, "rwm"}}, 'c', 1, 3, "rwm", true},
      {{{false, 'c', 1, 3, "rwm"}, {true, 'c', 1, 3, "r"}}, 'c', 1, 3, "rw", false},
      {{{true, 'c', -1, 3, "m"}}, 'c', 99, 3, "m", true},
      {{{true, 'c', 4294967295, 4294967295, "r"}}, 'c', 4294967295, 4294967295, "r", true},
      {{{true, 'c', 4294967295, 4294967295, "r"}}, 'c', 4294967295, 0, "r", false},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(to_text(one.rules));
    EXPECT_EQ(model_allows(one.rules, one.type, one.major, one.minor, one.access), one.allowed);
    EXPECT_EQ(program_allows(compiled(one.rules), one.type, one.major, one.minor, one.access),
              one.allowed);
  }
}

TEST(DeviceRules, RandomListsMeanWhatTheModelSays) {
  constexpr int kLists = 10000;
  constexpr std::int64_t kNumbers = 3;  // few, so that rules meet
  std::mt19937 random{20261130};
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  for (int list = 0; list < kLists; ++list) {
    std::vector<ModelRule> rules(static_cast<std::size_t>(below(12)));
    for (auto& rule : rules) {
      rule.allow = below(2) == 0;
      rule.type = "abc"[below(3)];
      rule.major = below(kNumbers + 1) - 1;
      rule.minor = below(kNumbers + 1) - 1;
      rule.access = kAccesses[static_cast<std::size_t>(below(7))];
    }
    const auto program = compiled(rules);
    for (const char type : {'b', 'c'})
      for (std::int64_t major = 0; major <= kNumbers; ++major)
        for (std::int64_t minor = 0; minor <= kNumbers; ++minor)
          for (const auto* access : kAccesses)
            ASSERT_EQ(program_allows(program, type, major, minor, access),
                      model_allows(rules, type, major, minor, access))
                << to_text(rules) << "asked: " << type << " " << major << ":" << minor << " "
                << access;
  }
}

TEST(DeviceRules, ManyRulesFitTheJumps) {
  std::vector<ModelRule> rules;
  for (int i = 0; i < 4096; ++i)
    rules.push_back({i % 2 == 0, i % 3 == 0 ? 'b' : 'c', i % 64, i, i % 5 == 0 ? "rwm" : "rw"});
  const auto program = compiled(rules);
  for (int i = 0; i < 4096; i += 7)
    for (const char type : {'b', 'c'})
      ASSERT_EQ(program_allows(program, type, i % 64, i, "rw"),
                model_allows(rules, type, i % 64, i, "rw"))
          << i;
}

TEST(DeviceRules, TheLongestProgram) {
  std::vector<ModelRule> rules{{true, 'b', 8, -1, "rwm"}};
  for (int i = 0; i < 4095; ++i) rules.push_back({true, 'c', i, i, "rw"});
  const auto program = compiled(rules);
  EXPECT_GT(program.size(), 32767U) << "longer than a jump can be";
  EXPECT_TRUE(program_allows(program, 'b', 8, 3, "rwm"));
  EXPECT_FALSE(program_allows(program, 'b', 9, 3, "r"));
  EXPECT_TRUE(program_allows(program, 'c', 4094, 4094, "rw"));
  EXPECT_FALSE(program_allows(program, 'c', 4094, 4093, "rw"));
}

TEST(DeviceRules, CasesAreBounded) {
  std::vector<oci::DeviceRule> rules;
  for (int i = 0; i < 2048; ++i) {
    rules.push_back(to_oci({true, 'c', i, -1, "rw"}));
    rules.push_back(to_oci({i % 2 == 0, 'c', -1, i, "rw"}));
  }
  auto program = compile_device_rules(rules);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code(), Code::kInvalid);
}

TEST(DeviceRules, ProgramsAreSmall) {
  EXPECT_EQ(compiled({}).size(), 2U);
  EXPECT_EQ(compiled({{true, 'a', -1, -1, "rwm"}}).size(), 2U);
  const ModelRule deny_all{false, 'a', -1, -1, "rwm"};
  // What comes before a rule for everything costs nothing, nor does a rule that is there twice.
  EXPECT_EQ(compiled({{true, 'c', 1, 3, "r"}, deny_all}).size(), 2U);
  const ModelRule null_device{true, 'c', 1, 3, "rwm"};
  EXPECT_EQ(compiled({deny_all, null_device, null_device}).size(), compiled({null_device}).size());
  // The devices of the runtime-spec, mknod of all, and the ptys.
  std::vector<ModelRule> usual{deny_all,
                               {true, 'c', -1, -1, "m"},
                               {true, 'b', -1, -1, "m"},
                               {true, 'c', 136, -1, "rwm"},
                               {true, 'c', 5, 2, "rwm"}};
  for (const int minor : {3, 5, 7, 8, 9}) usual.push_back({true, 'c', 1, minor, "rwm"});
  for (const int minor : {0, 1}) usual.push_back({true, 'c', 5, minor, "rwm"});
  EXPECT_LE(compiled(usual).size(), 48U);
}

TEST(DeviceRules, WrongOnesAreRefusedByIndex) {
  const auto message = [](const oci::DeviceRule& rule) {
    auto program = compile_device_rules({oci::DeviceRule{}, rule});
    EXPECT_FALSE(program.ok());
    return program.ok() ? "" : program.error().message();
  };
  oci::DeviceRule rule;
  rule.type = "p";
  EXPECT_EQ(message(rule), "linux.resources.devices[1].type: 'p' is not 'a', 'b' or 'c'");
  rule = {};
  rule.access = "rx";
  EXPECT_EQ(message(rule),
            "linux.resources.devices[1].access: 'rx' is not made of 'r', 'w' and 'm'");
  rule = {};
  rule.major = -2;
  EXPECT_EQ(message(rule), "linux.resources.devices[1].major: -2 is not a device number");
  rule = {};
  rule.minor = 1LL << 32;
  EXPECT_EQ(message(rule), "linux.resources.devices[1].minor: 4294967296 is not a device number");
  EXPECT_FALSE(compile_device_rules(std::vector<oci::DeviceRule>(4097)).ok());
}

TEST(Interpreter, RefusesWhatRulesNeverCompileTo) {
  bpf_insn call{};
  call.code = BPF_JMP | BPF_CALL;
  EXPECT_FALSE(run_device_program({call}, {}).ok());
  bpf_insn back{};
  back.code = BPF_JMP | BPF_JA;
  back.off = -1;
  EXPECT_FALSE(run_device_program({back}, {}).ok());
  bpf_insn set{};
  set.code = BPF_ALU64 | BPF_MOV | BPF_K;
  EXPECT_FALSE(run_device_program({set}, {}).ok()) << "runs over its end";
}

}  // namespace
}  // namespace wherry::bpf
