"""Exit codes, verbs in the wrong state, state documents and exec: the same from all three runtimes."""
import json
import os
import signal
import subprocess
import time

import bundles
import facts

CHECKS = {}
ID = "life"


def check(function):
    CHECKS[function.__name__.replace("_", "-")] = function
    return function


class Stage:
    def __init__(self, work, program, runtimes, differences):
        self.work, self.program, self.runtimes, self.differences = work, program, runtimes, differences
        self.bundle = os.path.join(work, "bundle")

    def make(self, edit=None):
        subprocess.run(["rm", "-rf", self.bundle], check=True)
        os.mkdir(self.bundle)
        config = bundles.configuration()
        bundles.make_root(os.path.join(self.bundle, "rootfs"), self.program)
        if edit:
            edit(config)
        with open(os.path.join(self.bundle, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)

    def codes(self, edit, *words):
        """The exit code of one call in a fresh bundle, by runtime."""
        result = {}
        for runtime in self.runtimes:
            self.make(edit)
            result[runtime.name] = runtime.call(*(words or ("run", "--bundle", self.bundle, ID))).returncode
        return result


def args(*words):
    def edit(config):
        config["process"]["args"] = list(words)
    return edit


def unequal(what, values):
    """The same everywhere, or a line that tells."""
    return [] if len({json.dumps(value) for value in values.values()}) == 1 else [f"  {what}: {values}"]


def detached(runtime, stage):
    """A container that runs; its pipes must not keep us."""
    return subprocess.run(runtime.command("run", "--detach", "--bundle", stage.bundle, ID), check=False, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


def end(runtime):
    runtime.call("delete", "--force", ID)


def wait_stopped(runtime):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        state = runtime.call("state", ID)
        if state.returncode != 0 or json.loads(state.stdout)["status"] == "stopped":
            return
        time.sleep(0.02)


@check
def exit_codes(stage):
    lines = []
    for code in (0, 1, 2, 7, 125, 126, 127, 128, 137, 255):
        found = stage.codes(args("/bin/facts", f"exit:{code}"))
        lines += unequal(f"exit {code}", found)
        if found["wherry-oci"] != code:
            lines.append(f"  exit {code}: ours is {found['wherry-oci']}")
    return lines


@check
def exit_by_signal(stage):
    def without_pid_namespace(*words):
        def edit(config):
            config["process"]["args"] = list(words)
            kinds = config["linux"]["namespaces"]
            config["linux"]["namespaces"] = [kind for kind in kinds if kind["type"] != "pid"]
        return edit

    lines = []
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1):
        found = stage.codes(without_pid_namespace("/bin/facts", f"signal:{int(number)}"))
        lines += unequal(f"signal {int(number)}", found)
        if found["wherry-oci"] != 128 + number:
            lines.append(f"  signal {int(number)}: ours is {found['wherry-oci']}")
    return lines


@check
def program_cannot_run(stage):
    """runc and crun say 1 for all of these; ours has to fail as well and leave nothing."""
    lines = []
    for what, words in {"missing": ["/bin/nonesuch"], "missing in PATH": ["nonesuch"], "not executable": ["/bin/plain"],
                        "directory": ["/etc"], "bad format": ["/bin/script"]}.items():
        found = stage.codes(args(*words))
        lines += unequal(what, {name: code != 0 for name, code in found.items()})
    return lines


@check
def state_document(stage):
    lines = []
    for runtime in stage.runtimes:
        stage.make(lambda config: config.update(annotations={"org.example.a": "b"}) or args("/bin/facts", "pause")(config))
        before = runtime.call("create", "--bundle", stage.bundle, ID)
        if before.returncode != 0:
            lines.append(f"  {runtime.name}: create: {before.stderr.strip()}")
            continue
        for status, verb in (("created", "start"), ("running", "kill")):
            state = json.loads(runtime.call("state", ID).stdout)
            wanted = {"id": ID, "status": status, "bundle": stage.bundle, "annotations": {"org.example.a": "b"}}
            lines += [f"  {runtime.name} {status}: {key} is {state.get(key)}" for key, value in wanted.items()
                      if state.get(key) != value]
            if not state.get("ociVersion") or not os.path.isdir(f"/proc/{state.get('pid')}"):
                lines.append(f"  {runtime.name} {status}: ociVersion or pid is wrong: {state}")
            if runtime.call(verb, ID).returncode != 0:
                lines.append(f"  {runtime.name}: {verb} fails")
        wait_stopped(runtime)
        state = json.loads(runtime.call("state", ID).stdout)
        if state["status"] != "stopped" or state.get("pid", 0) != 0:
            lines.append(f"  {runtime.name} stopped: {state}")
        lines += [f"  {runtime.name}: delete fails"] if runtime.call("delete", ID).returncode != 0 else []
    return lines


def verdicts(runtime, stage):
    """Which calls fail, in an order that walks through all states."""
    stage.make(args("/bin/facts", "pause"))
    create = ("create", "--bundle", stage.bundle, ID)
    steps = [("state", ID), ("start", ID), ("kill", ID), ("delete", ID), ("delete", "--force", ID), ("exec", ID, "/bin/facts"),
             create, create, ("start", ID), ("start", ID), ("delete", ID),
             ("exec", ID, "/bin/facts", "exit:9"), ("exec", ID, "/bin/nonesuch"), ("kill", ID, "0"), ("kill", ID, "NOSUCH"),
             ("kill", ID, "SIGTERM")]
    seen = []
    for number, step in enumerate(steps):
        result = run_step(runtime, step)
        code = result if step[0] == "exec" and result == 9 else int(result != 0)
        seen.append(f"{number} {' '.join(word for word in step if not word.startswith('/tmp'))}: {code}")
    wait_stopped(runtime)
    for step in (("kill", ID), ("exec", ID, "/bin/facts", "exit:0"), ("start", ID), ("delete", ID), ("state", ID)):
        seen.append(f"stopped {' '.join(step)}: {int(run_step(runtime, step) != 0)}")
    return seen


def run_step(runtime, step):
    return subprocess.run(runtime.command(*step), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=60, check=False).returncode


@check
def verbs_in_every_state(stage):
    """As runc, whose command line this is; crun takes signals that are none."""
    ours, runc = [verdicts(runtime, stage) for runtime in stage.runtimes if runtime.name != "crun"]
    return [f"  {mine}, but runc {other[-1]}" for mine, other in zip(ours, runc) if mine != other]


@check
def bad_documents(stage):
    """What none of the three may accept."""
    def without(key):
        return lambda config: config.pop(key)

    edits = {
        "no process": without("process"), "no root": without("root"),
        "no args": args(),
        "relative cwd": lambda config: config["process"].update(cwd="home"),
        "unknown namespace": lambda config: config["linux"]["namespaces"].append({"type": "moon"}),
        "namespace twice": lambda config: config["linux"]["namespaces"].append({"type": "pid"}),
        "namespace of another kind": lambda config: config["linux"]["namespaces"].__setitem__(
            1, {"type": "network", "path": "/proc/self/ns/uts"}),
        "host sysctl": lambda config: config["linux"].update(sysctl={"vm.swappiness": "1"}),
        "root is a file": lambda config: config["root"].update(path="config.json"),
        "missing bind source": lambda config: bundles.add_mount(config, "/x", "bind", "/nonesuch", "bind"),
        "unknown filesystem": lambda config: bundles.add_mount(config, "/x", "nofs", "nofs"),
        "unknown rlimit": lambda config: config["process"].update(rlimits=[{"type": "RLIMIT_MOON", "soft": 1, "hard": 1}]),
    }
    lines = []
    for what, edit in edits.items():
        found = stage.codes(edit)
        if found["wherry-oci"] == 0:
            lines.append(f"  {what}: accepted ({found})")
    return lines


EXECS = {
    "plain": [], "user": ["--user", "1000:1000"], "environment": ["--env", "A=1", "--env", "PATH=/nowhere"],
    "directory": ["--cwd", "/data"], "groups": ["--user", "1000", "--additional-gids", "5"],
}


def exec_facts(runtime, flags, command):
    # Pipes, as for the runs: crun and runc give what stdin is to the user, and /dev/null is the host's.
    done = subprocess.run(runtime.command("exec", *flags, ID, *command), input="", capture_output=True, text=True,
                          timeout=60, check=False)
    if done.returncode != 0:
        return None, f"  {runtime.name}: {' '.join(flags)}: {done.returncode} {done.stderr.strip()[-300:]}"
    return facts.normalise(done.stdout, {}), ""


def exec_in_all(stage, flags, command=("/bin/facts",), edit=None):
    def pausing(config):
        if edit:
            edit(config)
        config["process"]["args"] = ["/bin/facts", "pause"]

    results, lines = {}, []
    for runtime in stage.runtimes:
        stage.make(pausing)
        if detached(runtime, stage) != 0:
            lines.append(f"  {runtime.name}: run --detach fails")
            continue
        results[runtime.name], error = exec_facts(runtime, flags, command)
        lines += [error] if error else []
        end(runtime)
    # The specification has no exec, and crun lacks some of runc's flags: a fact has to be as with one of the two.
    ours, peers = results.pop("wherry-oci", None), [facts_of for facts_of in results.values() if facts_of]
    if not ours or not peers:
        return lines or ["  nobody to compare with"]
    return [f"  {fact}: ours {ours.get(fact)}, peers {[theirs.get(fact) for theirs in peers]}"
            for fact in sorted(set(ours).union(*peers)) if all(ours.get(fact) != theirs.get(fact) for theirs in peers)
            and not stage.differences.allows("exec", "runc", fact, ours.get(fact), peers[0].get(fact))]


def add_exec_check(name, flags):
    CHECKS[f"exec-{name}"] = lambda stage: exec_in_all(stage, flags)


for _name, _flags in EXECS.items():
    add_exec_check(_name, _flags)


@check
def exec_process_document(stage):
    path = os.path.join(stage.work, "process.json")
    process = bundles.configuration()["process"]
    process.update(args=["/bin/facts", "one"], cwd="/etc", user={"uid": 1000, "gid": 1000, "umask": 0o27},
                   capabilities={"bounding": ["CAP_KILL"]}, rlimits=[{"type": "RLIMIT_NOFILE", "soft": 50, "hard": 60}])
    with open(path, "w", encoding="utf-8") as file:
        json.dump(process, file)
    return exec_in_all(stage, ["--process", path], ())


@check
def exec_seccomp(stage):
    def edit(config):
        config["linux"]["seccomp"] = bundles.default_seccomp(bundles.DEFAULT_CAPS)
    return exec_in_all(stage, [], edit=edit)
