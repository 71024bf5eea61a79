// features: what this runtime can do (runtime-spec, features.md). Whatever it refuses by name is
// asked of the refusal itself, so that this list cannot say something else.
#include <array>
#include <cstdio>

#include "base/json.h"
#include "base/text.h"
#include "mount/options.h"
#include "mount/root.h"
#include "runtime/container/id_maps.h"
#include "runtime/container/identity.h"
#include "runtime/container/planner.h"
#include "tools/wherry-oci/verbs.h"

namespace wherry::tool {
namespace {

oci::Spec least_spec() {
  oci::Spec spec;
  spec.process.emplace();
  spec.root.emplace();
  spec.linux_.emplace();
  oci::Namespace mount;
  mount.type = oci::NamespaceType::kMount;
  spec.linux_->namespaces.push_back(mount);
  return spec;
}

template <class Edit>
bool accepted(Edit edit) {
  auto spec = least_spec();
  edit(spec);
  return container::refuse_unsupported(spec).ok();
}

Json hooks() {
  struct Kind {
    const char* name;
    std::vector<oci::Hook> oci::Hooks::*list;
  };
  static const std::array kKinds = {Kind{"prestart", &oci::Hooks::prestart},
                                    Kind{"createRuntime", &oci::Hooks::create_runtime},
                                    Kind{"createContainer", &oci::Hooks::create_container},
                                    Kind{"startContainer", &oci::Hooks::start_container},
                                    Kind{"poststart", &oci::Hooks::poststart},
                                    Kind{"poststop", &oci::Hooks::poststop}};
  Json names = Json::array();
  for (const auto& kind : kKinds)
    if (accepted([&](oci::Spec& spec) { (spec.hooks.*kind.list).push_back({}); }))
      names.push_back(kind.name);
  return names;
}

Json namespaces() {
  using Type = oci::NamespaceType;
  Json names = Json::array();
  for (const auto type : {Type::kCgroup, Type::kIpc, Type::kMount, Type::kNetwork, Type::kPid,
                          Type::kTime, Type::kUser, Type::kUts}) {
    const bool takes = type == Type::kMount || accepted([&](oci::Spec& spec) {
                         oci::Namespace ns;
                         ns.type = type;
                         spec.linux_->namespaces.push_back(ns);
                         if (type != Type::kUser) return;
                         spec.linux_->uid_mappings.push_back({0, 100000, 65536});
                         spec.linux_->gid_mappings.push_back({0, 100000, 65536});
                       });
    if (takes) names.push_back(oci::to_string(type));
  }
  return names;
}

bool idmapped_mounts() {
  oci::Mount mount;
  mount.destination = "/x";
  mount.type = "bind";
  mount.source = "/";
  mount.options = {"idmap"};
  mount.uid_mappings.push_back({0, 100000, 65536});
  mount.gid_mappings.push_back({0, 100000, 65536});
  oci::Spec spec;
  spec.linux_.emplace();
  const auto map = [&](const auto& uids, const auto& gids) {
    return container::mount_id_maps(spec, {}, uids, gids);
  };
  return mount::plan_mounts({mount}, "/", {}, {}, map).ok();
}

Json seccomp() {
  return {
      {"enabled", true},
      {"actions",
       {"SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS",
        "SCMP_ACT_KILL_THREAD", "SCMP_ACT_LOG", "SCMP_ACT_TRACE", "SCMP_ACT_TRAP"}},
      {"operators",
       {"SCMP_CMP_EQ", "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_LE", "SCMP_CMP_LT",
        "SCMP_CMP_MASKED_EQ", "SCMP_CMP_NE"}},
      {"archs", {"SCMP_ARCH_X86", "SCMP_ARCH_X86_64", "SCMP_ARCH_X32"}},
      {"knownFlags",
       {"SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW", "SECCOMP_FILTER_FLAG_TSYNC"}},
      {"supportedFlags",
       {"SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW", "SECCOMP_FILTER_FLAG_TSYNC"}}};
}

Json linux_features() {
  const auto process = [](auto edit) {
    return accepted([&](oci::Spec& spec) { edit(*spec.process); });
  };
  Json all;
  all["namespaces"] = namespaces();
  all["capabilities"] = container::known_capabilities();
  all["cgroup"] = {
      {"v1", true}, {"v2", true}, {"systemd", false}, {"systemdUser", false}, {"rdma", true}};
  all["seccomp"] = seccomp();
  all["apparmor"] = {
      {"enabled", process([](oci::Process& p) { p.apparmor_profile = "unconfined"; })}};
  all["selinux"] = {{"enabled", process([](oci::Process& p) { p.selinux_label = "a:b:c:s0"; })}};
  all["intelRdt"] = {
      {"enabled", accepted([](oci::Spec& spec) { spec.linux_->intel_rdt.emplace(); })}};
  all["netDevices"] = {
      {"enabled", accepted([](oci::Spec& spec) { spec.linux_->net_devices.emplace("eth0", ""); })}};
  all["mountExtensions"] = {{"idmap", {{"enabled", idmapped_mounts()}}}};
  return all;
}

}  // namespace

Result<int> features(const Options& options) {
  if (!options.operands.empty())
    return Error::make(Code::kInvalid, cat("one word too many: ", in_quotes(options.operands[0])));
  Json all;
  all["ociVersionMin"] = "1.0.0";
  all["ociVersionMax"] = "1.3.0";
  all["hooks"] = hooks();
  all["mountOptions"] = mount::option_words();
  all["linux"] = linux_features();
  all["annotations"] = {{"io.wherry.version", WHERRY_VERSION}};
  std::fputs(dump_json_pretty(all).c_str(), stdout);
  return 0;
}

}  // namespace wherry::tool
