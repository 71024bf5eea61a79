// Properties of the process that is to become the payload, set one by one before the gate.
#pragma once
#include "base/fd.h"
#include "base/result.h"
#include "runtime/init/plan.h"
#include "runtime/init/sync.h"

namespace wherry::init {

// Before anything is joined: of the creator's descriptors only those that the plan names stay open
// (SEC-02).
Result<> keep_only_planned(const Plan& plan, int channel);
Result<> make_dirs(int root, const std::string& path);
Result<> new_session();                // setsid, signal mask and dispositions as at boot
Result<> set_names(const Plan& plan);  // hostname and domainname
Result<> bring_up_loopback();          // in a new network namespace
Result<> set_sysctls(
    const Plan& plan);  // through a procfs of our own that nothing is mounted on (CVE-2025-52881)
Result<> set_limits(const Plan& plan);  // rlimits and oom_score_adj
Result<> new_keyring(const Plan& plan);
// Resolved without magic links, and checked to be inside the root afterwards (CVE-2024-21626).
Result<> enter_working_directory(const std::string& cwd);
// The exec's terminal, from the devpts that the container has on /dev/pts.
Result<UniqueFd> open_exec_terminal(const Plan& plan, const Channel& channel);
// 0, 1, 2 and the preserved ones; then nothing but the channel, the gate and the result are left
// open.
Result<> arrange_descriptors(Plan& plan, int channel, const UniqueFd& terminal);

}  // namespace wherry::init
