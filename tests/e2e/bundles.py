"""Bundles for the differential suite and the bench: a base configuration and small edits of it."""
import copy
import json
import os
import shutil

DEFAULT_CAPS = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID",
                "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_SETFCAP"]

BASE = {
    "ociVersion": "1.0.2",
    "process": {
        "terminal": False, "user": {"uid": 0, "gid": 0}, "args": ["/bin/facts"], "cwd": "/",
        "env": ["PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/root", "LANG=C.UTF-8"],
        "capabilities": {"bounding": DEFAULT_CAPS, "effective": DEFAULT_CAPS, "permitted": DEFAULT_CAPS},
        "noNewPrivileges": True,
    },
    "root": {"path": "rootfs", "readonly": False},
    "hostname": "diff",
    "mounts": [
        {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
         "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
        {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
         "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm",
         "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]},
        {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": ["nosuid", "noexec", "nodev"]},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
    ],
    "linux": {
        "cgroupsPath": "/wherry-test-diff/base",
        "resources": {"devices": [{"allow": False, "access": "rwm"}]},
        "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount", "cgroup")],
        "maskedPaths": ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                        "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/sys/firmware", "/proc/scsi"],
        "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
    },
}

CASES = {}


def case(function):
    """Registers an edit: it gets the configuration and the Surroundings, and changes the first."""
    CASES[function.__name__.replace("_", "-")] = function
    return function


def configuration():
    return copy.deepcopy(BASE)


def add_mount(config, destination, kind, source, *options):
    config["mounts"].append({"destination": destination, "type": kind, "source": source, "options": list(options)})


def set_args(config, *ops):
    config["process"]["args"] = ["/bin/facts", *ops]


def namespaces(config, *kinds, **paths):
    config["linux"]["namespaces"] = [{"type": kind} for kind in kinds]
    config["linux"]["namespaces"] += [{"type": kind, "path": path} for kind, path in paths.items()]


def capabilities(config, **sets):
    config["process"]["capabilities"] = sets


def default_seccomp(held=()):
    """The profile that Debian gives podman, as a runtime gets it: rules for this machine and these capabilities."""
    with open("/usr/share/containers/seccomp.json", encoding="utf-8") as file:
        source = json.load(file)
    held = set(held)
    rules = []
    for rule in source["syscalls"]:
        includes, excludes = rule.get("includes") or {}, rule.get("excludes") or {}
        if includes.get("arches") and "amd64" not in includes["arches"]:
            continue
        if "amd64" in (excludes.get("arches") or []) or set(excludes.get("caps") or []) & held:
            continue
        if set(includes.get("caps") or []) - held:
            continue
        kept = {key: rule[key] for key in ("names", "action", "errnoRet") if rule.get(key) is not None}
        if rule.get("args"):
            kept["args"] = [{key: value for key, value in arg.items() if value is not None} for arg in rule["args"]]
        rules.append(kept)
    profile = {"defaultAction": source["defaultAction"], "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
               "syscalls": rules}
    if source.get("defaultErrnoRet") is not None:
        profile["defaultErrnoRet"] = source["defaultErrnoRet"]
    return profile


def make_root(path, facts):
    """A root with nothing but the payload, users and a few places to look at."""
    for name, mode in (("bin", 0o755), ("etc", 0o755), ("proc", 0o755), ("sys", 0o755), ("dev", 0o755),
                       ("root", 0o700), ("tmp", 0o1777), ("data/inner", 0o755), ("home/user", 0o750)):
        os.makedirs(os.path.join(path, name))
        os.chmod(os.path.join(path, name), mode)
    os.chown(os.path.join(path, "home/user"), 1000, 1000)
    shutil.copy(facts, os.path.join(path, "bin/facts"))
    files = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n",
             "etc/group": "root:x:0:\nuser:x:1000:\n", "etc/secret": "hidden\n", "data/inner/file": "inner\n",
             "data/file": "outer\n", "bin/script": "no format\n", "bin/plain": "not executable\n"}
    for name, text in files.items():
        with open(os.path.join(path, name), "w", encoding="utf-8") as file:
            file.write(text)
    os.chmod(os.path.join(path, "bin/script"), 0o755)
    os.symlink("data", os.path.join(path, "link"))


# --- process ------------------------------------------------------------------------------------------------------


@case
def base(config, around):
    set_args(config, "read:/proc/kcore", "read:/proc/keys", "write:/proc/sys/kernel/hostname", "read:/sys/firmware",
             "write:/proc/sysrq-trigger", "read:/proc/sys/kernel/hostname")


