#include "runtime/pod/to_spec.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "oci/config.h"
#include "runtime/pod/seccomp_default.h"

namespace wherry::pod {
namespace {

struct World {
  Pod pod;
  Container container;
  oci::ImageConfig image;
  Surroundings around;
  World() {
    pod.id = std::string(64, 'a');
    pod.name = "web";
    container.name = "nginx";
    image.entrypoint = {"/entry"};
    image.cmd = {"serve"};
    around.cgroup_path = "/wherry/web/nginx";
    around.net_ns = "/proc/7/fd/3";
    around.ipc_ns = "/proc/7/fd/4";
    around.uts_ns = "/proc/7/fd/5";
  }
  Result<oci::Spec> make() const { return to_spec(pod, container, image, around); }
  oci::Spec spec() const {
    auto made = make();
    EXPECT_TRUE(made.ok()) << made.error().message();
    return made.ok() ? std::move(made).value() : oci::Spec{};
  }
  std::string error() const {
    auto made = make();
    return made.ok() ? "" : made.error().message();
  }
};

const oci::Mount* mount_at(const oci::Spec& spec, std::string_view destination) {
  const auto it = std::find_if(spec.mounts.begin(), spec.mounts.end(),
                               [&](const auto& m) { return m.destination == destination; });
  return it == spec.mounts.end() ? nullptr : &*it;
}
std::string options_at(const oci::Spec& spec, std::string_view destination) {
  const auto* mount = mount_at(spec, destination);
  return mount == nullptr ? "none" : join(mount->options, ",");
}
bool has(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

TEST(ToSpec, WhatItMakesIsValid) {
  World world;
  world.pod.volumes = {
      {"data", Volume::Kind::kHostPath, false, {}, "/srv/data", Volume::HostType::kAny}};
  world.container.mounts = {{"data", "/data", "", true, ""}};
  world.around.devices = {{"/dev/fuse", 'c', 10, 229, 0666, 0, 0, "rw"}};
  world.container.limits = {64 << 20, {}, 500, 250, 100};
  const auto problems = oci::validate(world.spec());
  for (const auto& problem : problems) ADD_FAILURE() << oci::to_string(problem);
}

TEST(ToSpec, CommandAndArgsByTheRulesOfKubernetes) {
  struct Row {
    std::vector<std::string> command, args, expected;
  };
  for (const auto& row :
       {Row{{}, {}, {"/entry", "serve"}}, Row{{"c"}, {}, {"c"}}, Row{{}, {"a"}, {"/entry", "a"}},
        Row{{"c"}, {"a", "b"}, {"c", "a", "b"}}}) {
    World world;
    world.container.command = row.command;
    world.container.args = row.args;
    EXPECT_EQ(world.spec().process->args, row.expected);
  }
  World world;
  world.image = {};
  EXPECT_EQ(world.error(), "command: none is given, and the image has no entry point and no cmd");
}

TEST(ToSpec, EnvironmentInLayers) {
  World world;
  world.image.env = {"PATH=/img", "A=image", "B=image", "bad"};
  world.container.env = {{"B", "own"}, {"C", "x=y"}};
  world.around.user.home = "/home/web";
  world.container.tty = true;
  EXPECT_EQ(world.spec().process->env,
            (std::vector<std::string>{"PATH=/img", "HOSTNAME=web", "TERM=xterm", "HOME=/home/web",
                                      "A=image", "B=own", "C=x=y"}));
}

TEST(ToSpec, CapabilitySets) {
  World world;
  EXPECT_EQ(world.spec().process->capabilities->bounding.size(), 14U);
  world.container.security.cap_drop = {"ALL"};
  world.container.security.cap_add = {"net_admin", "CAP_CHOWN"};
  EXPECT_EQ(world.spec().process->capabilities->bounding,
            (std::vector<std::string>{"CAP_NET_ADMIN", "CAP_CHOWN"}));
  EXPECT_EQ(world.spec().process->capabilities->effective,
            (std::vector<std::string>{"CAP_NET_ADMIN", "CAP_CHOWN"}));
  EXPECT_TRUE(world.spec().process->capabilities->inheritable.empty());
  EXPECT_TRUE(world.spec().process->capabilities->ambient.empty());
  world.around.user.uid = 1000;
  EXPECT_TRUE(world.spec().process->capabilities->effective.empty());
  EXPECT_TRUE(world.spec().process->capabilities->permitted.empty());
  world.container.security.cap_add = {"FLY"};
  EXPECT_EQ(world.error(), "capabilities.add: 'FLY' is not a capability");
}

TEST(ToSpec, PrivilegedIsAllThatWeHaveAndNoMore) {
  World world;
  world.container.security.privileged = true;
  world.around.own_capabilities = {"CAP_SYS_ADMIN", "CAP_CHOWN"};
  const auto spec = world.spec();
  EXPECT_EQ(spec.process->capabilities->bounding, world.around.own_capabilities);
  EXPECT_FALSE(spec.linux_->seccomp);
  EXPECT_TRUE(spec.linux_->masked_paths.empty());
  EXPECT_TRUE(spec.linux_->readonly_paths.empty());
  ASSERT_EQ(spec.linux_->resources->devices.size(), 1U);
  EXPECT_TRUE(spec.linux_->resources->devices[0].allow);
  EXPECT_EQ(options_at(spec, "/sys"), "nosuid,noexec,nodev,rw");
}

TEST(ToSpec, WhatWeLackIsLeftOutAndNamed) {
  World world;
  world.container.security.cap_add = {"SYS_RESOURCE", "CHOWN"};
  world.around.own_capabilities = {"CAP_CHOWN"};
  EXPECT_EQ(world.spec().process->capabilities->bounding, (std::vector<std::string>{"CAP_CHOWN"}));
  EXPECT_EQ(lacking_capabilities(world.container, world.around),
            (std::vector<std::string>{"CAP_SYS_RESOURCE"}));
}

TEST(ToSpec, DevicesAreDeniedButForTheList) {
  World world;
  world.around.devices = {{"/dev/fuse", 'c', 10, 229, 0660, 0, 5, "rw"}};
  const auto spec = world.spec();
  const auto& rules = spec.linux_->resources->devices;
  EXPECT_FALSE(rules.front().allow);
  EXPECT_EQ(rules.front().type, "a");
  const auto& last = rules.back();
  EXPECT_TRUE(last.allow && last.type == "c" && last.major == 10 && last.minor == 229 &&
              last.access == "rw");
  for (const auto& rule : rules) EXPECT_TRUE(!rule.allow || rule.type != "b" || rule.access == "m");
  ASSERT_EQ(spec.linux_->devices.size(), 1U);
  EXPECT_EQ(spec.linux_->devices[0].file_mode, 0660U);
}

TEST(ToSpec, NamespacesFollowThePod) {
  const auto words = [](const World& world) {
    std::vector<std::string> out;
    const auto spec = world.spec();
    for (const auto& ns : spec.linux_->namespaces)
      out.push_back(cat(oci::to_string(ns.type), ns.path.empty() ? "" : "=", ns.path));
    return join(out, " ");
  };
  World world;
  EXPECT_EQ(words(world),
            "mount cgroup pid ipc=/proc/7/fd/4 network=/proc/7/fd/3 uts=/proc/7/fd/5");
  EXPECT_EQ(world.spec().hostname, "");
  world.around = {};
  EXPECT_EQ(words(world), "mount cgroup pid ipc network uts");
  EXPECT_EQ(world.spec().hostname, "web");
  world.pod.network = Network::kHost;
  world.pod.host_ipc = true;
  world.pod.pid_mode = PidMode::kHost;
  EXPECT_EQ(words(world), "mount cgroup");
  EXPECT_EQ(mount_at(world.spec(), "/dev/shm")->source, "/dev/shm");
  world.pod.pid_mode = PidMode::kPod;
  EXPECT_EQ(world.error(), "a PID namespace shared by the pod needs a pod init");
}

TEST(ToSpec, Volumes) {
  World world;
  world.pod.volumes = {{"host", Volume::Kind::kHostPath, false, {}, "/srv", Volume::HostType::kAny},
                       {"disk", Volume::Kind::kEmptyDir, false, {}, "", Volume::HostType::kAny},
                       {"mem", Volume::Kind::kEmptyDir, true, 1048576, "", Volume::HostType::kAny}};
  world.container.mounts = {{"disk", "/a/deep/one", "", false, "rslave"},
                            {"host", "/a", "", true, ""},
                            {"mem", "/m", "", false, ""}};
  world.pod.containers = {world.container};
  EXPECT_EQ(world.error(), "mount '/a/deep/one': volume 'disk' has no place on the host");
  world.around.volumes["disk"] = "/var/lib/wherry/pods/x/volumes/disk";
  auto spec = world.spec();
  EXPECT_EQ(options_at(spec, "/a"), "rbind,rprivate,rro");
  EXPECT_EQ(options_at(spec, "/a/deep/one"), "rbind,rslave");
  EXPECT_EQ(options_at(spec, "/m"), "nosuid,nodev,rw,mode=1777,size=1048576");
  EXPECT_EQ(spec.linux_->rootfs_propagation, "slave");
  EXPECT_LT(mount_at(spec, "/a"), mount_at(spec, "/a/deep/one"));  // parents first
  world.container.mounts[0].sub_path = "x/y";
  EXPECT_EQ(world.error(), "mount '/a/deep/one': volume 'disk/x/y' has no place on the host");
  world.around.volumes["disk/x/y"] = "/volumes/disk/x/y";
  spec = world.spec();
  EXPECT_EQ(mount_at(spec, "/a/deep/one")->source, "/volumes/disk/x/y");
  world.container.mounts[0].mount_path = "/a/";
  EXPECT_EQ(world.error(), "mount '/a': another mount has this path");
  world.container.mounts[0].mount_path = "/a/deep/one";
  world.container.mounts[0].sub_path = "x/../..";
  EXPECT_EQ(world.error(), "mount '/a/deep/one': the sub-path contains '..'");
  world.container.mounts[0] = {"disk", "/b", "", false, "rshared"};
  EXPECT_EQ(world.error(), "mount '/b': propagation back to the host needs a privileged container");
  world.container.mounts[0] = {"none", "/b", "", false, ""};
  EXPECT_EQ(world.error(), "mount '/b': the pod has no volume 'none'");
}

TEST(ToSpec, AVolumeTakesThePlaceOfADefaultMount) {
  World world;
  world.pod.volumes = {
      {"host", Volume::Kind::kHostPath, false, {}, "/srv", Volume::HostType::kAny}};
  world.container.mounts = {{"host", "/dev/shm/", "", false, ""},
                            {"host", "/etc/hosts", "", false, ""}};
  world.around.hosts = "/run/hosts";
  const auto spec = world.spec();
  EXPECT_EQ(mount_at(spec, "/dev/shm"), nullptr);
  EXPECT_EQ(mount_at(spec, "/dev/shm/")->source, "/srv");
  EXPECT_EQ(mount_at(spec, "/etc/hosts")->source, "/srv");
}

TEST(ToSpec, UsersAndGroups) {
  World world;
  world.around.user = {1000, 100, {5}, "/home/x"};
  world.pod.supplemental_groups = {5, 6};
  world.pod.fs_group = 2000;
  const auto spec = world.spec();
  EXPECT_EQ(spec.process->user.uid, 1000U);
  EXPECT_EQ(spec.process->user.additional_gids, (std::vector<std::uint32_t>{5, 6, 2000}));
  EXPECT_FALSE(spec.process->no_new_privileges);
  world.container.security.allow_privilege_escalation = false;
  EXPECT_TRUE(world.spec().process->no_new_privileges);
  world.image.user = "web:web";
  EXPECT_EQ(user_of(world.container, world.image), "web:web");
  world.container.security.run_as_group = 7;
  EXPECT_EQ(user_of(world.container, world.image), "web:7");
  world.container.security.run_as_user = 9;
  EXPECT_EQ(user_of(world.container, world.image), "9:7");
  EXPECT_EQ(user_of(world.container, {}), "9:7");
  world.container.security.run_as_non_root = true;
  world.around.user.uid = 0;
  EXPECT_EQ(world.make().error().code(), Code::kDenied);
}

TEST(ToSpec, Resources) {
  World world;
  world.container.limits = {64 << 20, {}, 500, {}, 77};
  auto resources = container_resources(world.container);
  EXPECT_EQ(resources.memory->limit, 64 << 20);
  EXPECT_EQ(resources.cpu->quota, 50'000);
  EXPECT_EQ(resources.cpu->period, 100'000U);
  EXPECT_EQ(resources.cpu->shares, 512U);
  EXPECT_EQ(resources.pids_limit, 77);
  world.container.limits = {{}, {}, 1, 1, {}};
  resources = container_resources(world.container);
  EXPECT_EQ(resources.cpu->quota, 1000);  // the kernel's least
  EXPECT_EQ(resources.cpu->shares, 2U);
  EXPECT_FALSE(resources.memory || resources.pids_limit);
  EXPECT_EQ(pod_resources(world.pod).pids_limit, 4096);
}

TEST(ToSpec, Sysctls) {
  World world;
  world.pod.sysctls = {{"net.core.somaxconn", "1024"}, {"kernel.shm_rmid_forced", "0"}};
  EXPECT_EQ(world.spec().linux_->sysctl.size(), 2U);
  const std::pair<const char*, const char*> bad[] = {{"kernel.core_pattern", "x"},
                                                     {"vm.max_map_count", "1"},
                                                     {"net.ipv4.ip_forward", "1\n2"},
                                                     {"net/../kernel/core_pattern", "x"}};
  for (const auto& [key, value] : bad) {
    world.pod.sysctls = {{key, value}};
    EXPECT_NE(world.error(), "") << key;
  }
  world.pod.network = Network::kHost;
  world.pod.sysctls = {{"net.core.somaxconn", "1"}};
  EXPECT_EQ(world.error(), "sysctl 'net.core.somaxconn': the network namespace is the host's");
}

TEST(ToSpec, MaskedPathsOfSec21) {
  World world;
  world.around.cpus = 2;
  const auto spec = world.spec();
  for (const auto* path :
       {"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
        "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
        "/proc/interrupts", "/sys/firmware", "/sys/devices/virtual/powercap",
        "/sys/devices/system/cpu/cpu1/thermal_throttle"})
    EXPECT_TRUE(has(spec.linux_->masked_paths, path)) << path;
  world.container.security.unmasked_proc = true;
  EXPECT_TRUE(world.spec().linux_->masked_paths.empty());
}

bool allows(const oci::Seccomp& profile, std::string_view name) {
  return std::any_of(profile.syscalls.begin(), profile.syscalls.end(), [&](const auto& rule) {
    return rule.action == "SCMP_ACT_ALLOW" && has(rule.names, name) && rule.args.empty();
  });
}

TEST(Seccomp, CapabilitiesOpenWhatTheyAreFor) {
  const auto plain = default_seccomp({"CAP_CHOWN"});
  const auto admin = default_seccomp({"CAP_SYS_ADMIN", "CAP_SYS_BOOT"});
  for (const auto* name : {"read", "execve", "openat2", "futex", "statx", "clock_gettime64"})
    EXPECT_TRUE(allows(plain, name)) << name;
  for (const auto* name : {"mount", "bpf", "reboot", "setns", "kexec_load", "keyctl", "add_key",
                           "init_module", "io_uring_setup", "clone3", "clone", "unshare",
                           "userfaultfd", "open_by_handle_at", "perf_event_open", "swapon"})
    EXPECT_FALSE(allows(plain, name)) << name;
  for (const auto* name : {"mount", "bpf", "reboot", "setns", "clone3", "clone", "unshare"})
    EXPECT_TRUE(allows(admin, name)) << name;
  for (const auto* name : {"kexec_load", "keyctl", "init_module"})
    EXPECT_FALSE(allows(admin, name)) << name;
}

TEST(Seccomp, NoNameIsThereTwice) {
  const auto profile = default_seccomp({});
  std::vector<std::string> names;
  for (const auto& rule : profile.syscalls)
    if (rule.args.empty()) names.insert(names.end(), rule.names.begin(), rule.names.end());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(EtcFiles, Texts) {
  Pod pod;
  pod.id = std::string(64, 'a');
  pod.name = std::string(70, 'n') + ".x";
  EXPECT_EQ(hostname_of(pod), std::string(63, 'n'));
  pod.name = "web";
  pod.host_aliases = {{"10.0.0.1", {"a", "b"}}};
  EXPECT_NE(hosts_file(pod).find("127.0.0.1\tweb\n10.0.0.1\ta b\n"), std::string::npos);
  EXPECT_NE(hosts_file(pod, "10.1.1.1").find("10.1.1.1\tweb\n"), std::string::npos);
  EXPECT_EQ(hostname_file(pod), "web\n");
  const std::string host =
      "# c\nnameserver 127.0.0.53\nnameserver 10.0.0.2 # x\nsearch a b\nsearch c\noptions ndots:1 "
      "edns0\n";
  EXPECT_EQ(resolv_conf_file(pod, host), "nameserver 10.0.0.2\nsearch c\noptions ndots:1 edns0\n");
  pod.dns = {false, {"1.1.1.1", "10.0.0.2"}, {"d"}, {"ndots:2"}};
  EXPECT_EQ(resolv_conf_file(pod, host),
            "nameserver 10.0.0.2\nnameserver 1.1.1.1\nsearch c d\noptions edns0 ndots:2\n");
  pod.dns.own_only = true;
  EXPECT_EQ(resolv_conf_file(pod, host),
            "nameserver 1.1.1.1\nnameserver 10.0.0.2\nsearch d\noptions ndots:2\n");
  pod.dns = {};
  pod.network = Network::kHost;
  EXPECT_NE(resolv_conf_file(pod, host).find("127.0.0.53"), std::string::npos);
}

}  // namespace
}  // namespace wherry::pod
