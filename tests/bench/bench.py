#!/usr/bin/python3
"""Ratios of one run, in turns: wherry against crun, runc and podman, and all against a bare C program.

Nothing is counted before it has been read back from the kernel that each runtime did what was asked: cgroup limits,
device filter, seccomp, capability sets, mounts; and of ours that what made the container was sealed in memory.
"""
import argparse
import errno
import fcntl
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))
import bundles  # noqa: E402
from facts import mounts  # noqa: E402
from runtimes import Runtime, remove_cgroups, run_quietly  # noqa: E402

CGROUP = "wherry-test-bench"
ROOT = "/sys/fs/cgroup"
MEMORY, PIDS, SHARES = 256 << 20, 200, 512
F_GET_SEALS, SEALED = 1034, 0x0f  # F_SEAL_SEAL, _SHRINK, _GROW, _WRITE (fcntl.h)


def make_bundle(path, facts, seccomp):
    os.makedirs(path)
    bundles.make_root(os.path.join(path, "rootfs"), facts)
    config = bundles.configuration()
    bundles.set_args(config, "exit:0")
    config["hostname"] = "bench"
    config["linux"]["cgroupsPath"] = f"/{CGROUP}/{os.path.basename(path)}"
    config["linux"]["resources"].update(memory={"limit": MEMORY}, cpu={"shares": SHARES}, pids={"limit": PIDS})
    if seccomp:
        config["linux"]["seccomp"] = bundles.default_seccomp(bundles.DEFAULT_CAPS)
    return config


def write_config(path, config):
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)


