"""wherry run against podman run, and what a pod's keeper and worker keep in memory."""
import json
import os
import shutil
import subprocess
import time

from facts import mounts

IMAGE = "localhost/wherry-bench:1"
MEMORY, PIDS = 256 << 20, 200
LIMITS = ["--network", "none", "--pids-limit", str(PIDS), "--memory", "256m"]
# podman would raise these above what the machine of the bench allows.
PODMAN_LIMITS = ["--ulimit", "nofile=20000:20000", "--ulimit", "nproc=1000:1000"]
CAP_SYS_ADMIN = 21


class Engine:
    """One of the two command lines."""

    def __init__(self, name, program, flags, run_flags, namespace=""):
        self.name, self.program, self.flags, self.run_flags, self.namespace = name, program, flags, run_flags, namespace

    def call(self, *words):
        enter = ["/usr/bin/nsenter", f"--mount={self.namespace}", "--"] if self.namespace else []
        return subprocess.run([*enter, self.program, *self.flags, *words], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, timeout=60)

    def timed(self, *words):
        return ([f"@{self.namespace}"] if self.namespace else []) + [self.program, *self.flags, *words]

    def run(self, *words):
        return ["run", *LIMITS, *self.run_flags, *words]


def engines(bench):
    """What lasts is on a disk and what is of a boot in memory, for both: as /var/lib and /run are on most machines."""
    disk, memory = bench.work, bench.state
    flags = ["--root", os.path.join(disk, "w-root"), "--state", os.path.join(memory, "w-state"),
             "--cgroup-parent", "/wherry-test-bench/pods"]
    peers = ["--root", os.path.join(disk, "p-root"), "--runroot", os.path.join(memory, "p-run"),
             "--tmpdir", os.path.join(memory, "p-tmp")]
    return (Engine("wherry", os.path.join(bench.options.bin, "wherry"), flags, []),
            Engine("podman", shutil.which("podman"), peers, PODMAN_LIMITS, bench.tree.path))


def make_archive(bench):
    """The payload alone, as a root file system for both."""
    root = os.path.join(bench.work, "image")
    os.makedirs(os.path.join(root, "bin"))
    shutil.copy(bench.facts, os.path.join(root, "bin/true"))
    archive = os.path.join(bench.work, "image.tar")
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    return archive


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def own_group(pid, controller):
    for line in read(f"/proc/{pid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return f"/sys/fs/cgroup/{controller or 'unified'}{path}"
    return "/sys/fs/cgroup" + read(f"/proc/{pid}/cgroup").rsplit("::", 1)[1]


def limit(pid, controller, *files):
    group = own_group(pid, controller)
    return next((read(os.path.join(group, name)) for name in files if os.path.exists(os.path.join(group, name))), "none")


def device_filter(engine, pid):
    if engine.name == "podman":
        group = own_group(pid, "devices")
        return "a *:* rwm" not in read(os.path.join(group, "devices.list")) and group.count("/") > 4
    shown = subprocess.run(["bpftool", "--json", "cgroup", "show", own_group(pid, "")], capture_output=True, text=True,
                           check=False).stdout
    return "wherry_devices" in shown


def read_back(bench, engine):
    """A container that waits, looked at from the host. Tells what is not as asked."""
    done = engine.call(*engine.run("-d", "--name", "verify", IMAGE, "/bin/true", "pause"))
    if done.returncode != 0:
        return [done.stderr.strip()[-300:]]
    try:
        shown = json.loads(engine.call("inspect", "verify").stdout)
        if engine.name == "podman":
            pid, worker = shown[0]["State"]["Pid"], 0
        else:
            pid, worker = shown["containers"][0]["pid"], shown["shimPid"]
        status = dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
        table = mounts(read(f"/proc/{pid}/mountinfo"))
        asked = {
            "memory limit": limit(pid, "memory", "memory.limit_in_bytes", "memory.max") == str(MEMORY),
            "pids limit": limit(pid, "pids", "pids.max") == str(PIDS),
            "device filter": device_filter(engine, pid),
            "seccomp": status["Seccomp"] == "2",
            "capabilities": not int(status["CapBnd"], 16) >> CAP_SYS_ADMIN & 1,
            "masked paths": "/proc/keys" in table and "/sys/firmware" in table,
            "read-only paths": "ro" in table.get("/proc/sys", {"options": ""})["options"].split(","),
            "own network": os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"),
            "sealed worker": worker == 0 or bench.is_sealed(worker),
        }
        return [f"{what} is not as asked" for what, good in asked.items() if not good]
    finally:
        engine.call("rm", "-f", "verify")


def memory_of(pid):
    return next(int(line.split()[1]) for line in read(f"/proc/{pid}/smaps_rollup").splitlines() if line.startswith("Pss:"))


def held_in_memory(ours, count=8):
    """PSS of keeper and worker per pod, with `count` pods at once."""
    names = [f"mem{number}" for number in range(count)]
    try:
        for name in names:
            done = ours.call(*ours.run("-d", "--name", name, IMAGE, "/bin/true", "pause"))
            if done.returncode != 0:
                return f"n/a: {done.stderr.strip()[-300:]}"
        time.sleep(1)
        keepers, workers = [], []
        for name in names:
            shown = json.loads(ours.call("inspect", name).stdout)
            keepers.append(memory_of(shown["keeperPid"]))
            workers.append(memory_of(shown["shimPid"]))
        return (f"{(sum(keepers) + sum(workers)) / count:.0f} kB per pod with {count} pods at once "
                f"(keeper {sum(keepers) / count:.0f}, worker {sum(workers) / count:.0f})")
    finally:
        for name in names:
            ours.call("rm", "-f", name)


def measure(bench, rounds):
    ours, podman = engines(bench)
    if not os.access(ours.program, os.X_OK):
        bench.say(f"\nwherry run against podman run: n/a ('{ours.program}' is not built)")
        bench.say("memory of keeper and worker: n/a")
        return
    archive = make_archive(bench)
    try:
        for done in (podman.call("import", "--quiet", archive, IMAGE), ours.call("image", "import", archive, IMAGE)):
            if done.returncode != 0:
                bench.say(f"\nwherry run against podman run: n/a (import: {(done.stderr or done.stdout).strip()[-300:]})")
                return
        bench.say()
        counted = True
        for engine in (ours, podman):
            wrong = read_back(bench, engine)
            bench.say(f"read back, {engine.name} run: {'as asked' if not wrong else 'NOT COUNTED: ' + '; '.join(wrong)}")
            counted = counted and not wrong
        if counted:
            commands = [engine.timed(*engine.run("--rm", IMAGE, "/bin/true", "exit:0")) for engine in (ours, podman)]
            bench.table("wherry run --rm against podman run --rm", ["wherry", "podman"], commands, rounds,
                        (("podman", 0.15),))
        bench.say(f"\nmemory of keeper and worker (PSS): {held_in_memory(ours)}")
    finally:
        podman.call("rmi", "--force", IMAGE)
