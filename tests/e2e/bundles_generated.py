"""Bundles by table: one field, or one pair of fields, with one value each. Added to those that are written by hand."""
import itertools

from bundles import CASES, DEFAULT_CAPS, add_mount, capabilities, set_args

RLIMITS = {"AS": 1 << 34, "CPU": 100, "DATA": 1 << 33, "FSIZE": 1 << 20, "LOCKS": 10, "MEMLOCK": 1 << 16,
           "MSGQUEUE": 8192, "NICE": 0, "RSS": 1 << 30, "RTPRIO": 0, "RTTIME": 1000000, "SIGPENDING": 100}
# What the bundles, these and those by hand, have to cover (members of the runtime-spec's config.json).
FIELDS = """
process.terminal process.consoleSize.height process.consoleSize.width process.user.uid process.user.gid
process.user.umask process.user.additionalGids process.args process.env process.cwd process.noNewPrivileges
process.capabilities.bounding process.capabilities.effective process.capabilities.permitted
process.capabilities.inheritable process.capabilities.ambient process.rlimits.type process.rlimits.soft
process.rlimits.hard process.oomScoreAdj root.path root.readonly hostname mounts.destination mounts.type
mounts.source mounts.options hooks.prestart hooks.createRuntime hooks.createContainer hooks.startContainer
hooks.poststart hooks.poststop annotations linux.namespaces.type linux.namespaces.path linux.uidMappings.containerID
linux.uidMappings.hostID linux.uidMappings.size linux.gidMappings linux.devices.path linux.devices.type
linux.devices.major linux.devices.minor linux.devices.fileMode linux.devices.uid linux.devices.gid linux.cgroupsPath
linux.sysctl linux.seccomp.defaultAction linux.seccomp.architectures linux.seccomp.syscalls.names
linux.seccomp.syscalls.action linux.seccomp.syscalls.errnoRet linux.seccomp.syscalls.args.index
linux.seccomp.syscalls.args.value linux.seccomp.syscalls.args.valueTwo linux.seccomp.syscalls.args.op
linux.rootfsPropagation linux.maskedPaths linux.readonlyPaths linux.personality.domain
linux.resources.devices.allow linux.resources.devices.type linux.resources.devices.major
linux.resources.devices.minor linux.resources.devices.access linux.resources.memory.limit
linux.resources.memory.reservation linux.resources.cpu.shares linux.resources.cpu.quota linux.resources.cpu.period
linux.resources.pids.limit
""".split()
# Words of a mount, for a new file system and for a bind (read-only words and times that a peer refuses are left out).
NEW_WORDS = ("ro", "rw", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "relatime", "strictatime", "sync")
BIND_WORDS = ("ro", "rw", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "strictatime")
PROPAGATIONS = ("private", "rprivate", "slave", "rslave", "unbindable")
SYSCTLS = {"net.ipv4.tcp_syncookies": "0", "net.ipv4.ping_group_range": "0 100", "net.core.somaxconn": "99",
           "net.ipv4.conf.all.forwarding": "1", "kernel.sem": "10 20 30 40", "kernel.shmall": "1000",
           "fs.mqueue.msg_max": "12", "net.ipv6.conf.lo.disable_ipv6": "1"}
MASKABLE = ("/proc/kcore", "/data", "/data/inner", "/data/file", "/bin/plain", "/none/there")


def table(name, values, edit):
    """A case for each value: edit(config, value); `values` is a list, or a table of label and value."""
    pairs = values.items() if isinstance(values, dict) else ((str(value), value) for value in values)
    for label, value in pairs:
        word = "".join(char if char.isalnum() else "-" for char in label).strip("-").lower()
        CASES[f"{name}-{word}"] = lambda config, around, value=value: edit(config, value)


def process(field):
    def edit(config, value):
        config["process"][field] = value
    return edit


def user(config, value):
    config["process"]["user"] = value


def sets(config, value):
    uid, names = value
    config["process"]["user"] = {"uid": uid, "gid": uid}
    capabilities(config, **names)


