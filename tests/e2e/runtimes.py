"""The three runtimes, and namespaces to join."""
import os
import shutil
import subprocess
import tempfile

CGROUP = "wherry-test-diff"
CGROUP_ROOT = "/sys/fs/cgroup"

# crun 1.8.1 refuses a hybrid host, so it gets a mount namespace of its own that shows the v1 hierarchies only.
# Private before the umount: the host's own tree must not see it.
V1_ONLY = ["/usr/bin/unshare", "--mount", "--propagation", "unchanged", "/bin/sh", "-c",
           'mount --make-rprivate /sys/fs/cgroup; if mountpoint -q /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi; exec "$@"', "sh"]


def run_quietly(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


class Runtime:
    def __init__(self, name, program, state, before=()):
        self.name, self.program, self.state, self.before = name, program, state, list(before)

    def command(self, *words):
        return [*self.before, self.program, "--root", self.state, *words]

    def call(self, *words, timeout=60):
        """Output goes to files: what a container keeps open of a pipe would keep us waiting."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            done = subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                  timeout=timeout, check=False)
            out.seek(0), err.seek(0)
            done.stdout, done.stderr = out.read(), err.read()
        return done

    def left_over(self):
        if not os.path.isdir(self.state):
            return []
        return [name for name in os.listdir(self.state) if not name.startswith(".")]


def all_runtimes(bin_dir, work):
    ours = Runtime("wherry-oci", os.path.abspath(os.path.join(bin_dir, "wherry-oci")), os.path.join(work, "ours"))
    crun = Runtime("crun", shutil.which("crun"), os.path.join(work, "crun"), V1_ONLY)
    runc = Runtime("runc", shutil.which("runc"), os.path.join(work, "runc"))
    return [ours, crun, runc]


class Helper:
    """A process in namespaces of its own, to be joined by path."""

    def __init__(self):
        # It says so when it is there; its own namespaces are new, but of the pid namespace it is the parent.
        self.process = subprocess.Popen(
            ["/usr/bin/unshare", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child", "/bin/sh", "-c",
             "echo up; exec sleep 600"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def namespace(self, kind):
        return f"/proc/{self.process.pid}/ns/{'pid_for_children' if kind == 'pid' else kind}"

    def joined(self):
        return {kind: os.readlink(self.namespace(kind)) for kind in ("net", "ipc", "uts", "pid")}

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def remove_cgroups(name):
    """Removes our own subtree of every hierarchy; tells what a runtime had left in it."""
    left = []
    for hierarchy in sorted(os.listdir(CGROUP_ROOT)):
        top = os.path.join(CGROUP_ROOT, hierarchy, name)
        if not os.path.isdir(top):
            continue
        for path, _, _ in os.walk(top, topdown=False):
            if path != top:
                left.append(f"  cgroup {path}")
            os.rmdir(path)
    return left
