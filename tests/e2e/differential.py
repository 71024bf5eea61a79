#!/usr/bin/python3
"""The same bundles through wherry-oci, crun and runc: what a process sees inside must be the same.

A difference passes only when differences.json has a sentence of the specification (or of the kernel's documentation)
for it. Called by differential_test.sh in a mount namespace of its own; prints a PASS, FAIL or SKIP line per bundle.
"""
import argparse
import functools
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile

import bundles
import bundles_generated  # adds its own to bundles.CASES
import facts
import lifecycle
from runtimes import CGROUP, Helper, all_runtimes, remove_cgroups, run_quietly

COVERED = set()  # of all bundles that were made
LEAST_BUNDLES = 150
HERE = os.path.dirname(os.path.abspath(__file__))


class Surroundings:
    """What a bundle may refer to outside of itself; made anew for each run of each runtime."""

    def __init__(self, work):
        self.work = work
        self.bundle = os.path.join(work, "bundle")
        self.preserve_fds = 0
        self.helper = None
        shutil.rmtree(self.bundle, ignore_errors=True)
        os.mkdir(self.bundle)

    def namespace(self, kind):
        self.helper = self.helper or Helper()
        return self.helper.namespace(kind)

    def host(self, name):
        return os.path.join(self.work, "host", name)

    def joined(self):
        return self.helper.joined() if self.helper else {}

    def close(self):
        if self.helper:
            self.helper.close()


def make_host_files(work):
    host = os.path.join(work, "host")
    for name in ("dir", "tree/sub"):
        os.makedirs(os.path.join(host, name))
    for name in ("file", "dir/file"):
        with open(os.path.join(host, name), "w", encoding="utf-8") as file:
            file.write(name + "\n")
    run_quietly("mount", "--bind", host + "/tree", host + "/tree")
    run_quietly("mount", "--make-shared", host + "/tree")
    run_quietly("mount", "-t", "tmpfs", "-o", "size=1m,nosuid", "tmpfs", host + "/tree/sub")


def members(value, name=""):
    """The members of a document, as bundles_generated.FIELDS names them; values that say nothing do not count."""
    if isinstance(value, list):
        for element in value:
            yield from members(element, name)
    elif value is not None:
        yield name
        for key, member in (value.items() if isinstance(value, dict) else ()):
            yield from members(member, f"{name}.{key}" if name else key)


