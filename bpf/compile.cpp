#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "base/text.h"
#include "bpf/device_filter.h"

namespace wherry::bpf {
namespace {

constexpr std::size_t kMostRules = 4096;
constexpr std::uint32_t kAllAccess = BPF_DEVCG_ACC_MKNOD | BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE;

// What the program keeps in registers.
constexpr std::uint8_t kVerdict = BPF_REG_0, kContext = BPF_REG_1, kType = BPF_REG_2,
                       kAccess = BPF_REG_3, kMajor = BPF_REG_4, kMinor = BPF_REG_5;

using Number = std::optional<std::uint32_t>;  // absent: any

// A device number or a set of them.
struct Devices {
  Number major, minor;
  auto operator<=>(const Devices&) const = default;
};

// What is left of a rule for one type of device, once the rules that come after it have decided.
struct Step {
  Devices devices;
  std::uint32_t access = 0;
  bool allow = false;
};

bool stands_for(const oci::DeviceRule& rule, char type) {
  return rule.type.empty() || rule.type == "a" || rule.type.front() == type;
}

std::uint32_t access_bits(std::string_view access) {
  std::uint32_t bits = 0;
  for (const char c : access)
    bits |= static_cast<std::uint32_t>(c == 'r'   ? BPF_DEVCG_ACC_READ
                                       : c == 'w' ? BPF_DEVCG_ACC_WRITE
                                                  : BPF_DEVCG_ACC_MKNOD);
  return access.empty() ? kAllAccess : bits;
}

// -1 is what many programs write for "any".
Number number(const std::optional<std::int64_t>& value) {
  if (!value || *value == -1) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

Result<> check(const oci::DeviceRule& rule, std::size_t index) {
  const auto bad = [&](std::string_view member, std::string_view what) {
    return Error::make(Code::kInvalid,
                       cat("linux.resources.devices[", index, "].", member, ": ", what));
  };
  if (!rule.type.empty() && rule.type != "a" && rule.type != "b" && rule.type != "c")
    return bad("type", cat(in_quotes(rule.type), " is not 'a', 'b' or 'c'"));
  if (rule.access.find_first_not_of("rwm") != std::string::npos)
    return bad("access", cat(in_quotes(rule.access), " is not made of 'r', 'w' and 'm'"));
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (rule.major && (*rule.major < -1 || *rule.major > kMost))
    return bad("major", cat(*rule.major, " is not a device number"));
  if (rule.minor && (*rule.minor < -1 || *rule.minor > kMost))
    return bad("minor", cat(*rule.minor, " is not a device number"));
  return {};
}

// The steps for one type, in the order in which the program takes them: the last rule first, since
// the last match decides. What later rules have decided already is left out.
std::vector<Step> steps_for(const std::vector<oci::DeviceRule>& rules, char type) {
  std::vector<Step> steps;
  std::map<Devices, std::uint32_t> decided;  // access bits by exact pattern
  std::map<Devices, std::size_t> run;        // steps of the present run of equal verdicts
  const auto bits_of = [&](const Devices& devices) {
    const auto found = decided.find(devices);
    return found == decided.end() ? 0 : found->second;
  };
  for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
    if (!stands_for(*rule, type)) continue;
    const Devices devices{number(rule->major), number(rule->minor)};
    const auto before = bits_of(devices) | bits_of({devices.major, {}}) |
                        bits_of({{}, devices.minor}) | bits_of({});
    const auto left = access_bits(rule->access) & ~before;
    if (left == 0) continue;
    decided[devices] |= left;
    if (!steps.empty() && steps.back().allow != rule->allow) run.clear();
    // Steps of one verdict may change places, so equal patterns in a run become one.
    if (const auto same = run.find(devices); same != run.end()) {
      steps[same->second].access |= left;
    } else {
      run[devices] = steps.size();
      steps.push_back({devices, left, rule->allow});
    }
    if (bits_of({}) == kAllAccess) break;
  }
  while (!steps.empty() && !steps.back().allow) steps.pop_back();  // the end denies anyhow
  return steps;
}

// Instructions, and jumps to places that are not known yet.
class Code32 {
 public:
  std::size_t size() const { return list_.size(); }
  void load(std::uint8_t to, std::size_t offset) {
    put(BPF_LDX | BPF_MEM | BPF_W, to, kContext, static_cast<std::int16_t>(offset), 0);
  }
  void copy(std::uint8_t to, std::uint8_t from) { put(BPF_ALU | BPF_MOV | BPF_X, to, from, 0, 0); }
  void alu(std::uint8_t operation, std::uint8_t to, std::uint32_t value) {
    put(static_cast<std::uint8_t>(BPF_ALU | operation | BPF_K), to, 0, 0, value);
  }
  // 32-bit comparison with a jump over the instructions up to land(); its index.
  std::size_t jump_if(std::uint8_t operation, std::uint8_t left, std::uint32_t right) {
    put(static_cast<std::uint8_t>(BPF_JMP32 | operation | BPF_K), left, 0, 0, right);
    return list_.size() - 1;
  }
  std::size_t jump() {
    put(BPF_JMP | BPF_JA, 0, 0, 0, 0);
    return list_.size() - 1;
  }
  // The jump at `from` goes to what comes next.
  void land(std::size_t from) {
    const auto distance = list_.size() - from - 1;
    CHECK(distance <= std::numeric_limits<std::int16_t>::max(), "4,096 rules fit a 16-bit jump");
    list_[from].off = static_cast<std::int16_t>(distance);
  }
  void exit_with(bool allow) {
    put(BPF_ALU64 | BPF_MOV | BPF_K, kVerdict, 0, 0, allow ? 1 : 0);
    put(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
  }
  std::vector<bpf_insn> take() && { return std::move(list_); }

 private:
  void put(std::uint8_t code, std::uint8_t to, std::uint8_t from, std::int16_t offset,
           std::uint32_t value) {
    bpf_insn insn{};
    insn.code = code;
    insn.dst_reg = to & 0xfU;
    insn.src_reg = from & 0xfU;
    insn.off = offset;
    insn.imm = static_cast<std::int32_t>(value);
    list_.push_back(insn);
  }
  std::vector<bpf_insn> list_;
};

// The device matches: bits that are allowed are asked for no longer, one that is denied ends it.
void emit_verdict(const Step& step, Code32& code) {
  if (step.access == kAllAccess) return code.exit_with(step.allow);
  if (step.allow) {
    code.alu(BPF_AND, kAccess, ~step.access);
    const auto more = code.jump_if(BPF_JNE, kAccess, 0);
    code.exit_with(true);
    return code.land(more);
  }
  const auto denied = code.jump_if(BPF_JSET, kAccess, step.access);
  const auto over = code.jump();
  code.land(denied);
  code.exit_with(false);
  code.land(over);
}

// Steps of one verdict and one major number.
void emit_group(const std::vector<Step>& group, Code32& code) {
  std::optional<std::size_t> other_major;
  if (group.front().devices.major)
    other_major = code.jump_if(BPF_JNE, kMajor, *group.front().devices.major);
  std::vector<std::size_t> whole;  // minors with all access: they share one exit
  for (const auto& step : group)
    if (step.devices.minor && step.access == kAllAccess)
      whole.push_back(code.jump_if(BPF_JEQ, kMinor, *step.devices.minor));
  if (!whole.empty()) {
    const auto none = code.jump();
    for (const auto from : whole) code.land(from);
    code.exit_with(group.front().allow);
    code.land(none);
  }
  for (const auto& step : group) {
    if (!step.devices.minor) {
      emit_verdict(step, code);
    } else if (step.access != kAllAccess) {
      const auto other_minor = code.jump_if(BPF_JNE, kMinor, *step.devices.minor);
      emit_verdict(step, code);
      code.land(other_minor);
    }
  }
  if (other_major) code.land(*other_major);
}

void emit_steps(const std::vector<Step>& steps, Code32& code) {
  for (auto begin = steps.begin(); begin != steps.end();) {
    const auto end = std::find_if(begin, steps.end(),
                                  [&](const Step& step) { return step.allow != begin->allow; });
    std::map<Number, std::vector<Step>> groups;
    for (auto step = begin; step != end; ++step) groups[step->devices.major].push_back(*step);
    for (const auto& [major, group] : groups) emit_group(group, code);
    begin = end;
  }
  code.exit_with(false);
}

bool equal(const std::vector<Step>& a, const std::vector<Step>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Step& x, const Step& y) {
    return x.devices == y.devices && x.access == y.access && x.allow == y.allow;
  });
}

bool is_constant(const std::vector<Step>& steps) {
  return steps.empty() ||
         (steps.front().devices == Devices{} && steps.front().access == kAllAccess);
}

}  // namespace

