#include <bpf/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include "base/text.h"
#include "bpf/device_filter.h"

namespace wherry::bpf {
namespace {

constexpr std::string_view kName = "wherry_devices";
static_assert(kName.size() < BPF_OBJ_NAME_LEN);
constexpr std::size_t kMostPrograms = 64;  // BPF_CGROUP_MAX_PROGS

// libbpf 1.x answers -errno.
Error failed(std::string_view call, int result) {
  return Error::sys(call, "", -result);
}

struct Loaded {
  std::uint32_t id = 0;
  UniqueFd program;
  std::string name;
};

// The programs on this cgroup itself, in order of attachment. One that goes away in between is
// left out.
Result<std::vector<Loaded>> attached_to(int cgroup_fd) {
  std::uint32_t ids[kMostPrograms];
  std::uint32_t count = kMostPrograms;
  const int queried =
      bpf_prog_query(cgroup_fd, BPF_CGROUP_DEVICE, 0, nullptr, std::begin(ids), &count);
  if (queried < 0) return failed("bpf(BPF_PROG_QUERY)", queried);
  std::vector<Loaded> list;
  for (std::uint32_t i = 0; i < count; ++i) {
    UniqueFd program{bpf_prog_get_fd_by_id(ids[i])};
    if (!program && errno == ENOENT) continue;
    if (!program) return Error::sys("bpf(BPF_PROG_GET_FD_BY_ID)", cat(ids[i]));
    bpf_prog_info info{};
    std::uint32_t size = sizeof info;
    const int got = bpf_obj_get_info_by_fd(program.get(), &info, &size);
    if (got < 0) return failed("bpf(BPF_OBJ_GET_INFO_BY_FD)", got);
    list.push_back({ids[i], std::move(program), info.name});
  }
  return list;
}

// The call itself and not bpf_prog_load(3): that one loads two probe programs of its own first, in
// each process anew (does the kernel know program names, does it charge memory to the cgroup),
// which costs as much again as all the rest (measured: 0.3 ms). Both are older than what we need
// anyhow, Linux 4.15 and 5.11; and so nothing here raises RLIMIT_MEMLOCK, which takes
// CAP_SYS_RESOURCE.
Result<UniqueFd> load(const std::vector<bpf_insn>& program) {
  constexpr std::string_view kLicense = "Apache-2.0";
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insns = reinterpret_cast<std::uintptr_t>(program.data());
  attributes.insn_cnt = static_cast<std::uint32_t>(program.size());
  attributes.license = reinterpret_cast<std::uintptr_t>(kLicense.data());
  kName.copy(attributes.prog_name, kName.size());
  constexpr int kMostTries = 5;  // EAGAIN: a signal came while the verifier was at work
  for (int tries = 1;; ++tries) {
    const long fd = ::syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes);
    if (fd >= 0) return UniqueFd{static_cast<int>(fd)};  // close-on-exec always
    if ((errno != EAGAIN && errno != EINTR) || tries == kMostTries)
      return Error::sys(cat("bpf(BPF_PROG_LOAD) of ", program.size(), " instructions"));
  }
}

// The instructions as the verifier left them; none where this is not permitted.
Result<std::vector<bpf_insn>> translated(int program) {
  bpf_prog_info info{};
  std::uint32_t size = sizeof info;
  int got = bpf_obj_get_info_by_fd(program, &info, &size);
  if (got < 0) return failed("bpf(BPF_OBJ_GET_INFO_BY_FD)", got);
  std::vector<bpf_insn> list(info.xlated_prog_len / sizeof(bpf_insn));
  if (list.empty()) return list;
  info = {};
  info.xlated_prog_len = static_cast<std::uint32_t>(list.size() * sizeof(bpf_insn));
  info.xlated_prog_insns = reinterpret_cast<std::uintptr_t>(list.data());
  size = sizeof info;
  got = bpf_obj_get_info_by_fd(program, &info, &size);
  if (got < 0) return failed("bpf(BPF_OBJ_GET_INFO_BY_FD)", got);
  // The kernel clears the address when it does not show them (bpf_jit_harden, no CAP_BPF).
  if (info.xlated_prog_insns == 0) return std::vector<bpf_insn>{};
  list.resize(info.xlated_prog_len / sizeof(bpf_insn));
  return list;
}

}  // namespace

Result<> attach_device_filter(int cgroup_fd, const std::vector<bpf_insn>& program) {
  constexpr std::string_view kWhat = "attach device filter";
  const auto present = TRY_CTX(attached_to(cgroup_fd), kWhat);
  const auto loaded = TRY_CTX(load(program), kWhat);
  const Loaded* ours = nullptr;
  for (const auto& one : present)
    if (one.name == kName) ours = &one;
  struct bpf_prog_attach_opts options {};
  options.sz = sizeof options;
  options.flags = BPF_F_ALLOW_MULTI;
  if (ours != nullptr) {
    options.flags |= BPF_F_REPLACE;
    options.replace_prog_fd = ours->program.get();
  }
  const int attached = bpf_prog_attach_opts(loaded.get(), cgroup_fd, BPF_CGROUP_DEVICE, &options);
  if (attached < 0) return failed("bpf(BPF_PROG_ATTACH)", attached).context(kWhat);
  return {};
}

Result<std::vector<AttachedProgram>> query_device_filters(int cgroup_fd) {
  std::vector<AttachedProgram> list;
  for (const auto& one : TRY_CTX(attached_to(cgroup_fd), "list device filters")) {
    auto instructions = TRY(translated(one.program.get()));
    list.push_back({one.id, one.name, std::move(instructions)});
  }
  return list;
}

Result<std::vector<std::uint32_t>> loaded_device_filters() {
  std::vector<std::uint32_t> ids;
  std::uint32_t id = 0;
  while (true) {
    const int next = bpf_prog_get_next_id(id, &id);
    if (next == -ENOENT) return ids;
    if (next < 0) return failed("bpf(BPF_PROG_GET_NEXT_ID)", next);
    const UniqueFd program{bpf_prog_get_fd_by_id(id)};
    if (!program) continue;  // it went away in between
    bpf_prog_info info{};
    std::uint32_t size = sizeof info;
    if (bpf_obj_get_info_by_fd(program.get(), &info, &size) == 0 && info.name == kName)
      ids.push_back(id);
  }
}

}  // namespace wherry::bpf
