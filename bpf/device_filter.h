// Device rules -> an eBPF program of type BPF_PROG_TYPE_CGROUP_DEVICE, its attachment to a cgroup,
// and its reading. Knows no cgroup path: it takes a descriptor.
#pragma once
#include <linux/bpf.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "oci/spec.h"

namespace wherry::bpf {

// Pure. OCI semantics (config-linux.md, "Allowed Device list"), for each of the letters r, w and m
// by itself: the last rule that matches the device and has the letter decides, and without one it
// is denied; an access of several letters is allowed when each is. So "deny w" after "allow rwm"
// refuses O_RDWR too. Type "a" or none stands for both types; an absent number or -1 for any, an
// absent access for "rwm". At most 4,096 rules; kInvalid names the rule by its index.
Result<std::vector<bpf_insn>> compile_device_rules(const std::vector<oci::DeviceRule>& rules);

// One access asked of the program: what the kernel hands it in struct bpf_cgroup_dev_ctx.
struct DeviceAccess {
  std::uint32_t type = 0;    // BPF_DEVCG_DEV_BLOCK or _CHAR
  std::uint32_t access = 0;  // BPF_DEVCG_ACC_* bits
  std::uint32_t major = 0, minor = 0;
};
// A userspace interpreter for the programs that compile_device_rules makes: 1 allowed, 0 denied.
// kInvalid for an instruction that it does not know.
Result<bool> run_device_program(const std::vector<bpf_insn>& program, const DeviceAccess& access);

// Loads the program and attaches it to the cgroup. When one of ours is there, it is replaced in one
// step (BPF_F_REPLACE, Linux 5.6), so that there is exactly one at any time; on failure the old one
// stays. Works without raising RLIMIT_MEMLOCK (Linux 5.11 charges the cgroup).
Result<> attach_device_filter(int cgroup_fd, const std::vector<bpf_insn>& program);

struct AttachedProgram {
  std::uint32_t id = 0;
  std::string name;  // ours is "wherry_devices"
  std::vector<bpf_insn>
      instructions;  // as the kernel has them (translated); empty when it does not show them
};
Result<std::vector<AttachedProgram>> query_device_filters(int cgroup_fd);
// The ids of all programs of ours that the kernel holds, attached or not. kDenied without
// CAP_SYS_ADMIN.
Result<std::vector<std::uint32_t>> loaded_device_filters();

}  // namespace wherry::bpf
