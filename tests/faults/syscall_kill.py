# SIGKILL of the command line at the entry of each of its system calls: `delete -f` then leaves nothing, the first time.
import os
import time

from bundles import bundle, config, left_over, oci
from pods import LONG, check
from stepping import build, sample, step

NAME = 'k'
FEW = 36  # points of a verb in CI


def verbs():
    long = bundle('long', config(['sleep', '4321']))
    short = bundle('short', config(['true']))
    create, begin = ('create', '-b', long, NAME), ('start', NAME)
    return {
        'create': ([], ('create', '-b', long, NAME)),
        'run_detached': ([], ('run', '-d', '-b', long, NAME)),
        'run_attached': ([], ('run', '-b', short, NAME)),
        'start': ([create], begin),
        'exec': ([create, begin], ('exec', NAME, 'true')),
        'kill': ([create, begin], ('kill', NAME, 'KILL')),
        'update': ([create, begin], ('update', '--memory', '50000000', '--pids-limit', '50', NAME)),
        'delete': ([create, begin], ('delete', '-f', NAME)),
    }


def left_soon():
    """What is left; a process that was killed may need a moment to be gone."""
    for _ in range(20):
        left = left_over()
        if not left:
            return []
        time.sleep(0.02)
    return left


def one(before, words, what):
    """(problems, what was hit, calls)"""
    problems = []
    for verb in before:
        code, text = oci(*verb)
        if code != 0:
            problems.append(f'{verb[0]} before: status {code} {text}')
    status, _, errors, report = step((), what, words)
    calls, hit = report.get(0, (0, None))
    if status is None:
        problems.append('it hangs')
    elif hit is None and status != 0:
        problems.append(f'status {status} without a kill: {errors}')
    code, text = oci('delete', '-f', NAME)
    if code != 0:
        problems.append(f'delete -f: status {code} {text}')
    left = left_soon()
    if left:
        problems.append(f'left: {left}')
        oci('delete', '-f', NAME)
    return problems, hit, calls


def sweep(name, before, words):
    problems, _, calls = one(before, words, ('count',))
    killed = 0
    for number in sample(calls, 0 if LONG else FEW):
        found, hit, _ = one(before, words, ('kill', str(number)))
        killed += hit is not None
        problems += [f'call {number} ({hit}): {problem}' for problem in found]
    # The next point has the same id; the last one is shown by this.
    code, text = oci('run', '-b', bundle('again', config(['true'])), NAME)
    if code != 0 or left_soon():
        problems.append(f'the id is not usable again: {code} {text} {left_over()}')
    if killed < 10:
        problems.append(f'only {killed} of {calls} calls were met')
    print(f'# {name}: killed at {killed} of {calls} system calls', flush=True)
    check(f'REL_10_killed_at_each_call_of_{name}', problems[:20])


if __name__ == '__main__':
    build(os.path.dirname(os.path.abspath(__file__)))
    for name, (before, words) in verbs().items():
        sweep(name, before, words)