Result<std::vector<bpf_insn>> compile_device_rules(const std::vector<oci::DeviceRule>& rules) {
  if (rules.size() > kMostRules)
    return Error::make(Code::kInvalid, cat("linux.resources.devices: ", rules.size(),
                                           " rules; at most ", kMostRules, " are taken"));
  for (std::size_t i = 0; i < rules.size(); ++i) TRY(check(rules[i], i));
  const auto character = steps_for(rules, 'c');
  const auto block = steps_for(rules, 'b');
  Code32 code;
  if (equal(character, block) && is_constant(character)) {
    code.exit_with(!character.empty());
    return std::move(code).take();
  }
  // access_type is (access << 16) | type.
  code.load(kType, offsetof(bpf_cgroup_dev_ctx, access_type));
  code.copy(kAccess, kType);
  code.alu(BPF_RSH, kAccess, 16);
  code.load(kMajor, offsetof(bpf_cgroup_dev_ctx, major));
  code.load(kMinor, offsetof(bpf_cgroup_dev_ctx, minor));
  if (equal(character, block)) {
    emit_steps(character, code);
    return std::move(code).take();
  }
  code.alu(BPF_AND, kType, 0xffff);
  const auto not_character = code.jump_if(BPF_JNE, kType, BPF_DEVCG_DEV_CHAR);
  emit_steps(character, code);
  code.land(not_character);
  emit_steps(block, code);
  return std::move(code).take();
}

}  // namespace wherry::bpf
