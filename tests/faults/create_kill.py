# REL-10: the runtime dies, or runs out of space, at each point of create, start and delete; `delete -f` leaves nothing.
import os
import random
import re
import subprocess
import sys
import time

from bundles import NAMESPACES, bundle, command, config, environment, left_over, oci
from pods import LONG, check

SEED = int(os.environ.get('WHERRY_SEED', random.randrange(1 << 30)))
# Without the first word a point can be renamed and its test be lost unseen.
WANTED = {'create.announced', 'create.placed', 'create.fifos', 'create.record', 'create.recorded', 'start.gate',
          'start.passed', 'destroy.killed', 'destroy.removed'}


def points(top):
    found = set()
    folder = f'{top}/runtime/container'
    for name in os.listdir(folder):
        if name.endswith('.cpp'):
            found |= set(re.findall(r'FAULT_POINT\("([a-z.]+)"\)', open(f'{folder}/{name}').read()))
    return found


def usable_again(name, path):
    """The id, the cgroup and the state are free for the next one."""
    code, text = oci('run', '-b', path, name)
    problems = [] if code == 0 else [f'the id is not usable again: {text}']
    return problems + left_over()


def verbs_up_to(point):
    """The verbs before the one that passes the point, and that one."""
    verbs = [('create', '-b', 'BUNDLE', 'ID'), ('start', 'ID'), ('delete', '-f', 'ID')]
    index = ['create', 'start', 'destroy'].index(point.split('.')[0])
    return verbs[:index], verbs[index]


def at_point(point, what, namespaces, kind):
    name = 'p' + point.replace('.', '_')
    quick, slow = bundle(name, config(['true'], namespaces)), bundle(name + '_slow', config(['sleep', '4321'], namespaces))
    fill = lambda verb: [slow if word == 'BUNDLE' else name if word == 'ID' else word for word in verb]
    before, hit = verbs_up_to(point)
    problems = []
    for verb in before:
        code, text = oci(*fill(verb))
        if code != 0:
            problems.append(f'{verb[0]}: {text}')
    code, text = oci(*fill(hit), fault=f'{point}={what}')
    if what == 'kill' and code != -9:
        problems.append(f'{hit[0]} did not pass the point: status {code} {text}')
    if what != 'kill':
        if code == 0 or 'No space left on device' not in text:
            problems.append(f'{hit[0]}: status {code}, {text!r} does not tell of the error')
        if hit[0] == 'create':
            problems += [f'before any delete: {left}' for left in left_over()]
    code, text = oci('delete', '-f', name)
    if code != 0:
        problems.append(f'delete -f: status {code}, {text}')
    problems += left_over()
    problems += usable_again(name, quick)
    check(f'REL_10_{point}_{what.replace(":", "_")}_{kind}', problems)


def run_at_point(point):
    """In `run` an error is undone at once."""
    name = 'r' + point.replace('.', '_')
    path = bundle(name, config(['sleep', '4321']))
    code, text = oci('run', '-d', '-b', path, name, fault=f'{point}=error:ENOSPC')
    problems = left_over()
    if code == 0 or 'No space left on device' not in text:
        problems.append(f'status {code}, {text!r}')
    oci('delete', '-f', name)
    check(f'REL_10_run_{point}_undone', problems)


def verb_time(words, name):
    began = time.monotonic()
    oci(*words)
    took = time.monotonic() - began
    oci('delete', '-f', name)
    return took


def killed_at_random(tries):
    """kill -9 of the runtime at any time of create, run -d, start and delete."""
    name, path = 'random', bundle('random', config(['sleep', '4321']))
    no_pid_path = bundle('random_host_pid', config(['sleep', '4321'], [n for n in NAMESPACES if n != 'pid']))
    user_path = bundle('random_user', config(['sleep', '4321'], NAMESPACES + ('user',)))
    problems, killed = [], 0
    typical = sorted(verb_time(('run', '-d', '-b', path, name), name) for _ in range(5))[2]
    for number in range(tries):
        where = random.choice((path, path, path, no_pid_path, user_path))
        verb = random.choice(('create', 'create', 'run', 'start', 'delete'))
        if verb in ('start', 'delete'):
            oci('create', '-b', where, name)
        words = {'create': ['create', '-b', where, name], 'run': ['run', '-d', '-b', where, name],
                 'start': ['start', name], 'delete': ['delete', '-f', name]}[verb]
        with open(os.devnull, 'w') as null:
            runtime = subprocess.Popen(command(*words), stdin=null, stdout=null, stderr=null, env=environment())
            time.sleep(random.random() * typical * (1.2 if verb in ('create', 'run') else 0.5))
            runtime.kill()
            killed += runtime.wait() == -9
        code, text = oci('delete', '-f', name)
        left = left_over()
        if code != 0 or left:
            problems.append(f'try {number} ({verb}): status {code} {text} {left}')
            time.sleep(0.5)
            still = left_over()
            if still:
                problems.append(f'half a second later: {still}')
    problems += usable_again(name, bundle('random_true', config(['true'])))
    if killed < tries / 20:
        problems.append(f'only {killed} of {tries} died in time')
    print(f'# {killed} of {tries} killed within {typical * 1000:.0f} ms', flush=True)
    check('REL_10_killed_at_random', problems)


def foreground_killed():
    """kill -9 of an attached run: its container is found and taken away by delete -f."""
    name, path = 'attached', bundle('attached', config(['sleep', '4321']))
    problems = []
    for _ in range(5):
        with open(os.devnull, 'w') as null:
            runtime = subprocess.Popen(command('run', '-b', path, name), stdin=null, stdout=null, stderr=null,
                                       env=environment())
        time.sleep(0.3)
        runtime.kill()
        runtime.wait()
        code, text = oci('delete', '-f', name)
        problems += [f'delete -f: {code} {text}'] if code else []
        problems += left_over()
    check('REL_10_attached_run_killed', problems)


if __name__ == '__main__':
    print(f'# seed {SEED}', flush=True)
    random.seed(SEED)
    found = points(sys.argv[1])
    check('REL_10_points_are_known', [f"no FAULT_POINT('{name}')" for name in sorted(WANTED - found)] +
          [f"'{name}' is not in this test's list" for name in sorted(found - WANTED)])
    no_pid = [name for name in NAMESPACES if name != 'pid']
    for point in sorted(found):
        if point.split('.')[0] not in ('create', 'start', 'destroy'):
            continue
        at_point(point, 'kill', NAMESPACES, 'own_pids')
        at_point(point, 'kill', no_pid, 'host_pids')
        at_point(point, 'error:ENOSPC', NAMESPACES, 'own_pids')
        if not point.startswith('destroy'):
            at_point(point, 'kill', NAMESPACES + ('user',), 'own_users')
        if not point.startswith('destroy'):
            run_at_point(point)
    foreground_killed()
    killed_at_random(2000 if LONG else 200)