@case
def user_groups_umask(config, around):
    config["process"]["user"] = {"uid": 1000, "gid": 1000, "additionalGids": [5, 20, 1000], "umask": 0o77}
    config["process"]["cwd"] = "/home/user"


@case
def user_without_home(config, around):
    config["process"]["user"] = {"uid": 1000, "gid": 1000}
    config["process"]["env"] = ["PATH=/bin"]


@case
def user_unknown(config, around):
    config["process"]["user"] = {"uid": 4711, "gid": 4712}
    config["process"]["env"] = ["PATH=/bin"]


@case
def root_without_home(config, around):
    config["process"]["env"] = ["PATH=/bin"]


@case
def capabilities_none(config, around):
    capabilities(config)


@case
def capabilities_ambient(config, around):
    config["process"]["user"] = {"uid": 1000, "gid": 1000}
    some = ["CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT"]
    capabilities(config, bounding=DEFAULT_CAPS, effective=some, permitted=some, inheritable=some, ambient=some[:1])


@case
def capabilities_inheritable(config, around):
    some = ["CAP_NET_RAW", "CAP_KILL"]
    capabilities(config, bounding=some, effective=some, permitted=some, inheritable=some)


@case
def capabilities_bounding_only(config, around):
    config["process"]["user"] = {"uid": 1000, "gid": 1000}
    capabilities(config, bounding=DEFAULT_CAPS + ["CAP_SYS_ADMIN"])


@case
def new_privileges_allowed(config, around):
    config["process"]["noNewPrivileges"] = False


@case
def rlimits(config, around):
    config["process"]["rlimits"] = [{"type": "RLIMIT_NOFILE", "soft": 100, "hard": 200},
                                    {"type": "RLIMIT_CORE", "soft": 0, "hard": 0},
                                    {"type": "RLIMIT_NPROC", "soft": 64, "hard": 128},
                                    {"type": "RLIMIT_STACK", "soft": 1 << 20, "hard": 1 << 22}]


@case
def oom_score(config, around):
    config["process"]["oomScoreAdj"] = 500


@case
def working_directory_missing(config, around):
    config["process"]["cwd"] = "/made/for/you"


@case
def environment(config, around):
    config["process"]["env"] = ["PATH=/bin", "A=1", "B=", "C=a=b c\t\"d\"", "HOME=/nowhere", "A=2"]


@case
def program_by_path(config, around):
    config["process"]["args"] = ["facts", "", "two words"]
    config["process"]["env"] = ["PATH=/nonesuch:/bin", "HOME=/root"]


@case
def program_relative(config, around):
    config["process"]["args"] = ["./facts"]
    config["process"]["cwd"] = "/bin"


@case
def terminal(config, around):
    config["process"]["terminal"] = True
    config["process"]["user"] = {"uid": 1000, "gid": 1000}


@case
def descriptors_preserved(config, around):
    around.preserve_fds = 2


@case
def personality_32(config, around):
    config["linux"]["personality"] = {"domain": "LINUX32"}
    set_args(config, "read:/proc/self/personality")


# --- hooks and user namespaces ------------------------------------------------------------------------------------


def owned_by(around, uid, gid):
    """The root belongs to ids of a user namespace, and the way to it is open for them."""
    os.chmod(around.work, 0o711)
    for path, names, files in os.walk(os.path.join(around.bundle, "rootfs")):
        for name in [".", *names, *files]:
            stat = os.lstat(os.path.join(path, name))
            if stat.st_uid < uid:
                os.chown(os.path.join(path, name), stat.st_uid + uid, stat.st_gid + gid, follow_symlinks=False)
                if not os.path.islink(os.path.join(path, name)):
                    os.chmod(os.path.join(path, name), stat.st_mode & 0o7777)


def new_user_namespace(config, around):
    owned_by(around, 100000, 200000)
    config["linux"]["namespaces"].append({"type": "user"})
    config["linux"]["uidMappings"] = [{"containerID": 0, "hostID": 100000, "size": 65536}]
    config["linux"]["gidMappings"] = [{"containerID": 0, "hostID": 200000, "size": 65536}]


@case
def user_namespace(config, around):
    new_user_namespace(config, around)
    set_args(config, "read:/proc/self/gid_map", "read:/proc/self/setgroups", "read:/proc/keys", "create:/dev/x",
             "write:/proc/sysrq-trigger", "write:/proc/sys/kernel/hostname")


@case
def user_namespace_user(config, around):
    new_user_namespace(config, around)
    config["process"]["user"] = {"uid": 1000, "gid": 1000, "additionalGids": [5, 20]}
    config["process"]["cwd"] = "/home/user"


