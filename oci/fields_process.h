// `process` of the runtime-spec 1.3 (config.md, "Process"): one line for each member, read and
// written by it.
#pragma once
#include "oci/reader.h"
#include "oci/spec.h"

namespace wherry::oci {

template <class Visitor, Is<Box> T>
void members(Visitor& v, T& box) {
  v.always("height", box.height);
  v.always("width", box.width);
}

template <class Visitor, Is<User> T>
void members(Visitor& v, T& user) {
  v.always("uid", user.uid);
  v.always("gid", user.gid);
  v.optional("umask", user.umask);
  v.optional("additionalGids", user.additional_gids);
  v.optional("username", user.username);
}

template <class Visitor, Is<Capabilities> T>
void members(Visitor& v, T& sets) {
  v.optional("bounding", sets.bounding);
  v.optional("effective", sets.effective);
  v.optional("inheritable", sets.inheritable);
  v.optional("permitted", sets.permitted);
  v.optional("ambient", sets.ambient);
}

template <class Visitor, Is<Rlimit> T>
void members(Visitor& v, T& limit) {
  v.required("type", limit.type);
  v.required("soft", limit.soft);
  v.required("hard", limit.hard);
}

template <class Visitor, Is<Scheduler> T>
void members(Visitor& v, T& scheduler) {
  v.required("policy", scheduler.policy);
  v.optional("nice", scheduler.nice);
  v.optional("priority", scheduler.priority);
  v.optional("flags", scheduler.flags);
  v.optional("runtime", scheduler.runtime);
  v.optional("deadline", scheduler.deadline);
  v.optional("period", scheduler.period);
}

template <class Visitor, Is<IoPriority> T>
void members(Visitor& v, T& priority) {
  v.required("class", priority.class_name);
  v.always("priority", priority.priority);
}

template <class Visitor, Is<ExecCpuAffinity> T>
void members(Visitor& v, T& affinity) {
  v.optional("initial", affinity.initial);
  v.optional("final", affinity.final);
}

template <class Visitor, Is<Process> T>
void members(Visitor& v, T& process) {
  v.optional("terminal", process.terminal);
  v.optional("consoleSize", process.console_size);
  v.always("user", process.user);
  v.optional("args", process.args);
  v.optional("env", process.env);
  v.required("cwd", process.cwd);
  v.optional("capabilities", process.capabilities);
  v.optional("rlimits", process.rlimits);
  v.optional("noNewPrivileges", process.no_new_privileges);
  v.optional("apparmorProfile", process.apparmor_profile);
  v.optional("selinuxLabel", process.selinux_label);
  v.optional("oomScoreAdj", process.oom_score_adj);
  v.optional("scheduler", process.scheduler);
  v.optional("ioPriority", process.io_priority);
  v.optional("execCPUAffinity", process.exec_cpu_affinity);
}

}  // namespace wherry::oci
