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
// Pipes of the caller's belong to the payload's user from now on, so that /dev/stdout can be opened
// again. Files and devices are shared with others and stay as they are (runc #3707). With a user
// namespace it is the creator's to do, in ids of the host.
void give_pipes(const std::array<int, 3>& stdio, uid_t uid);
Result<> make_dirs(int root, const std::string& path);
Result<> new_session();                // setsid, signal mask and dispositions as at boot
Result<> set_names(const Plan& plan);  // hostname and domainname
Result<> bring_up_loopback();          // in a new network namespace
// A procfs that nothing is mounted on (CVE-2025-52881), when the plan writes to one: opened before
// the container's mounts, since in a user namespace the masks over /proc forbid another one.
Result<UniqueFd> open_procfs(const Plan& plan);
Result<> set_sysctls(const Plan& plan, const UniqueFd& procfs);
// rlimits, scheduling and oom_score_adj of `pid` (0: the caller's), whose directory in a procfs
// `process` is; -1 without an oom_score_adj.
Result<> set_limits(const Plan& plan, pid_t pid, int process);
// What a process has to set for itself. `procfs` as from open_procfs().
Result<> set_own(const Plan& plan, const UniqueFd& procfs);
// Ids 0 of the user namespace that was entered, whose maps are there.
Result<> become_root_inside();
Result<> new_keyring(const Plan& plan);
// Resolved without magic links, and checked to be inside the root afterwards (CVE-2024-21626).
Result<> enter_working_directory(const std::string& cwd);
// The exec's terminal, from the devpts that the container has on /dev/pts.
Result<UniqueFd> open_exec_terminal(const Plan& plan, const Channel& channel);
// 0, 1, 2 and the preserved ones; then nothing but the channel, the gate and the result are left
// open.
Result<> arrange_descriptors(Plan& plan, int channel, const UniqueFd& terminal);

}  // namespace wherry::init
