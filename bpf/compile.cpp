#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "bpf/device_filter.h"

namespace wherry::bpf {
namespace {

constexpr std::size_t kMostRules = 4096;
constexpr std::size_t kMostCases = 8192;  // of one type: bounds time here, and the longest jump
constexpr std::uint32_t kAllAccess = BPF_DEVCG_ACC_MKNOD | BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE;

// What the program keeps in registers.
constexpr std::uint8_t kVerdict = BPF_REG_0, kContext = BPF_REG_1, kType = BPF_REG_2,
                       kAccess = BPF_REG_3, kMajor = BPF_REG_4, kMinor = BPF_REG_5;

using Number = std::optional<std::uint32_t>;  // absent: any

// A rule as it applies to one type of device.
struct Rule {
  Number major, minor;
  std::uint32_t access = 0;
  bool allow = false;
};

// What may be done with the devices of one major number.
struct Minors {
  std::map<std::uint32_t, std::uint32_t> named;  // minor -> access bits that are allowed
  std::uint32_t others = 0;                      // with all other minors
  bool operator==(const Minors&) const = default;
};
// The same for all devices of one type. Nothing in it overlaps, so order no longer matters and
// every path through the program ends with its first match: the verifier follows each only once.
struct Table {
  std::map<std::uint32_t, Minors> named;
  Minors others;
  bool operator==(const Table&) const = default;
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

std::vector<Rule> rules_for(const std::vector<oci::DeviceRule>& rules, char type) {
  std::vector<Rule> list;
  for (const auto& rule : rules)
    if (stands_for(rule, type))
      list.push_back(
          {number(rule.major), number(rule.minor), access_bits(rule.access), rule.allow});
  return list;
}

// Each access bit as the last rule says that matches the device and has the bit. An absent number
// is one that no rule names.
std::uint32_t allowed(const std::vector<Rule>& rules, Number major, Number minor) {
  std::uint32_t decided = 0, result = 0;
  for (auto rule = rules.rbegin(); rule != rules.rend() && decided != kAllAccess; ++rule) {
    if ((rule->major && rule->major != major) || (rule->minor && rule->minor != minor)) continue;
    if (rule->allow) result |= rule->access & ~decided;
    decided |= rule->access;
  }
  return result;
}

Minors minors_of(const std::vector<Rule>& rules, Number major,
                 const std::set<std::uint32_t>& names) {
  Minors minors;
  minors.others = allowed(rules, major, std::nullopt);
  for (const auto minor : names)
    if (const auto access = allowed(rules, major, minor); access != minors.others)
      minors.named[minor] = access;
  return minors;
}

// nullopt: too many different cases.
std::optional<Table> table_for(const std::vector<Rule>& rules) {
  std::map<std::uint32_t, std::set<std::uint32_t>> named;
  std::set<std::uint32_t> of_any_major;
  for (const auto& rule : rules) {
    if (!rule.major && rule.minor) of_any_major.insert(*rule.minor);
    if (rule.major) named[*rule.major];
    if (rule.major && rule.minor) named[*rule.major].insert(*rule.minor);
  }
  std::size_t cases = of_any_major.size();
  for (const auto& [major, minors] : named) cases += 1 + minors.size() + of_any_major.size();
  if (cases > kMostCases) return std::nullopt;
  Table table;
  table.others = minors_of(rules, std::nullopt, of_any_major);
  for (auto& [major, minors] : named) {
    minors.insert(of_any_major.begin(), of_any_major.end());
    if (auto own = minors_of(rules, major, minors); own != table.others)
      table.named[major] = std::move(own);
  }
  return table;
}

// Instructions, and jumps to places that are not known yet.
class Program {
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
    CHECK(distance <= std::numeric_limits<std::int16_t>::max(), "kMostCases fit a 16-bit jump");
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

// The end of a path: is all that is asked for among what is allowed?
void emit_verdict(std::uint32_t allowed_bits, Program& code) {
  if (allowed_bits == kAllAccess || allowed_bits == 0) return code.exit_with(allowed_bits != 0);
  code.alu(BPF_AND, kAccess, ~allowed_bits);
  const auto more = code.jump_if(BPF_JNE, kAccess, 0);
  code.exit_with(true);
  code.land(more);
  code.exit_with(false);
}

void emit_minors(const Minors& minors, Program& code) {
  std::map<std::uint32_t, std::vector<std::size_t>> jumps;  // by verdict, so that each stands once
  for (const auto& [minor, access] : minors.named)
    jumps[access].push_back(code.jump_if(BPF_JEQ, kMinor, minor));
  emit_verdict(minors.others, code);
  for (const auto& [access, from] : jumps) {
    for (const auto jump : from) code.land(jump);
    emit_verdict(access, code);
  }
}

// `way_past`: a jump to what comes after the table. Where the table is longer than a jump can be,
// it is made of several.
void emit_table(const Table& table, std::optional<std::size_t> way_past, Program& code) {
  constexpr std::size_t kFar = 16000;  // and the longest part below is shorter than the rest
  for (const auto& [major, minors] : table.named) {
    if (way_past && code.size() - *way_past > kFar) {
      const auto over = code.jump();
      code.land(*way_past);
      way_past = code.jump();
      code.land(over);
    }
    const auto other = code.jump_if(BPF_JNE, kMajor, major);
    emit_minors(minors, code);
    code.land(other);
  }
  emit_minors(table.others, code);
  if (way_past) code.land(*way_past);
}

bool is_constant(const Table& table) {
  return table.named.empty() && table.others.named.empty() &&
         (table.others.others == 0 || table.others.others == kAllAccess);
}

}  // namespace

Result<std::vector<bpf_insn>> compile_device_rules(const std::vector<oci::DeviceRule>& rules) {
  if (rules.size() > kMostRules)
    return Error::make(Code::kInvalid, cat("linux.resources.devices: ", rules.size(),
                                           " rules; at most ", kMostRules, " are taken"));
  for (std::size_t i = 0; i < rules.size(); ++i) TRY(check(rules[i], i));
  const auto character = table_for(rules_for(rules, 'c'));
  const auto block = table_for(rules_for(rules, 'b'));
  if (!character || !block)
    return Error::make(Code::kInvalid, cat("linux.resources.devices: rules for minors of any major "
                                           "and rules for majors make more than ",
                                           kMostCases, " cases together"));
  Program code;
  if (*character == *block && is_constant(*character)) {
    code.exit_with(character->others.others != 0);
    return std::move(code).take();
  }
  // access_type is (access << 16) | type.
  code.load(kType, offsetof(bpf_cgroup_dev_ctx, access_type));
  code.copy(kAccess, kType);
  code.alu(BPF_RSH, kAccess, 16);
  code.load(kMajor, offsetof(bpf_cgroup_dev_ctx, major));
  code.load(kMinor, offsetof(bpf_cgroup_dev_ctx, minor));
  if (*character != *block) {
    code.alu(BPF_AND, kType, 0xffff);
    emit_table(*character, code.jump_if(BPF_JNE, kType, BPF_DEVCG_DEV_CHAR), code);
  }
  emit_table(*block, std::nullopt, code);
  return std::move(code).take();
}

}  // namespace wherry::bpf