@case
def user_namespace_few_ids(config, around):
    new_user_namespace(config, around)
    config["linux"]["uidMappings"] = [{"containerID": 0, "hostID": 100000, "size": 1},
                                      {"containerID": 1000, "hostID": 101000, "size": 10}]
    set_args(config, "read:/proc/self/uid_map")


@case
def hooks_all(config, around):
    def hook(name):
        # poststart runs beside the payload, which may have read its file before or after.
        file = "late" if name == "poststart" else "h"
        return [{"path": "/bin/sh", "env": ["PATH=/usr/bin:/bin"], "timeout": 10,
                 "args": ["sh", "-c", f"cat >/dev/null; echo {name} >>{around.bundle}/rootfs/data/{file}"]}]
    config["hooks"] = {name: hook(name) for name in ("prestart", "createRuntime", "createContainer", "poststart")}
    config["hooks"]["startContainer"] = [{"path": "/bin/facts", "args": ["facts", "exit:0"]}]
    set_args(config, "read:/data/h")


# --- seccomp ------------------------------------------------------------------------------------------------------


@case
def seccomp_small(config, around):
    config["linux"]["seccomp"] = {
        "defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86"],
        "syscalls": [{"names": ["mknod", "mknodat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 61},
                     {"names": ["keyctl"], "action": "SCMP_ACT_ERRNO"}]}


@case
def seccomp_with_privileges(config, around):
    config["process"]["noNewPrivileges"] = False
    seccomp_small(config, around)


@case
def seccomp_default(config, around):
    config["linux"]["seccomp"] = default_seccomp(DEFAULT_CAPS)


# --- namespaces ---------------------------------------------------------------------------------------------------


@case
def namespaces_few(config, around):
    namespaces(config, "mount", "pid")
    del config["hostname"]


@case
def namespaces_host_pid(config, around):
    namespaces(config, "mount", "network", "ipc", "uts", "cgroup")


@case
def namespace_net_by_path(config, around):
    namespaces(config, "mount", "pid", "ipc", "uts", "cgroup", network=around.namespace("net"))


@case
def namespace_ipc_uts_by_path(config, around):
    namespaces(config, "mount", "pid", "network", "cgroup", ipc=around.namespace("ipc"), uts=around.namespace("uts"))
    del config["hostname"]


@case
def namespace_pid_by_path(config, around):
    namespaces(config, "mount", "network", "ipc", "uts", "cgroup", pid=around.namespace("pid"))


@case
def names(config, around):
    config["hostname"] = "a-host.example"


@case
def sysctls(config, around):
    config["linux"]["sysctl"] = {"net.ipv4.ip_forward": "1", "net.ipv4.ip_local_port_range": "2000 3000",
                                 "kernel.shm_rmid_forced": "1", "kernel.msgmax": "4096"}
    set_args(config, "read:/proc/sys/net/ipv4/ip_forward", "read:/proc/sys/net/ipv4/ip_local_port_range",
             "read:/proc/sys/kernel/shm_rmid_forced", "read:/proc/sys/kernel/msgmax")


# --- the root -----------------------------------------------------------------------------------------------------


@case
def root_read_only(config, around):
    config["root"]["readonly"] = True
    set_args(config, "create:/tmp/x", "create:/dev/shm/x", "create:/dev/x")


@case
def paths_masked(config, around):
    config["linux"]["maskedPaths"] = ["/etc/secret", "/data/inner", "/missing/path", "/proc/kcore"]
    set_args(config, "read:/etc/secret", "read:/data/inner/file", "create:/data/inner/x", "write:/etc/secret")


@case
def paths_read_only(config, around):
    config["linux"]["readonlyPaths"] = ["/etc/secret", "/data", "/missing/path", "/proc/sys"]
    set_args(config, "write:/etc/secret", "create:/data/x", "create:/data/inner/x", "read:/data/file")


@case
def paths_open(config, around):
    config["linux"]["maskedPaths"] = config["linux"]["readonlyPaths"] = []
    set_args(config, "read:/proc/keys", "write:/proc/sys/kernel/domainname")


@case
def binds(config, around):
    add_mount(config, "/mnt/file", "bind", around.host("file"), "bind", "ro")
    add_mount(config, "/mnt/rw", "bind", around.host("dir"), "bind", "rw")
    add_mount(config, "/mnt/hard", "bind", around.host("dir"), "bind", "ro", "nosuid", "nodev", "noexec", "noatime")
    add_mount(config, "/etc/secret", "none", around.host("file"), "bind")
    set_args(config, "read:/mnt/file", "write:/mnt/file", "create:/mnt/rw/x", "create:/mnt/hard/x", "read:/etc/secret")


@case
def binds_recursive(config, around):
    add_mount(config, "/mnt/tree", "bind", around.host("tree"), "rbind", "ro")
    add_mount(config, "/mnt/slave", "bind", around.host("tree"), "rbind", "rslave")
    add_mount(config, "/mnt/shared", "bind", around.host("tree"), "rbind", "rshared")
    add_mount(config, "/mnt/flat", "bind", around.host("tree"), "bind")
    set_args(config, "create:/mnt/tree/x", "create:/mnt/tree/sub/x", "create:/mnt/slave/sub/x", "read:/mnt/flat/sub/f")


@case
def bind_over_link(config, around):
    add_mount(config, "/link/inner", "bind", around.host("dir"), "bind", "ro")


@case
def tmpfs_options(config, around):
    add_mount(config, "/tmp", "tmpfs", "tmpfs", "nosuid", "nodev", "size=1m")
    add_mount(config, "/run", "tmpfs", "tmpfs", "noexec", "mode=0750", "nr_inodes=50", "uid=1000", "gid=1000")
    add_mount(config, "/ro", "tmpfs", "tmpfs", "ro", "relatime")
    set_args(config, "create:/tmp/x", "create:/ro/x")


@case
def tmpfs_copied_up(config, around):
    add_mount(config, "/data", "tmpfs", "tmpfs", "tmpcopyup", "nosuid")
    set_args(config, "read:/data/file", "read:/data/inner/file", "create:/data/x")


@case
def recursive_flags(config, around):
    add_mount(config, "/mnt/a", "bind", around.host("tree"), "rbind", "rro", "rnosuid")
    add_mount(config, "/mnt/b", "bind", around.host("tree"), "rbind", "rnodev", "rnoexec")
    set_args(config, "create:/mnt/a/x", "create:/mnt/a/sub/x", "create:/mnt/b/sub/x")


@case
def mount_times(config, around):
    add_mount(config, "/a", "tmpfs", "tmpfs", "noatime", "nodiratime")
    add_mount(config, "/b", "tmpfs", "tmpfs", "strictatime", "dirsync", "sync")
    add_mount(config, "/c", "proc", "proc", "ro")


@case
def propagation_slave(config, around):
    config["linux"]["rootfsPropagation"] = "rslave"


@case
def propagation_shared(config, around):
    config["linux"]["rootfsPropagation"] = "shared"


@case
def cgroup_view(config, around):
    add_mount(config, "/sys/fs/cgroup", "cgroup", "cgroup", "nosuid", "noexec", "nodev", "relatime", "ro")


# --- devices and resources ----------------------------------------------------------------------------------------


@case
def dev_of_the_root(config, around):
    config["mounts"] = [m for m in config["mounts"] if not m["destination"].startswith("/dev")]


@case
def devices(config, around):
    config["linux"]["devices"] = [
        {"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229, "fileMode": 0o600, "uid": 1000, "gid": 5},
        {"path": "/dev/deep/loop", "type": "b", "major": 7, "minor": 0, "fileMode": 0o640},
        {"path": "/dev/pipe", "type": "p", "fileMode": 0o622}]
    config["linux"]["resources"]["devices"].append(
        {"allow": True, "type": "c", "major": 10, "minor": 229, "access": "rwm"})
    set_args(config, "open:/dev/fuse", "open:/dev/deep/loop", "mknod:c:10:230")


@case
def device_rules(config, around):
    capabilities(config, **{name: DEFAULT_CAPS + ["CAP_MKNOD"] for name in ("bounding", "effective", "permitted")})
    config["linux"]["resources"]["devices"] += [
        {"allow": True, "type": "c", "access": "m"}, {"allow": True, "type": "b", "access": "m"},
        {"allow": True, "type": "c", "major": 1, "minor": 11, "access": "r"},
        {"allow": False, "type": "c", "major": 10, "minor": 229, "access": "m"}]
    set_args(config, "mknod:c:10:230", "mknod:c:5:1")


@case
def limits(config, around):
    config["linux"]["resources"].update({"memory": {"limit": 64 << 20, "reservation": 32 << 20},
                                         "cpu": {"shares": 512, "quota": 50000, "period": 100000},
                                         "pids": {"limit": 33}})
    add_mount(config, "/sys/fs/cgroup", "cgroup", "cgroup", "nosuid", "noexec", "nodev", "relatime", "ro")
    at = "read:/sys/fs/cgroup/"
    set_args(config, at + "memory/memory.limit_in_bytes", at + "memory/memory.soft_limit_in_bytes",
             at + "cpu/cpu.shares", at + "cpu/cpu.cfs_quota_us", at + "pids/pids.max")
