#include "runtime/container/explain.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace wherry::container {
namespace {

// A soft limit below this many units can stop what runs before the payload, or its exec.
struct Suspect {
  const char* rlimit;
  std::uint64_t enough;
  int err;  // what it makes a call fail with; 0: it kills
};
constexpr std::uint64_t kMib = 1U << 20;
constexpr std::array kSuspects = {Suspect{"RLIMIT_NOFILE", 64, EMFILE},
                                  Suspect{"RLIMIT_NPROC", ~0ULL, EAGAIN},
                                  Suspect{"RLIMIT_AS", 64 * kMib, ENOMEM},
                                  Suspect{"RLIMIT_DATA", 64 * kMib, ENOMEM},
                                  Suspect{"RLIMIT_STACK", kMib, ENOMEM},
                                  Suspect{"RLIMIT_STACK", kMib, E2BIG},
                                  Suspect{"RLIMIT_FSIZE", kMib, EFBIG},
                                  Suspect{"RLIMIT_SIGPENDING", 64, EAGAIN},
                                  Suspect{"RLIMIT_MEMLOCK", kMib, ENOMEM},
                                  Suspect{"RLIMIT_AS", 64 * kMib, 0},
                                  Suspect{"RLIMIT_DATA", 64 * kMib, 0},
                                  Suspect{"RLIMIT_STACK", kMib, 0},
                                  Suspect{"RLIMIT_CPU", 2, 0},
                                  Suspect{"RLIMIT_FSIZE", kMib, 0},
                                  Suspect{"RLIMIT_RTTIME", 1000000, 0}};

std::string memory_limit(const oci::Spec& spec) {
  if (!spec.linux_ || !spec.linux_->resources) return {};
  const auto& resources = *spec.linux_->resources;
  if (resources.memory && resources.memory->limit && *resources.memory->limit > 0)
    return cat("linux.resources.memory.limit = ", *resources.memory->limit, " bytes");
  if (const auto found = resources.unified.find("memory.max"); found != resources.unified.end())
    return cat("linux.resources.unified['memory.max'] = ", found->second);
  return {};
}

std::vector<std::string> suspects(const oci::Spec& spec, int err) {
  std::vector<std::string> out;
  for (const auto& suspect : kSuspects)
    for (const auto& limit : spec.process ? spec.process->rlimits : std::vector<oci::Rlimit>{})
      if (suspect.err == err && limit.type == suspect.rlimit && limit.soft < suspect.enough)
        out.push_back(cat("process.rlimits: ", limit.type, " = ", limit.soft));
  if (err == EAGAIN && spec.linux_ && spec.linux_->resources &&
      spec.linux_->resources->pids_limit.value_or(0) > 0)
    out.push_back(cat("linux.resources.pids.limit = ", *spec.linux_->resources->pids_limit));
  if (err == ENOMEM)
    if (auto limit = memory_limit(spec); !limit.empty()) out.push_back(std::move(limit));
  return out;
}

}  // namespace

Error explain_failed_start(Error error, const oci::Spec& spec, const cgroups::Place* place) {
  const bool without_a_word =
      error.sys_errno() == 0 && (error.code() == Code::kProtocol || error.code() == Code::kState);
  if (error.step() == "hooks" || (!without_a_word && error.sys_errno() == 0)) return error;
  if (without_a_word && place != nullptr) {
    const auto count = place->oom_count();
    if (count.ok() && count.value().kills > 0) {
      const auto limit = memory_limit(spec);
      return Error::make(Code::kSystem,
                         cat("its first process was killed for lack of memory (OOM) while it "
                             "started: ",
                             limit.empty() ? "a cgroup above it has a limit" : limit))
          .hint("a start needs about 512 KiB beside what the program itself needs");
    }
  }
  const auto found = suspects(spec, error.sys_errno());
  if (found.empty()) return error;
  return std::move(error).hint(cat("probably too small: ", join(found, ", ")));
}

}  // namespace wherry::container