def without_namespaces(config, kinds):
    config["linux"]["namespaces"] = [ns for ns in config["linux"]["namespaces"] if ns["type"] not in kinds]
    if "uts" in kinds:
        del config["hostname"]
    if "network" in kinds:  # a sysfs of the host's network: what is in it is the host's
        config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] != "/sys"]


def rlimit(config, value):
    kind, limit = value
    config["process"]["rlimits"] = [{"type": "RLIMIT_" + kind, "soft": limit // 2, "hard": limit}]


def tmpfs(config, words):
    add_mount(config, "/mnt", "tmpfs", "tmpfs", *words)
    set_args(config, "create:/mnt/x")


def bind(config, words):
    add_mount(config, "/mnt", "bind", "/usr/share", "bind", *words)


def masked(config, path):
    config["linux"]["maskedPaths"], config["linux"]["readonlyPaths"] = [path], []
    set_args(config, "read:" + path, "read:" + path + "/file", "write:" + path)


def read_only(config, path):
    config["linux"]["maskedPaths"], config["linux"]["readonlyPaths"] = [], [path]
    set_args(config, "read:" + path, "create:" + path + "/x", "write:" + path)


def sysctl(config, pair):
    config["linux"]["sysctl"] = {pair[0]: pair[1]}
    set_args(config, "read:/proc/sys/" + pair[0].replace(".", "/"))


def device(config, value):
    config["linux"]["devices"] = [value]
    rule = {"allow": True, "type": value["type"], "access": "rwm"}
    if value["type"] != "p":
        config["linux"]["resources"]["devices"].append({**rule, "major": value["major"], "minor": value["minor"]})
    set_args(config, "open:" + value["path"])


def rule(config, value):
    config["linux"]["resources"]["devices"].append({"allow": True, **value})
    capabilities(config, **{kind: DEFAULT_CAPS + ["CAP_MKNOD"] for kind in ("bounding", "effective", "permitted")})
    set_args(config, "mknod:c:10:230", "mknod:c:1:11", "mknod:b:7:0", "open:/dev/null", "open:/dev/full")


def hook(config, kind):
    program = "/bin/facts" if kind == "startContainer" else "/bin/true"
    config["hooks"] = {kind: [{"path": program, "args": ["true", "exit:0"], "env": ["A=b"], "timeout": 5}]}


def action(config, value):
    config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"],
                                  "syscalls": [value]}


def arguments(config, args):
    config["process"]["args"] = args


def annotations(config, value):
    config["annotations"] = value


def root(config, value):
    config["root"]["readonly"] = value[0]
    config["process"]["cwd"] = value[1]
    set_args(config, "create:/data/x", "create:/x", "create:/dev/shm/x")


def personality(config, domain):
    config["linux"]["personality"] = {"domain": domain}


def console(config, size):
    config["process"]["terminal"] = True
    config["process"]["consoleSize"] = size


def rootfs_propagation(config, word):
    config["linux"]["rootfsPropagation"] = word


table("user", {"groups-none": {"uid": 0, "gid": 0, "additionalGids": []}, "groups-many":
               {"uid": 0, "gid": 0, "additionalGids": list(range(100, 140))}, "gid-alone": {"uid": 0, "gid": 1000},
               "uid-alone": {"uid": 1000, "gid": 0}, "largest": {"uid": 2147483647, "gid": 2147483646},
               "root-by-groups": {"uid": 1000, "gid": 1000, "additionalGids": [0]},
               "umask-0": {"uid": 0, "gid": 0, "umask": 0}, "umask-27": {"uid": 1, "gid": 1, "umask": 0o27}}, user)
table("caps", {f"{cap}-{uid}": (uid, {kind: [cap] for kind in ("bounding", "effective", "permitted")})
               for cap in ("CAP_CHOWN", "CAP_SYS_ADMIN", "CAP_AUDIT_READ") for uid in (0, 1000)}, sets)
table("caps", {f"ambient-{uid}": (uid, {kind: ["CAP_CHOWN", "CAP_KILL"] for kind in
                                        ("bounding", "effective", "permitted", "inheritable", "ambient")})
               for uid in (0, 1000)}, sets)
table("caps", {"permitted-only": (0, {"bounding": ["CAP_KILL"], "permitted": ["CAP_KILL"]}),
               "inheritable-user": (1000, {"bounding": ["CAP_KILL"], "inheritable": ["CAP_KILL"]})}, sets)
table("rlimit", {kind: (kind, limit) for kind, limit in RLIMITS.items()}, rlimit)
table("oom", [0, 1, 999, 1000], process("oomScoreAdj"))
table("cwd", ["/", "/tmp", "/data/inner", "/link", "/link/inner", "/proc/self"], process("cwd"))
table("env", {"none": [], "path-only": ["PATH=/bin"], "empty-value": ["PATH=/bin", "X=", "HOME="],
              "long": ["PATH=/bin", "X=" + "y" * 60000], "many": ["PATH=/bin"] + [f"V{i}={i}" for i in range(500)],
              "bytes": ["PATH=/bin", "X=ä€\u0001"]}, process("env"))
table("args", {"one-empty": ["/bin/facts", ""], "long": ["/bin/facts", "z" * 100000],
               "many": ["/bin/facts"] + [str(i) for i in range(2000)], "dots": ["/bin/../bin/./facts"],
               "by-link": ["/link/../bin/facts"]}, arguments)
table("privileges", {"new": False, "no-new": True}, process("noNewPrivileges"))
table("without", {"-".join(kinds): kinds for count in (1, 2)
                  for kinds in itertools.combinations(("network", "ipc", "uts", "cgroup"), count)}, without_namespaces)
table("tmpfs", {word: [word] for word in NEW_WORDS}, tmpfs)
table("tmpfs", {"size": ["size=64k"], "inodes": ["nr_inodes=9"], "mode": ["mode=1700"], "owner": ["uid=5", "gid=6"],
                "last-wins": ["ro", "rw", "nosuid", "suid"]}, tmpfs)
table("bind", {word: [word] for word in BIND_WORDS}, bind)
table("bind", {"hard": ["nosuid", "nodev", "noexec", "ro"], "last-wins": ["ro", "rw"]}, bind)
table("masked", MASKABLE, masked)
table("read-only", ("/proc/sys", "/data", "/data/inner", "/data/file", "/none/there"), read_only)
table("sysctl", {key: (key, value) for key, value in SYSCTLS.items()}, sysctl)
table("device", {"char": {"path": "/dev/c", "type": "c", "major": 1, "minor": 3, "fileMode": 0o600},
                 "block": {"path": "/dev/b", "type": "b", "major": 7, "minor": 1, "fileMode": 0o660, "gid": 6},
                 "owner": {"path": "/dev/o", "type": "c", "major": 1, "minor": 5, "uid": 7, "gid": 8},
                 "deep": {"path": "/dev/a/b/c", "type": "c", "major": 1, "minor": 7},
                 "elsewhere": {"path": "/data/null", "type": "c", "major": 1, "minor": 3}}, device)
table("rule", {"char": {"type": "c", "major": 10, "minor": 230, "access": "m"},
               "block": {"type": "b", "major": 7, "access": "rwm"}, "minor": {"type": "c", "major": 1, "access": "m"}},
      rule)
table("hook", ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"], hook)
table("seccomp", {"errno": {"names": ["mknod", "mknodat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 5},
                  "log": {"names": ["keyctl"], "action": "SCMP_ACT_LOG"},
                  "argument": {"names": ["personality"], "action": "SCMP_ACT_ERRNO",
                               "args": [{"index": 0, "value": 8, "op": "SCMP_CMP_EQ"}]},
                  "masked": {"names": ["clone"], "action": "SCMP_ACT_ERRNO",
                             "args": [{"index": 0, "value": 0x10000000, "valueTwo": 0x10000000,
                                       "op": "SCMP_CMP_MASKED_EQ"}]}}, action)
table("root", {f"{'ro' if only else 'rw'}-{cwd}": (only, cwd) for only in (True, False) for cwd in ("/", "/data")}, root)
table("personality", ["LINUX"], personality)
table("console", {"small": {"height": 5, "width": 20}, "wide": {"height": 24, "width": 300}}, console)
table("rootfs", PROPAGATIONS, rootfs_propagation)
table("annotations", {"some": {"org.example.key": "value", "empty": ""}}, annotations)
