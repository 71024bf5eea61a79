# Races and wrong states of containers, a test each, named after its row of the requirements.
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import bundles
from bundles import NAMESPACES, STATE, WORK, bundle, command, config, environment, left_over, marked, oci
from pods import IMAGE, LONG, ROOT, WHERRY, Pod, check, children, failed, stat_of, until, wherry

SEED = int(os.environ.get('WHERRY_SEED', random.randrange(1 << 30)))
HOST_PIDS = tuple(name for name in NAMESPACES if name != 'pid')


def quiet(words, **more):
    """A process whose output nobody keeps."""
    with open(os.devnull, 'r+') as null:
        return subprocess.Popen(words, stdin=null, stdout=null, stderr=null, env=environment(), **more)


def ends(process, seconds):
    """Its status, or None when it was still there and had to be killed."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def state_of(name):
    code, text = oci('state', name)
    return json.loads(text)['status'] if code == 0 else text


def record_of(name):
    return f'{STATE}/{name}/record.json'


def edit_record(path, **changes):
    with open(path) as file:
        record = json.load(file)
    record.update(changes)
    with open(path, 'w') as file:
        json.dump(record, file)


def pid_of(name):
    return json.loads(oci('state', name)[1])['pid']


# ---- REL-06, 07: exits that come early

def exec_races_exit(rounds, namespaces, kind):
    problems, refused = [], 0
    for number in range(rounds):
        path = bundle('race', config(['/bin/usleep', str(random.randrange(300000))], namespaces))
        code, text = oci('run', '-d', '-b', path, 'race')
        if code != 0:
            problems.append(f'run: {text}')
            continue
        time.sleep(random.random() * 0.04)
        status = ends(quiet(command('exec', 'race', 'sh', '-c', 'exit 3')), 5)
        # Killed with the others of its PID namespace, or refused, or in time.
        if status is None:
            problems.append(f'round {number}: exec hangs')
        elif status not in (3, 137, 1, 255, 125):
            problems.append(f'round {number}: exec ends with {status}')
        refused += status != 3
        code, text = oci('delete', '-f', 'race')
        problems += [f'round {number}: delete: {text}'] if code else []
        problems += [f'round {number}: {left}' for left in left_over()]
    print(f'# {refused} of {rounds} execs came too late', flush=True)
    check(f'REL_06_exec_races_exit_{kind}', problems)


def pod_exec_races_exit(rounds):
    problems = []
    for number in range(rounds):
        pod = Pod(None, 'usleep', str(random.randrange(100000)))
        status = ends(quiet([WHERRY, 'exec', pod.id, 'sh', '-c', 'exit 3']), 5)
        if status is None:
            problems.append(f'round {number}: exec hangs')
        elif status not in (3, 137, 125):
            problems.append(f'round {number}: exec ends with {status}')
        if not pod.ended(5):
            problems.append(f'round {number}: the pod is {pod.status()["phase"]}')
        pod.remove()
    check('REL_06_exec_races_exit_pod', problems)


def early_exits(rounds):
    problems = []
    for number in range(rounds):
        pod = Pod(None, 'sh', '-c', f'exit {number % 256}')
        if not pod.ended(5) or pod.container()['exitCode'] != number % 256:
            problems.append(f'round {number}: {pod.container()}')
        with open(f'{ROOT}/pods/{pod.id}/events.jsonl') as file:
            events = [json.loads(line)['event'] if 'event' in line else line for line in file]
        order = [name for name in ('container.started', 'container.exited') if any(name in str(e) for e in events)]
        places = [next(i for i, e in enumerate(events) if name in str(e)) for name in order]
        if len(order) != 2 or places != sorted(places):
            problems.append(f'round {number}: events {events}')
        pod.remove()
        path = bundle('early', config(['sh', '-c', f'exit {number % 256}']))
        code, text = oci('run', '-b', path, 'early')
        if code != number % 256:
            problems.append(f'round {number}: oci run: {code} {text}')
    check('REL_07_early_exits', problems)


# ---- REL-09: start of a dead init

def start_of_a_dead_init():
    problems = []
    path = bundle('dead', config(['sleep', '4321']))
    oci('create', '-b', path, 'dead')
    pid = pid_of('dead')
    os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    code, text = oci('start', 'dead')
    took = time.monotonic() - began
    if code == 0 or took > 1:
        problems.append(f'start: status {code} after {took:.1f} s: {text}')
    if 'ended' not in text and 'died' not in text and 'stopped' not in text:
        problems.append(f'the error does not tell: {text}')
    if state_of('dead') != 'stopped':
        problems.append(f'state: {state_of("dead")}')
    code, text = oci('delete', 'dead')
    problems += [f'delete: {text}'] if code else []
    check('REL_09_start_of_a_dead_init', problems + left_over())


# ---- REL-12, 35: records that are not true any more

def reused_pid():
    problems = []
    bystander = subprocess.Popen(['sleep', '4321'], stdin=subprocess.DEVNULL)
    for change, kind in (({'pid': bystander.pid}, 'other start time'),
                         ({'pid': bystander.pid, 'boot_id': '00000000-0000-0000-0000-000000000000'}, 'other boot')):
        path = bundle('reuse', config(['sleep', '4321']))
        oci('run', '-d', '-b', path, 'reuse')
        edit_record(record_of('reuse'), **change)
        if state_of('reuse') != 'stopped':
            problems.append(f'{kind}: state {state_of("reuse")}')
        for verb in (('kill', 'reuse', 'KILL'), ('kill', '--all', 'reuse', 'KILL'), ('exec', 'reuse', 'true'),
                     ('start', 'reuse'), ('delete', '-f', 'reuse')):
            code, text = oci(*verb)
            if verb[0] in ('exec', 'start') and code == 0:
                problems.append(f'{kind}: {verb} succeeded')
            if verb[0] == 'delete' and code != 0:
                problems.append(f'{kind}: delete: {text}')
            if bystander.poll() is not None:
                problems.append(f'{kind}: {verb} killed the bystander')
                bystander = subprocess.Popen(['sleep', '4321'], stdin=subprocess.DEVNULL)
        problems += [f'{kind}: {left}' for left in left_over()]
    check('REL_12_reused_pid', problems)

    problems = []
    pod = Pod(None, 'sleep', '4321')
    edit_record(f'{os.environ["WHERRY_STATE"]}/pods/{pod.id}/containers/main/record.json', pid=bystander.pid)
    pod.kill_worker()  # the next one finds its containers by the record
    until(2, lambda: pod.status()['shims']['workerStarts'] > 1 if 'shims' in pod.status() else False)
    removed = pod.remove()
    if removed.returncode != 0:
        problems.append(f'rm: {removed.stderr.decode()}')
    if bystander.poll() is not None:
        problems.append('the bystander was killed')
    check('REL_12_reused_pid_in_recovery', problems + left_over())
    bystander.kill()
    bystander.wait()


def other_boot():
    problems = []
    path = bundle('boot', config(['sleep', '4321']))
    oci('run', '-d', '-b', path, 'boot')
    edit_record(record_of('boot'), boot_id='00000000-0000-0000-0000-000000000000')
    if state_of('boot') != 'stopped':
        problems.append(f'state: {state_of("boot")}')
    code, text = oci('delete', 'boot')
    problems += [f'delete: {text}'] if code else []
    check('REL_35_other_boot_is_stopped', problems + left_over())


# ---- REL-13, 16: cgroups full of processes

def children_left():
    problems = []
    path = bundle('many', config(['sh', '-c', 'i=0; while [ $i -lt 50 ]; do sleep 4321 & i=$((i + 1)); done; sleep 4321'],
                                 HOST_PIDS))
    oci('run', '-d', '-b', path, 'many')
    until(5, lambda: len(marked()) == 51)  # busybox's sh becomes its last command
    os.kill(pid_of('many'), signal.SIGKILL)
    until(2, lambda: state_of('many') == 'stopped')
    if len(marked()) != 50:
        problems.append(f'{len(marked())} children')
    began = time.monotonic()
    code, text = oci('delete', '-f', 'many')
    took = time.monotonic() - began
    problems += [f'delete: {text}'] if code else []
    if took > 1:
        problems.append(f'delete took {took:.1f} s')
    check('REL_13_children_left', problems + left_over())


def fork_bomb():
    problems = []
    path = bundle('bomb', config(['sh', '-c', 'b() { b | b & }; b; sleep 4321'], HOST_PIDS))
    oci('run', '-d', '-b', path, 'bomb')
    until(5, lambda: len(marked()) > 100)
    began = time.monotonic()
    code, text = oci('delete', '-f', 'bomb')
    took = time.monotonic() - began
    problems += [f'delete: {text}'] if code else []
    if took > 2:
        problems.append(f'delete took {took:.1f} s')
    check('REL_16_fork_bomb', problems + left_over())


# ---- REL-20, 21: mounts

def host_mounts():
    with open('/proc/self/mountinfo') as file:
        return len(file.readlines()), [line for line in open('/proc/self/mountinfo') if WORK in line]


def in_parallel(count):
    problems = []
    before = host_mounts()[0]
    runs = []
    for number in range(count):
        name = f'parallel{number}'
        if number % 2:
            runs.append((name, open(f'{WORK}/{name}.out', 'w+'), command('run', '-b', bundle(name, config(
                ['sh', '-c', 'usleep 20000; exit 7'], cgroup=name)), name)))
        else:
            runs.append((name, open(f'{WORK}/{name}.out', 'w+'),
                         [WHERRY, 'run', '--rm', IMAGE, 'sh', '-c', 'usleep 20000; exit 7']))
    started = [(name, out, subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment()))
               for name, out, words in runs]
    for name, out, process in started:
        status = ends(process, 60)
        out.seek(0)
        text = out.read().strip()
        if status != 7 or text:
            problems.append(f'{name}: status {status}: {text[:200]}')
    after, ours = host_mounts()
    if ours:
        problems.append(f'mounts of ours: {ours[:2]}')
    if after != before:
        problems.append(f'{after} mounts, {before} before')
    check('REL_20_many_in_parallel', problems + left_over())


def no_mounts_in_state():
    """While pods and containers run, the host has no mount of theirs, so nothing can keep the state from going."""
    problems = []
    pod = Pod(None, 'sleep', '4321')
    oci('run', '-d', '-b', bundle('mounts', config(['sleep', '4321'])), 'mounts')
    problems += [f'mount {line.split()[4]}' for line in host_mounts()[1]]
    pod.remove()
    oci('delete', '-f', 'mounts')
    check('REL_21_no_mounts_on_the_host', problems + left_over())


# ---- REL-30: exit codes

def exit_codes():
    problems = []
    for code in (0, 1, 2, 42, 124, 125, 126, 127, 128, 137, 143, 200, 254, 255):
        got = wherry('run', '--rm', IMAGE, 'sh', '-c', f'exit {code}').returncode
        problems += [f'exit {code}: {got}'] if got != code else []
    odd = f'{WORK}/odd'
    os.makedirs(odd, exist_ok=True)
    for name, text, mode in (('no_permission', '#!/bin/sh\n', 0o644), ('bad_format', '\x7fELF nonsense', 0o755),
                             ('no_interpreter', '#!/nonesuch\n', 0o755)):
        with open(f'{odd}/{name}', 'w') as file:
            file.write(text)
        os.chmod(f'{odd}/{name}', mode)
    for program, wanted in (('/nonesuch', 127), ('nonesuch', 127), ('/odd/no_permission', 126), ('/odd', 126),
                            ('/odd/bad_format', 126), ('/odd/no_interpreter', 127)):
        done = wherry('run', '--rm', '-v', f'{odd}:/odd', IMAGE, program)
        if done.returncode != wanted:
            problems.append(f'{program}: {done.returncode}, wanted {wanted}: {done.stderr.decode().strip()}')
    check('REL_30_exit_codes', problems + left_over())


def signals():
    """With the host's PIDs, where init is not protected from signals that it does not handle."""
    ignored = {signal.SIGCHLD, signal.SIGCONT, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGURG,
               signal.SIGWINCH}
    problems = []
    for number in range(1, 32):
        if number in ignored:
            continue
        manifest = f'{WORK}/signal.json'
        with open(manifest, 'w') as file:
            json.dump({'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': f'signal{number}'},
                       'spec': {'hostPID': True, 'restartPolicy': 'Never', 'containers': [
                           {'name': 'main', 'image': IMAGE, 'command': ['sleep', '4321']}]}}, file)
        run = wherry('pod', 'run', '-f', manifest)
        os.kill(json.loads(wherry('inspect', f'signal{number}/main').stdout)['pid'], number)
        said = wherry('wait', f'signal{number}').stdout.decode().strip()
        told = json.loads(wherry('inspect', f'signal{number}/main').stdout or b'{}')
        if said != str(128 + number) or told.get('signal') != number:
            problems.append(f'signal {number}: wait says {said!r}, inspect {told.get("signal")} {run.stderr.decode().strip()}')
        wherry('rm', '-f', f'signal{number}')
        runtime = quiet(command('run', '-b', bundle('signal', config(['sleep', '4321'], HOST_PIDS)), 'signal'))
        until(5, lambda: state_of('signal') == 'running')
        os.kill(pid_of('signal'), number)
        code = ends(runtime, 5)
        if code != 128 + number:
            problems.append(f'signal {number}: oci run {code}')
    check('REL_30_signals', problems + left_over())