def make_bundle(around, program, edit):
    config = bundles.configuration()
    bundles.make_root(os.path.join(around.bundle, "rootfs"), program)
    edit(config, around)
    COVERED.update(members(config))
    with open(os.path.join(around.bundle, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    return config


def run_in_terminal(command):
    """The output of a command whose stdin, stdout and stderr are a terminal, and its status."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    output = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # EIO: the other side is closed
            break
        if not chunk:
            break
        output += chunk
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output.decode(), ""


def collect(runtime, around, config):
    command = runtime.command("run", "--bundle", around.bundle, "facts")
    if config["process"]["terminal"]:
        code, output, errors = run_in_terminal(command)
    else:
        keep = []
        if around.preserve_fds:
            command = runtime.command("run", "--preserve-fds", str(around.preserve_fds), "--bundle", around.bundle,
                                      "facts")
            keep = preserved_descriptors(around)
        # An empty pipe: runc puts one in the place of whatever its stdin is.
        done = subprocess.run(command, input="", capture_output=True, text=True, timeout=60, pass_fds=keep,
                              check=False)
        for fd in keep:
            os.close(fd)
        code, output, errors = done.returncode, done.stdout, done.stderr
    if code != 0:
        return None, f"it ended with {code}: {(errors or output).strip()[-600:]}"
    return facts.normalise(output, around.joined()), ""


def preserved_descriptors(around):
    """Descriptors 3 and 4; a gap would be closed by nobody."""
    keep = []
    for number in (3, 4):
        fd = os.open(around.host("file"), os.O_RDONLY)
        if fd != number:
            os.dup2(fd, number)
            os.close(fd)
        os.set_inheritable(number, True)
        keep.append(number)
    return keep


class Differences:
    """The differences that may be, each with its sentence."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.entries = json.load(file)
        self.used = set()
        for entry in self.entries:
            for field in ("kind", "fact", "cites", "why"):
                if not entry.get(field):
                    sys.exit(f"{path}: an entry without '{field}'")
        if len({entry["kind"] for entry in self.entries}) > 10:
            sys.exit(f"{path}: more than 10 kinds")

    def allows(self, case, peer, fact, ours, theirs):
        for number, entry in enumerate(self.entries):
            if (re.fullmatch(entry["fact"], fact) and re.fullmatch(entry.get("peer", ".*"), peer)
                    and re.fullmatch(entry.get("case", ".*"), case)
                    and re.fullmatch(entry.get("ours", ".*"), str(ours), re.S)
                    and re.fullmatch(entry.get("theirs", ".*"), str(theirs), re.S)):
                self.used.add(number)
                return True
        return False

    def stale(self):
        return [entry for number, entry in enumerate(self.entries) if number not in self.used]


def compare(case, results, differences):
    """Lines that tell what is not the same and not allowed."""
    ours, lines = results["wherry-oci"], []
    for peer, theirs in results.items():
        if peer == "wherry-oci" or theirs is None:
            continue
        for fact in sorted(set(ours) | set(theirs)):
            mine, other = ours.get(fact), theirs.get(fact)
            if mine != other and not differences.allows(case, peer, fact, mine, other):
                lines.append(f"  {fact}: ours {mine}, {peer} {other}")
    return lines


def run_case(name, edit, program, runtimes, work, differences):
    results, trouble = {}, []
    for runtime in runtimes:
        around = Surroundings(work)
        config = make_bundle(around, program, edit)
        results[runtime.name], error = collect(runtime, around, config)
        around.close()
        if error:
            trouble.append(f"  {runtime.name}: {error}")
    if results["wherry-oci"] is None:
        return trouble
    # A peer that cannot run a bundle has nothing to say about it, but one of them has to.
    if all(results[runtime.name] is None for runtime in runtimes[1:]):
        return trouble + ["  no peer ran it"]
    for line in trouble:
        print(f"note {name}:{line}", flush=True)
    return compare(name, results, differences)


def clean_up(runtimes):
    for runtime in runtimes:
        for left in runtime.left_over():
            runtime.call("delete", "--force", left)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("only", nargs="*")
    options = parser.parse_args()
    program = os.path.join(options.bin, "facts")
    work = tempfile.mkdtemp(prefix="wherry-diff.")
    run_quietly("mount", "-t", "tmpfs", "tmpfs", work)
    make_host_files(work)
    runtimes = all_runtimes(options.bin, work)
    differences = Differences(os.path.join(HERE, "differences.json"))
    failed = 0

    def tell(name, lines):
        nonlocal failed
        failed += bool(lines)
        print(f"{'FAIL' if lines else 'PASS'} differential:{name}", *lines, sep="\n", flush=True)

    checks = {name: functools.partial(run_case, name, edit, program, runtimes, work, differences)
              for name, edit in bundles.CASES.items()}
    checks |= {name: functools.partial(check, lifecycle.Stage(work, program, runtimes, differences))
               for name, check in lifecycle.CHECKS.items()}
    for name, check in checks.items():
        if options.only and name not in options.only:
            continue
        try:
            tell(name, check())
        except Exception as error:  # one that fails this way must not keep the others from running
            tell(name, [f"  {type(error).__name__}: {error}"])
            clean_up(runtimes)
    if not options.only:
        missing = [f"  {field} is in no bundle" for field in bundles_generated.FIELDS if field not in COVERED]
        if len(bundles.CASES) < LEAST_BUNDLES:
            missing.append(f"  there are {len(bundles.CASES)} bundles of {LEAST_BUNDLES}")
        tell("fields-covered", missing)
        tell("differences-used", [f"  {entry['kind']}: {entry['fact']} never occurs" for entry in differences.stale()])
        tell("nothing-left", remove_cgroups(CGROUP) + [f"  {runtime.name}: {left}" for runtime in runtimes
                                                       for left in runtime.left_over()])
    else:
        remove_cgroups(CGROUP)
    run_quietly("umount", "-R", work)
    os.rmdir(work)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
