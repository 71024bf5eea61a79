# An error in the N-th system call of a start, of the command line or of the container's init up to its execve: the
# container has the same facts as without, or there is an error with a message and nothing is left. Never a hang, never
# a weaker container.
import errno
import importlib.util
import os
import sys
import time

from bundles import PARENT, WORK, MARK, bundle, left_over, oci
from pods import LONG, check
from stepping import build, sample, step

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = 'e'
FEW = {'run': 40, 'create': 24, 'start': 12, 'init': 64}  # points in CI, each with one of the errors
ERRORS = ('EIO', 'ENOSPC', 'EINTR', 'ENOMEM')


def from_e2e(name, file):
    """A module of tests/e2e, whose bundles.py has the name of ours."""
    spec = importlib.util.spec_from_file_location(name, f'{HERE}/../e2e/{file}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


facts = from_e2e('e2e_facts', 'facts')
e2e_bundles = from_e2e('e2e_bundles', 'bundles')


def hardened():
    """A container with something of every kind that an error could take away from it."""
    spec = e2e_bundles.configuration()
    e2e_bundles.seccomp_small(spec, None)
    e2e_bundles.set_args(spec, 'read:/proc/kcore', 'read:/proc/keys', 'write:/proc/sys/kernel/hostname',
                         'read:/etc/secret', 'write:/data/file', 'create:/etc/x', 'create:/tmp/x', 'open:/dev/null',
                         'mknod:c:10:229', 'read:/sys/fs/cgroup/memory/memory.limit_in_bytes',
                         'read:/sys/fs/cgroup/pids/pids.max', 'read:/proc/sys/net/ipv4/ip_forward')
    process, linux = spec['process'], spec['linux']
    process['env'].append(MARK)
    process['user'] = {'uid': 1000, 'gid': 1000, 'additionalGids': [5, 20], 'umask': 0o77}
    process['rlimits'] = [{'type': 'RLIMIT_NOFILE', 'soft': 100, 'hard': 200},
                          {'type': 'RLIMIT_CORE', 'soft': 0, 'hard': 0}]
    process['oomScoreAdj'] = 500
    spec['root']['readonly'] = True
    e2e_bundles.add_mount(spec, '/tmp', 'tmpfs', 'tmpfs', 'nosuid', 'nodev', 'noexec', 'size=1m', 'mode=1777')
    e2e_bundles.add_mount(spec, '/data', 'bind', f'{WORK}/volume', 'rbind', 'ro', 'nosuid')
    e2e_bundles.add_mount(spec, '/sys/fs/cgroup', 'cgroup', 'cgroup', 'nosuid', 'noexec', 'nodev', 'relatime', 'ro')
    linux['cgroupsPath'] = f'{PARENT}/e'
    linux['maskedPaths'] += ['/etc/secret']
    linux['sysctl'] = {'net.ipv4.ip_forward': '1'}
    linux['rootfsPropagation'] = 'rslave'
    linux['resources'].update({'memory': {'limit': 64 << 20}, 'pids': {'limit': 33}, 'cpu': {'shares': 512}})
    return spec


def make():
    os.makedirs(f'{WORK}/volume')
    with open(f'{WORK}/volume/file', 'w') as file:
        file.write('outer\n')
    path = bundle('facts', hardened())
    e2e_bundles.make_root(f'{path}/rootfs', os.path.join(os.environ['WHERRY_BIN'], 'facts'))
    return path


def told(name):
    """The facts that a container told in this file, or None when it told none."""
    with open(f'{WORK}/{name}') as file:
        text = file.read()
    try:
        return facts.normalise(text, {})
    except ValueError:  # nothing, or it was ended in the middle
        return None


def ended():
    """Waits until the container has ended."""
    for _ in range(500):
        if '"stopped"' in oci('state', NAME)[1].replace(' ', ''):
            return
        time.sleep(0.01)


def go(road, path, options, what):
    """(status, message, report) of the stepped command line; the container, if there is one, has ended afterwards."""
    run, create, start = ('run', '-b', path, NAME), ('create', '-b', path, NAME), ('start', NAME)
    if road in ('run', 'init'):
        status, _, errors, report = step(options, what, run, 'facts.out')
        return status, errors, report
    if road == 'create':
        status, _, errors, report = step(options, what, create, 'facts.out')
        if status != 0:
            return status, errors, report
        status, errors = oci(*start)
    else:
        status, _, errors, report = step((), ('count',), create, 'facts.out')
        if status == 0:
            status, _, errors, report = step(options, what, start)
    if status == 0:
        ended()
    return status, errors, report


def differences(wanted, got):
    return [f'{key}: {wanted.get(key)} -> {got.get(key)}' for key in sorted(set(wanted) | set(got))
            if wanted.get(key) != got.get(key)]


def one(road, path, options, what, wanted):
    """(problems, name of the call that was hit)"""
    status, errors, report = go(road, path, options, what)
    hits = [hit for _, hit in report.values() if hit]
    got, problems = told('facts.out'), []
    if status is None:
        problems.append('it hangs')
    elif status != 0 and status != 1 and status != 126 and status != 127:
        problems.append(f'status {status}: {errors}')
    elif status != 0 and not errors:
        problems.append(f'status {status} without a message')
    elif status == 0 and got is None:
        problems.append('the container has not run')
    if got is not None:
        problems += [f'weaker, {text}' for text in differences(wanted, got)[:3]]
    # Before anything ran, an error of create or run is undone by itself.
    if status and got is None and road != 'start':
        problems += [f'before any delete: {left}' for left in left_over()]
    code, text = oci('delete', '-f', NAME)
    if code != 0:
        problems.append(f'delete -f: status {code} {text}')
    problems += [f'left: {left}' for left in left_over()]
    return problems, hits[0] if hits else None


def sweep(road, path):
    options = ('-f',) if road == 'init' else ()
    go(road, path, options, ('count',))
    wanted = told('facts.out')
    oci('delete', '-f', NAME)
    problems, hit = one(road, path, options, ('count',), wanted)[0], 0
    _, _, report = go(road, path, options, ('count',))
    oci('delete', '-f', NAME)
    points = [(process, number) for process, (calls, _) in sorted(report.items()) for number in range(1, calls + 1)
              if (process > 0) == (road == 'init')]
    picked = sample(len(points), 0 if LONG else FEW[road])
    for index in picked:
        process, number = points[index - 1]
        for name in ERRORS if LONG else ERRORS[index % len(ERRORS):][:1]:
            where = ('-p', str(process)) if process else ()
            what = ('inject', str(number), str(getattr(errno, name)))
            found, call = one(road, path, where, what, wanted)
            hit += call is not None
            problems += [f'{name} in call {number} ({call}) of process {process}: {text}' for text in found]
            if found:
                print('\n'.join(f'# {text}' for text in problems[-len(found):]), flush=True)
    if hit < len(picked) / 2:
        problems.append(f'only {hit} calls of {len(picked)} were hit')
    print(f'# {road}: {hit} errors in {len(picked)} of {len(points)} system calls', flush=True)
    check(f'REL_21_an_error_in_each_call_of_{road}', problems)


if __name__ == '__main__':
    build(HERE)
    made = make()
    for chosen in sys.argv[1:] or FEW:
        sweep(chosen, made)