# ---- REL-32: zombies

def no_zombies():
    problems = []
    manifest = f'{WORK}/zombies.json'
    with open(manifest, 'w') as file:
        json.dump({'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'zombies'},
                   'spec': {'hostPID': True, 'containers': [{'name': 'main', 'image': IMAGE, 'command': [
                       'sh', '-c', 'for i in $(seq 100); do (sh -c "usleep 1000 & usleep 500 &" &); done; wait; exec sleep 4321']}]}}, file)
    run = wherry('pod', 'run', '-f', manifest)
    if run.returncode != 0:
        problems.append(run.stderr.decode())
    pod = json.loads(wherry('inspect', 'zombies').stdout)
    for _ in range(20):
        wherry('exec', 'zombies', 'sh', '-c', '(usleep 1000 &); exit 0')
        wherry('exec', 'zombies', '/nonesuch')
    zombies = lambda: [pid for top in (pod['keeperPid'], pod['shimPid'])
                       for pid in children(top) if (stat_of(pid) or ('', '', 0))[1] == 'Z']
    if not until(3, lambda: not zombies()):
        problems.append(f'zombies: {[stat_of(pid) for pid in zombies()]}')
    wherry('rm', '-f', 'zombies')
    check('REL_32_no_zombies', problems + left_over())


