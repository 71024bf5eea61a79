#include <algorithm>

#include "base/text.h"
#include "oci/validate.h"

namespace wherry::oci {
namespace {

bool is_capability(std::string_view name) {
  constexpr std::string_view kPrefix = "CAP_";
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         name.find_first_not_of(kLetters) == std::string_view::npos;
}

void check_capabilities(Rules& rules, const std::string& pointer, const Capabilities& sets) {
  const std::pair<const char*, const std::vector<std::string>*> all[] = {
      {"bounding", &sets.bounding},
      {"effective", &sets.effective},
      {"inheritable", &sets.inheritable},
      {"permitted", &sets.permitted},
      {"ambient", &sets.ambient}};
  for (const auto& [name, set] : all)
    for (std::size_t i = 0; i < set->size(); ++i)
      if (!is_capability((*set)[i]))
        rules.problem(element(member(pointer, name), i),
                      cat("must be a capability like 'CAP_CHOWN', not ", in_quotes((*set)[i])));
}

void check_rlimits(Rules& rules, const std::string& pointer, const std::vector<Rlimit>& limits) {
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const auto& limit = limits[i];
    const auto here = element(pointer, i);
    rules.one_of(
        member(here, "type"), limit.type,
        {"RLIMIT_AS", "RLIMIT_CORE", "RLIMIT_CPU", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_LOCKS",
         "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_NOFILE", "RLIMIT_NPROC",
         "RLIMIT_RSS", "RLIMIT_RTPRIO", "RLIMIT_RTTIME", "RLIMIT_SIGPENDING", "RLIMIT_STACK"});
    if (limit.soft > limit.hard)
      rules.problem(member(here, "soft"),
                    cat("must not be above the hard limit, ", limit.hard, ", but is ", limit.soft));
    const auto end = limits.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(limits.begin(), end,
                    [&](const Rlimit& before) { return before.type == limit.type; }))
      rules.problem(member(here, "type"), cat("stands twice: ", in_quotes(limit.type)));
  }
}

void check_scheduler(Rules& rules, const std::string& pointer, const Scheduler& scheduler) {
  rules.one_of(member(pointer, "policy"), scheduler.policy,
               {"SCHED_OTHER", "SCHED_FIFO", "SCHED_RR", "SCHED_BATCH", "SCHED_ISO", "SCHED_IDLE",
                "SCHED_DEADLINE"});
  for (std::size_t i = 0; i < scheduler.flags.size(); ++i)
    rules.one_of(element(member(pointer, "flags"), i), scheduler.flags[i],
                 {"SCHED_FLAG_RESET_ON_FORK", "SCHED_FLAG_RECLAIM", "SCHED_FLAG_DL_OVERRUN",
                  "SCHED_FLAG_KEEP_POLICY", "SCHED_FLAG_KEEP_PARAMS", "SCHED_FLAG_UTIL_CLAMP_MIN",
                  "SCHED_FLAG_UTIL_CLAMP_MAX"});
  if (scheduler.nice < -20 || scheduler.nice > 19)
    rules.problem(member(pointer, "nice"), cat("must be between -20 and 19, not ", scheduler.nice));
  const bool realtime = scheduler.policy == "SCHED_FIFO" || scheduler.policy == "SCHED_RR";
  if (!realtime && scheduler.priority != 0)
    rules.problem(member(pointer, "priority"), cat("is for SCHED_FIFO and SCHED_RR only; ",
                                                   in_quotes(scheduler.policy), " has none"));
  if (realtime && (scheduler.priority < 1 || scheduler.priority > 99))
    rules.problem(member(pointer, "priority"),
                  cat("must be between 1 and 99, not ", scheduler.priority));
  const bool timed = scheduler.runtime != 0 || scheduler.deadline != 0 || scheduler.period != 0;
  if (timed && scheduler.policy != "SCHED_DEADLINE")
    rules.problem(pointer, "'runtime', 'deadline' and 'period' are for SCHED_DEADLINE only");
}

void check_io_priority(Rules& rules, const std::string& pointer, const IoPriority& io) {
  rules.one_of(member(pointer, "class"), io.class_name,
               {"IOPRIO_CLASS_RT", "IOPRIO_CLASS_BE", "IOPRIO_CLASS_IDLE"});
  if (io.priority < 0 || io.priority > 7)
    rules.problem(member(pointer, "priority"), cat("must be between 0 and 7, not ", io.priority));
}

void check_user(Rules& rules, const std::string& pointer, const User& user) {
  constexpr std::uint32_t kNoId = 0xffffffff;  // (uid_t)-1: "leave as it is" to setresuid(2)
  if (user.uid == kNoId) rules.problem(member(pointer, "uid"), "4294967295 is no user id");
  if (user.gid == kNoId) rules.problem(member(pointer, "gid"), "4294967295 is no group id");
  for (std::size_t i = 0; i < user.additional_gids.size(); ++i)
    if (user.additional_gids[i] == kNoId)
      rules.problem(element(member(pointer, "additionalGids"), i), "4294967295 is no group id");
  if (user.umask && *user.umask > 0777)
    rules.problem(member(pointer, "umask"), cat("must be at most 511 (0777), not ", *user.umask));
  if (!user.username.empty())
    rules.problem(member(pointer, "username"),
                  "is for Windows only; 'uid' and 'gid' name the user here");
}

void check_console(Rules& rules, const std::string& pointer, const Box& size) {
  constexpr unsigned kMost = 65535;  // the fields of struct winsize
  if (size.height > kMost)
    rules.problem(member(pointer, "height"), cat("must be at most 65535, not ", size.height));
  if (size.width > kMost)
    rules.problem(member(pointer, "width"), cat("must be at most 65535, not ", size.width));
}

}  // namespace

void check_process(Rules& rules, const std::string& pointer, const Process& process) {
  const auto at = [&](std::string_view name) { return member(pointer, name); };
  if (process.args.empty())
    rules.problem(at("args"), "must name a program: it is missing or empty");
  else if (process.args[0].empty())
    rules.problem(at("args") + "/0", "must name a program, and is empty");
  rules.absolute(at("cwd"), process.cwd);
  rules.environment(at("env"), process.env);
  check_user(rules, at("user"), process.user);
  if (process.console_size) check_console(rules, at("consoleSize"), *process.console_size);
  if (process.capabilities) check_capabilities(rules, at("capabilities"), *process.capabilities);
  check_rlimits(rules, at("rlimits"), process.rlimits);
  rules.no_control(at("apparmorProfile"), process.apparmor_profile);
  rules.no_control(at("selinuxLabel"), process.selinux_label);
  if (process.oom_score_adj && (*process.oom_score_adj < -1000 || *process.oom_score_adj > 1000))
    rules.problem(at("oomScoreAdj"),
                  cat("must be between -1000 and 1000, not ", *process.oom_score_adj));
  if (process.scheduler) check_scheduler(rules, at("scheduler"), *process.scheduler);
  if (process.io_priority) check_io_priority(rules, at("ioPriority"), *process.io_priority);
  if (process.exec_cpu_affinity) {
    rules.cpu_list(at("execCPUAffinity") + "/initial", process.exec_cpu_affinity->initial);
    rules.cpu_list(at("execCPUAffinity") + "/final", process.exec_cpu_affinity->final);
  }
}

}  // namespace wherry::oci
