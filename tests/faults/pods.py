# What the fault tests share: pods started through `wherry`, and looked at without it, through files and /proc.
import json
import os
import re
import signal
import subprocess
import time

IMAGE = 'localhost/hello:latest'
STATE = os.environ['WHERRY_STATE']
ROOT = os.environ['WHERRY_ROOT']
WHERRY = os.path.join(os.environ['WHERRY_BIN'], 'wherry')
SUITE = os.environ['SUITE']
LONG = os.environ.get('WHERRY_LONG') == '1'


def passed(name):
    print(f'PASS {SUITE}:{name}', flush=True)


def failed(name, why):
    print(f'FAIL {SUITE}:{name}: {why}', flush=True)


def check(name, problems):
    failed(name, '; '.join(problems[:4])) if problems else passed(name)


def wherry(*words, timeout=30, **more):
    """Runs the command line; its standard streams are files, so that nobody who keeps one can hold us."""
    return subprocess.run([WHERRY, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, **more)


def until(seconds, condition):
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found or time.monotonic() > end:
            return found
        time.sleep(0.002)


def stat_of(pid):
    """(command name, state, parent) of a process, or None."""
    try:
        text = open(f'/proc/{pid}/stat').read()
    except OSError:
        return None
    rest = text[text.rindex(')') + 2:].split()
    return text[text.index('(') + 1:text.rindex(')')], rest[0], int(rest[1])


def children(pid):
    try:
        return [int(word) for word in open(f'/proc/{pid}/task/{pid}/children').read().split()]
    except OSError:
        return []


class Pod:
    def __init__(self, *words):
        """words: flags and the command; the image goes between at the word None."""
        words = [IMAGE if word is None else word for word in words]
        run = wherry('run', '-d', *words)
        if run.returncode != 0:
            raise RuntimeError(run.stderr.decode())
        self.id = run.stdout.decode().strip()
        self.keeper = self.status()['keeperPid']

    def status(self):
        with open(f'{STATE}/pods/{self.id}/status') as file:
            return json.load(file)

    def container(self):
        return self.status()['containers'][0]

    def worker(self):
        """The worker that lives now, as the keeper's children tell, or None."""
        for pid in children(self.keeper):
            stat = stat_of(pid)
            if stat and stat[1] not in 'ZX' and open_cmdline(pid).startswith('wherry-shim'):
                return pid
        return None

    def kill_worker(self):
        """Returns the seconds until the keeper had started another one; None when none came within ten, 0 when the
        pod had come to its end (then keeper and worker end too)."""
        began = time.monotonic()
        old = self.worker()
        if not old:
            return 0
        os.kill(old, signal.SIGKILL)
        until(10, lambda: self.worker() not in (None, old) or self.gone())
        if self.gone():
            return 0
        fresh = self.worker()
        return time.monotonic() - began if fresh and fresh != old else None

    def gone(self):
        stat = stat_of(self.keeper)
        return stat is None or stat[1] in 'ZX'

    def ended(self, seconds=30):
        return until(seconds, lambda: self.container()['state'] == 'exited')

    def log(self, stream=None):
        return Log(f'{ROOT}/pods/{self.id}/logs/main/0.log', stream)

    def remove(self):
        return wherry('rm', '-f', self.id)


def open_cmdline(pid):
    try:
        return open(f'/proc/{pid}/cmdline').read()
    except OSError:
        return ''


class Log:
    """A log in the CRI format, held against its grammar to the byte."""
    LINE = re.compile(rb'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(?:Z|[+-]\d\d:\d\d) (stdout|stderr) ([PF]) (.*)', re.DOTALL)

    def __init__(self, path, stream=None):
        with open(path, 'rb') as file:
            raw = file.read()
        self.problems = []
        self.content = {'stdout': b'', 'stderr': b''}
        self.last_tag = {}
        self.longest = 0
        if raw and not raw.endswith(b'\n'):
            self.problems.append('the log does not end with a newline')
        for line in raw.split(b'\n')[:-1]:
            found = self.LINE.fullmatch(line)
            if not found:
                self.problems.append(f'not in the format: {line[:80]!r}')
                continue
            name, tag, text = found[1].decode(), found[2], found[3]
            self.longest = max(self.longest, len(line) + 1)
            self.content[name] += text + (b'\n' if tag == b'F' else b'')
            self.last_tag[name] = tag
        self.stdout, self.stderr = self.content['stdout'], self.content['stderr']