# ---- REL-39: limits on namespaces

HOLD = '''
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
held = []
for _ in range(int(sys.argv[1])):
    if libc.unshare(0x08000000) != 0: sys.exit("unshare: " + os.strerror(ctypes.get_errno()))
    held.append(os.open("/proc/self/ns/ipc", os.O_RDONLY))
print("held", flush=True)
sys.stdin.readline()
done = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
print(done.returncode, done.stdout.decode().strip().replace("\\n", " "), flush=True)
'''


def own_capabilities():
    names = subprocess.run(['setpriv', '--list-caps'], capture_output=True, text=True).stdout.split()
    with open('/proc/self/status') as file:
        mask = int(re.search(r'^CapPrm:\s*(\w+)', file.read(), re.MULTILINE)[1], 16)
    return ','.join(f'+{name}' for bit, name in enumerate(names) if mask >> bit & 1)


def namespace_limit():
    """The limit counts for each user apart: another one than root uses it up, and root goes on as it did."""
    count, limit = 200, '/proc/sys/user/max_ipc_namespaces'
    with open(limit) as file:
        before = file.read()
    try:
        with open(limit, 'w') as file:
            file.write(before)
    except OSError as error:
        print(f'SKIP states:REL_39_namespace_limit: {limit} cannot be written here: {error.strerror}')
        return
    path = bundle('limit', config(['true']))
    state = f'{WORK}/other-user'
    os.makedirs(state, exist_ok=True)
    os.chown(state, 12345, 12345)
    os.chmod(WORK, 0o755)
    holder = subprocess.Popen(
        ['setpriv', '--reuid', '12345', '--clear-groups', '--inh-caps', own_capabilities(), '--ambient-caps', own_capabilities(),
         sys.executable, '-c', HOLD, str(count), bundles.OCI, '--root', state, 'run', '-b', path, 'limit'],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment())
    first = holder.stdout.readline().strip()
    if first != 'held':
        holder.kill()
        print(f'SKIP states:REL_39_namespace_limit: another user cannot be given capabilities here: {first}')
        return
    try:
        with open(limit, 'w') as file:
            file.write(str(count))
        out, _ = holder.communicate('go\n', timeout=10)
    finally:
        with open(limit, 'w') as file:
            file.write(before)
        holder.kill()
        holder.wait()
    problems = []
    if f'user.max_ipc_namespaces = {count}' not in out or out.startswith('0 '):
        problems.append(out.strip())
    check('REL_39_namespace_limit', problems + left_over())


