#include <array>
#include <cstddef>
#include <optional>

#include "base/text.h"
#include "bpf/device_filter.h"

namespace wherry::bpf {
namespace {

struct Machine {
  std::array<std::uint64_t, MAX_BPF_REG> registers{};
};

Error unknown(std::size_t at, const bpf_insn& insn) {
  return Error::make(Code::kInvalid, cat("device program: instruction ", at,
                                         " is not one that device rules compile to (code ",
                                         unsigned{insn.code}, ")"));
}

Result<std::uint32_t> load(const bpf_insn& insn, std::size_t at, const DeviceAccess& access) {
  if (insn.src_reg != BPF_REG_1) return unknown(at, insn);
  switch (insn.off) {
    case offsetof(bpf_cgroup_dev_ctx, access_type):
      return (access.access << 16) | access.type;
    case offsetof(bpf_cgroup_dev_ctx, major):
      return access.major;
    case offsetof(bpf_cgroup_dev_ctx, minor):
      return access.minor;
    default:
      return unknown(at, insn);
  }
}

// 32-bit arithmetic clears the upper half of the register.
Result<> calculate(Machine& machine, const bpf_insn& insn, std::size_t at) {
  auto& to = machine.registers[insn.dst_reg];
  const auto operand = static_cast<std::uint32_t>(BPF_SRC(insn.code) == BPF_X
                                                      ? machine.registers[insn.src_reg]
                                                      : static_cast<std::uint32_t>(insn.imm));
  const auto left = static_cast<std::uint32_t>(to);
  switch (BPF_OP(insn.code)) {
    case BPF_MOV:
      to = operand;
      return {};
    case BPF_AND:
      to = left & operand;
      return {};
    case BPF_RSH:
      to = left >> (operand & 31U);
      return {};
    default:
      return unknown(at, insn);
  }
}

Result<bool> jumps(const Machine& machine, const bpf_insn& insn, std::size_t at) {
  const auto left = static_cast<std::uint32_t>(machine.registers[insn.dst_reg]);
  const auto right = static_cast<std::uint32_t>(insn.imm);
  if (BPF_SRC(insn.code) != BPF_K) return unknown(at, insn);
  switch (BPF_OP(insn.code)) {
    case BPF_JEQ:
      return left == right;
    case BPF_JNE:
      return left != right;
    case BPF_JSET:
      return (left & right) != 0;
    default:
      return unknown(at, insn);
  }
}

}  // namespace

Result<bool> run_device_program(const std::vector<bpf_insn>& program, const DeviceAccess& access) {
  Machine machine;
  // Only forward jumps are taken, so the loop ends.
  for (std::size_t at = 0; at < program.size(); ++at) {
    const auto& insn = program[at];
    if (insn.dst_reg >= MAX_BPF_REG || insn.src_reg >= MAX_BPF_REG) return unknown(at, insn);
    const auto jump_by = insn.off < 0 ? 0U : static_cast<std::size_t>(insn.off);
    switch (BPF_CLASS(insn.code)) {
      case BPF_LDX:
        if (BPF_MODE(insn.code) != BPF_MEM || BPF_SIZE(insn.code) != BPF_W)
          return unknown(at, insn);
        machine.registers[insn.dst_reg] = TRY(load(insn, at, access));
        break;
      case BPF_ALU:
        TRY(calculate(machine, insn, at));
        break;
      case BPF_ALU64:  // the verdict
        if (insn.code != (BPF_ALU64 | BPF_MOV | BPF_K) || insn.imm < 0) return unknown(at, insn);
        machine.registers[insn.dst_reg] = static_cast<std::uint64_t>(insn.imm);
        break;
      case BPF_JMP32:
        if (insn.off < 0) return unknown(at, insn);
        if (TRY(jumps(machine, insn, at))) at += jump_by;
        break;
      case BPF_JMP:
        if (insn.code == (BPF_JMP | BPF_EXIT)) return machine.registers[BPF_REG_0] != 0;
        if (insn.code != (BPF_JMP | BPF_JA) || insn.off < 0) return unknown(at, insn);
        at += jump_by;
        break;
      default:
        return unknown(at, insn);
    }
  }
  return Error::make(Code::kInvalid, "device program: runs over its end");
}

}  // namespace wherry::bpf