class PrivateTree:
    """A mount namespace that shows the v1 hierarchies only, which crun 1.8.1 and podman with it need here."""

    def __init__(self):
        script = ("mount --make-rprivate /sys/fs/cgroup; ! mountpoint -q /sys/fs/cgroup/unified || "
                  "umount /sys/fs/cgroup/unified; echo up; exec sleep 3600")
        self.process = subprocess.Popen(["/usr/bin/unshare", "--mount", "--propagation", "unchanged", "/bin/sh", "-c", script],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.process.stdout.readline()
        self.path = f"/proc/{self.process.pid}/ns/mnt"

    def close(self):
        self.process.kill()
        self.process.wait()


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def find(name, *hierarchies):
    for hierarchy in hierarchies:
        path = os.path.join(ROOT, hierarchy, CGROUP, name)
        if os.path.isdir(path):
            return path
    return ""


def check_cgroup(name, wrong):
    wanted = {"memory": [("memory.limit_in_bytes", str(MEMORY)), ("memory.max", str(MEMORY))],
              "pids": [("pids.max", str(PIDS))], "cpu": [("cpu.shares", str(SHARES)), ("cpu.weight", None)]}
    for controller, files in wanted.items():
        found = [(file, value, read(os.path.join(place, file))) for place in (find(name, controller, "unified", "."),)
                 for file, value in files if place and os.path.exists(os.path.join(place, file))]
        if not found or any(value is not None and value != seen for _, value, seen in found):
            wrong.append(f"{controller}: {found or 'no file'}")


def check_devices(name, wrong):
    unified = find(name, "unified", ".")
    if unified and os.path.exists(os.path.join(unified, "cgroup.procs")):
        shown = subprocess.run(["bpftool", "--json", "cgroup", "show", unified], capture_output=True, text=True,
                               check=False).stdout
        if re.search(r'"attach_type":\s*"(cgroup_)?device"', shown):
            return
    legacy = find(name, "devices")
    if not legacy:
        wrong.append("no device program and no place in the devices hierarchy")
    elif "a *:* rwm" in read(os.path.join(legacy, "devices.list")):
        wrong.append("devices.list allows all")


def check_process(pid, config, wrong):
    status = dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
    seccomp = "2" if config["linux"].get("seccomp") else "0"
    if status["Seccomp"] != seccomp or status["NoNewPrivs"] != "1":
        wrong.append(f"Seccomp {status['Seccomp']}, NoNewPrivs {status['NoNewPrivs']}")
    numbers = {"CAP_CHOWN": 0, "CAP_DAC_OVERRIDE": 1, "CAP_FOWNER": 3, "CAP_FSETID": 4, "CAP_KILL": 5, "CAP_SETGID": 6,
               "CAP_SETUID": 7, "CAP_SETPCAP": 8, "CAP_NET_BIND_SERVICE": 10, "CAP_SYS_CHROOT": 18, "CAP_SETFCAP": 31}
    sets = config["process"]["capabilities"]
    for field, name in (("CapBnd", "bounding"), ("CapEff", "effective"), ("CapPrm", "permitted"),
                        ("CapInh", "inheritable"), ("CapAmb", "ambient")):
        mask = sum(1 << numbers[cap] for cap in sets.get(name, []))
        if int(status[field], 16) != mask:
            wrong.append(f"{field} {status[field]}")


def check_mounts(pid, config, wrong):
    table = mounts(read(f"/proc/{pid}/mountinfo"))
    for mount in config["mounts"]:
        seen = table.get(mount["destination"])
        if not seen or seen["type"] != mount["type"]:
            wrong.append(f"{mount['destination']} is {seen}")
            continue
        options = seen["options"].split(",")
        wrong += [f"{mount['destination']} without {word}" for word in mount["options"]
                  if word in ("nosuid", "nodev", "noexec", "ro") and word not in options]
    wrong += [f"{path} is not covered" for path in ("/proc/kcore", "/proc/keys", "/sys/firmware")
              if os.path.exists(path) and path not in table]
    wrong += [f"{path} is not read-only" for path in ("/proc/sys", "/proc/bus")
              if "ro" not in table.get(path, {"options": ""})["options"].split(",")]
    if not {"mnt", "pid", "net", "ipc", "uts", "cgroup"} <= {kind for kind in os.listdir("/proc/self/ns") if
                                                             os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")}:
        wrong.append("a namespace is the host's")


def is_sealed(pid):
    """A memfd with all seals, or on a file system that is read-only (EROFS, where a plain file gives ETXTBSY)."""
    try:
        os.close(os.open(f"/proc/{pid}/exe", os.O_WRONLY))
        return False
    except OSError as error:
        if error.errno == errno.EROFS:
            return True
    fd = os.open(f"/proc/{pid}/exe", os.O_RDONLY)
    try:
        return fcntl.fcntl(fd, F_GET_SEALS) & SEALED == SEALED
    except OSError:  # EINVAL: no memfd
        return False
    finally:
        os.close(fd)


def verify(runtime, bundle, config):
    """Runs it once with a payload that waits, and reads all of it back. Tells what is not as asked."""
    waiting = json.loads(json.dumps(config))
    waiting["process"]["args"] = ["/bin/facts", "pause"]
    write_config(bundle, waiting)
    name, wrong = os.path.basename(bundle), []
    process = subprocess.Popen(runtime.command("run", "--bundle", bundle, "verify"), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    pid = wait_running(runtime, process)
    if not pid:
        process.kill()
        return [f"it does not run: {process.communicate()[1].decode().strip()[-300:]}"]
    check_cgroup(name, wrong)
    check_devices(name, wrong)
    check_process(pid, config, wrong)
    check_mounts(pid, config, wrong)
    if runtime.name == "wherry-oci" and not is_sealed(process.pid):
        wrong.append(f"/proc/{process.pid}/exe, which made it, is not sealed: {os.readlink(f'/proc/{process.pid}/exe')}")
    runtime.call("kill", "verify", "KILL")
    process.communicate(timeout=30)
    write_config(bundle, config)
    return wrong


def wait_running(runtime, process):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and process.poll() is None:
        state = runtime.call("state", "verify")
        if state.returncode == 0:
            document = json.loads(state.stdout)
            if document["status"] == "running" and read(f"/proc/{document['pid']}/comm") == "facts":
                return document["pid"]
        time.sleep(0.05)
    return 0


class Bench:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.turns, self.bare = (self.compile(name) for name in ("turns", "bare"))
        self.facts = os.path.join(work, "facts")
        shutil.copy(options.facts, self.facts)
        self.state = state = os.path.join(work, "state")  # as /run is on most machines
        os.mkdir(state)
        run_quietly("mount", "-t", "tmpfs", "tmpfs", state)
        self.tree = PrivateTree()  # a copy of this one's mounts: after the last of them
        ours = Runtime("wherry-oci", os.path.join(options.bin, "wherry-oci"), os.path.join(state, "ours"))
        crun = Runtime("crun", shutil.which("crun"), os.path.join(state, "crun"),
                       ["/usr/bin/nsenter", f"--mount={self.tree.path}", "--"])
        self.runtimes = [ours, crun, Runtime("runc", shutil.which("runc"), os.path.join(state, "runc"))]
        self.lines = []

    is_sealed = staticmethod(is_sealed)

    def compile(self, name):
        program = os.path.join(self.work, name)
        run_quietly("gcc", "-O2", "-static", "-o", program, os.path.join(HERE, name + ".c"))
        return program

    def say(self, line=""):
        print(line, flush=True)
        self.lines.append(line)

    def command(self, runtime, *words):
        """For turns: the namespace is entered by its child, in place of a program that does it."""
        if runtime.name == "crun":
            return [f"@{self.tree.path}", runtime.program, "--root", runtime.state, *words]
        return runtime.command(*words)

    def time(self, rounds, commands):
        words = []
        for command in commands:
            words += (["--"] if words else []) + command
        done = subprocess.run(["nice", "-n", "-10", self.turns, str(rounds), *words], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            return None, done.stderr.strip()[-400:]
        return [[float(word) / 1000 for word in line.split()] for line in done.stdout.splitlines()], ""

    def table(self, title, names, commands, rounds, aims=()):
        """Medians and 90th percentiles in ms, and the ratio of the first to each other."""
        lines, error = self.time(rounds, commands)
        took, used = (lines[0::2], lines[1::2]) if lines else (None, None)
        self.say(f"\n{title} ({rounds} rounds in turns)\n")
        if took is None:
            self.say(f"n/a: {error}")
            return
        self.say("| | median ms | p90 ms | ours / it | CPU ms | ours / it |\n|---|---|---|---|---|---|")
        first, least = statistics.median(took[0]), statistics.median(used[0])
        for name, times, cpu in zip(names, took, used):
            median, p90, busy = statistics.median(times), statistics.quantiles(times, n=10)[-1], statistics.median(cpu)
            self.say(f"| {name} | {median:.2f} | {p90:.2f} | {first / median:.2f} | {busy:.2f} | {least / busy:.2f} |")
        for name, aim in aims:
            if name in names:
                ratio = first / statistics.median(took[names.index(name)])
                self.say(f"\naim {aim} of {name}: {'met' if ratio <= aim else 'NOT met'} ({ratio:.2f})")

    def runs(self, title, seccomp):
        bundle = os.path.join(self.work, "seccomp" if seccomp else "plain")
        config = make_bundle(bundle, self.facts, seccomp)
        good = []
        for runtime in self.runtimes:
            wrong = verify(runtime, bundle, config)
            self.say(f"read back, {runtime.name}: {'as asked' if not wrong else 'NOT COUNTED: ' + '; '.join(wrong)}")
            if not wrong:
                good.append(runtime)
        if not good or good[0].name != "wherry-oci":
            self.say(f"\n{title}: n/a")
            return
        commands = [self.command(runtime, "run", "--bundle", bundle, "bench") for runtime in good]
        commands.append([self.bare, os.path.join(bundle, "rootfs"), "/bin/facts", "exit:0"])
        self.table(title, [runtime.name for runtime in good] + ["bare C program"], commands, self.options.rounds,
                   (("crun", 0.7), ("runc", 0.25)))

    def execs(self):
        bundle = os.path.join(self.work, "exec")
        config = make_bundle(bundle, self.facts, False)
        config["process"]["args"] = ["/bin/facts", "pause"]
        commands = []
        for runtime in self.runtimes:
            config["linux"]["cgroupsPath"] = f"/{CGROUP}/exec-{runtime.name}"
            write_config(bundle, config)
            subprocess.run(runtime.command("run", "--detach", "--bundle", bundle, "held"), stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            commands.append(self.command(runtime, "exec", "held", "/bin/facts", "exit:0"))
        self.table("exec", [runtime.name for runtime in self.runtimes], commands, self.options.rounds)
        for runtime in self.runtimes:
            runtime.call("delete", "--force", "held")

    def close(self):
        for runtime in self.runtimes:
            for left in runtime.left_over():
                runtime.call("delete", "--force", left)
        self.tree.close()
        run_quietly("umount", os.path.join(self.work, "state"))
        remove_cgroups(CGROUP)


def version(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return re.sub(r"\s+", " ", done.stdout.splitlines()[0]) if done.stdout else "?"


def surroundings(bench):
    cpu = next(line.split(":", 1)[1].strip() for line in read("/proc/cpuinfo").splitlines() if "model name" in line)
    bench.say(f"{time.strftime('%Y-%m-%d %H:%M')}, {os.cpu_count()} CPUs ({cpu}), Linux {os.uname().release}, "
              f"load {os.getloadavg()[0]:.1f}")
    bench.say(", ".join([version(os.path.join(bench.options.bin, "wherry-oci"), "--version"), version("crun", "--version"),
                         version("runc", "--version"), version("podman", "--version")]) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, help="release programs")
    parser.add_argument("--facts", required=True, help="the payload")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--pods", type=int, default=15, help="rounds of wherry run and podman run; 0: none")
    parser.add_argument("--output", help="write the lines there as well")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    work = tempfile.mkdtemp(prefix="wherry-bench.")
    bench = Bench(options, work)
    try:
        surroundings(bench)
        bench.runs("run, without seccomp", False)
        bench.say()
        bench.runs("run, with the default seccomp profile", True)
        bench.execs()
        if options.pods:
            import pods
            pods.measure(bench, options.pods)
    finally:
        bench.close()
        shutil.rmtree(work, ignore_errors=True)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write("\n".join(bench.lines) + "\n")
    return 1 if any("NOT COUNTED" in line for line in bench.lines) else 0


if __name__ == "__main__":
    sys.exit(main())