def nested_too_deep():
    """PID namespaces nest 32 deep."""
    path = bundle('deep', config(['true']))
    words = ' '.join(command('run', '-b', path, 'deep'))
    with open('/proc/self/status') as file:
        level = len(re.search(r'^NSpid:(.*)', file.read(), re.MULTILINE)[1].split()) - 1
    nest = 'unshare -p -f ' * (32 - level) + 'unshare -m --propagation private -- sh -c'
    done = subprocess.run(f"{nest} 'mount -t proc proc /proc && exec {words}'", shell=True, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, env=environment(), timeout=30)
    text = done.stdout + done.stderr
    problems = []
    if done.returncode == 0 or '32 deep' not in text or 'max_pid_namespaces' not in text:
        problems.append(f'status {done.returncode}: {text.strip()}')
    check('REL_39_pid_namespaces_too_deep', problems + left_over())


# ---- REL-42: a huge limit on descriptors

def many_descriptors():
    import resource
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    path = bundle('nofile', config(['true']))
    times = {1024: [], hard: []}
    for _ in range(25):
        for soft in times:
            began = time.monotonic()
            quiet(['prlimit', f'--nofile={soft}:{hard}', *command('run', '-b', path, 'nofile')], close_fds=False).wait()
            times[soft].append(time.monotonic() - began)
    base, huge = min(times[1024]), min(times[hard])
    print(f'# start and end: {base * 1000:.1f} ms with 1024 descriptors, {huge * 1000:.1f} ms with {hard}', flush=True)
    check('REL_42_many_descriptors', [f'{huge * 1000:.1f} ms, {base * 1000:.1f} without'] if huge > base + 0.005 else [])


if __name__ == '__main__':
    print(f'# seed {SEED}', flush=True)
    random.seed(SEED)
    many = 10 if LONG else 1
    tests = {
        'exec': lambda: (exec_races_exit(120 * many, NAMESPACES, 'own_pids'), exec_races_exit(80 * many, HOST_PIDS, 'host_pids')),
        'pod_exec': lambda: pod_exec_races_exit(30 * many),
        'early': lambda: early_exits(30 * many),
        'dead': start_of_a_dead_init,
        'reused': reused_pid,
        'boot': other_boot,
        'children': children_left,
        'bomb': fork_bomb,
        'parallel': lambda: in_parallel(40),
        'mounts': no_mounts_in_state,
        'codes': exit_codes,
        'signals': signals,
        'zombies': no_zombies,
        'limit': namespace_limit,
        'deep': nested_too_deep,
        'nofile': many_descriptors,
    }
    for name in sys.argv[1:] or tests:
        try:
            tests[name]()
        except Exception as error:  # the others are still worth to be seen
            failed(name, repr(error))
