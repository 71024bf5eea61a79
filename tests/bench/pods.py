"""wherry run against podman run, and what a pod's keeper and worker keep in memory."""
import json
import os
import shutil
import subprocess
import time

IMAGE = "localhost/wherry-bench:1"


def import_images(bench):
    """The payload alone as a root filesystem, for both."""
    root = os.path.join(bench.work, "image")
    os.makedirs(os.path.join(root, "bin"))
    shutil.copy(bench.facts, os.path.join(root, "bin/true"))
    archive = os.path.join(bench.work, "image.tar")
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    subprocess.run(["podman", "import", "--quiet", archive, IMAGE], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return archive


def wherry(bench, *words):
    return [os.path.join(bench.options.bin, "wherry"), "--root", os.path.join(bench.work, "w-root"), "--state",
            os.path.join(bench.work, "w-state"), "--cgroup-parent", "/wherry-test-bench/pods", *words]


def memory_of(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))


def held_in_memory(bench, count=8):
    """PSS of keeper and worker per pod, in kB, with `count` pods at once."""
    names = [f"mem{number}" for number in range(count)]
    for name in names:
        done = subprocess.run(wherry(bench, "run", "-d", "--network", "none", "--name", name, IMAGE, "/bin/true", "pause"),
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, timeout=60)
        if done.returncode != 0:
            return f"n/a: {done.stderr.strip()[-300:]}"
    time.sleep(1)
    sums = []
    for name in names:
        shown = subprocess.run(wherry(bench, "inspect", "-o", "json", name), capture_output=True, text=True, check=False)
        document = json.loads(shown.stdout)
        document = document[0] if isinstance(document, list) else document
        worker = document["shimPid"]
        with open(f"/proc/{worker}/stat", encoding="utf-8") as file:
            keeper = int(file.read().rsplit(")", 1)[1].split()[1])
        sums.append(memory_of(worker) + memory_of(keeper))
    for name in names:
        subprocess.run(wherry(bench, "rm", "-f", name), capture_output=True, check=False, timeout=60)
    return f"{sum(sums) / count:.0f} kB per pod ({count} pods at once)"


def measure(bench, rounds):
    program = wherry(bench)[0]
    if not os.access(program, os.X_OK):
        bench.say(f"\nwherry run against podman run: n/a ('{program}' is not built)")
        bench.say("memory of keeper and worker: n/a")
        return
    archive = import_images(bench)
    try:
        done = subprocess.run(wherry(bench, "image", "import", archive, IMAGE), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            bench.say(f"\nwherry run against podman run: n/a (image import: {(done.stderr or done.stdout).strip()[-300:]})")
            return
        podman = [f"@{bench.tree.path}", shutil.which("podman"), "run", "--rm", "--network", "none", "--pids-limit", "200",
                  "--memory", "256m", IMAGE, "/bin/true", "exit:0"]
        ours = wherry(bench, "run", "--rm", "--network", "none", "--pids-limit", "200", "--memory", "256m", IMAGE,
                      "/bin/true", "exit:0")
        bench.table("wherry run --rm against podman run --rm", ["wherry", "podman"], [ours, podman], rounds,
                    (("podman", 0.15),))
        bench.say(f"\nmemory of keeper and worker (PSS): {held_in_memory(bench)}")
    finally:
        subprocess.run(["podman", "rmi", "--force", IMAGE], capture_output=True, stdin=subprocess.DEVNULL, check=False)
