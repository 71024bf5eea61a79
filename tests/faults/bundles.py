# Bundles for wherry-oci, and what of them is still on the host, told by nothing of the project.
import glob
import json
import os
import subprocess

WORK = os.environ['WORK']
PARENT = os.environ['WHERRY_CGROUP_PARENT']
OCI = os.path.join(os.environ['WHERRY_BIN'], 'wherry-oci')
STATE = f'{WORK}/oci-state'
MARK = f'WHERRY_TEST_MARK={WORK}'
NAMESPACES = ('pid', 'network', 'ipc', 'uts', 'mount', 'cgroup')
SAME_IDS = [{'containerID': 0, 'hostID': 0, 'size': 65536}]  # of a user namespace: the root need not be another's


def config(args, namespaces=NAMESPACES, cgroup='c', **process):
    maps = {'uidMappings': SAME_IDS, 'gidMappings': SAME_IDS} if 'user' in namespaces else {}
    return {
        'ociVersion': '1.0.2', 'hostname': 'faults',
        'process': {'user': {'uid': 0, 'gid': 0}, 'args': args, 'env': ['PATH=/bin', MARK], 'cwd': '/',
                    'noNewPrivileges': True, **process},
        'root': {'path': f'{WORK}/image/rootfs'},
        'mounts': [{'destination': '/proc', 'type': 'proc', 'source': 'proc'},
                   {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['nosuid', 'mode=755']}],
        'linux': {**maps, 'namespaces': [{'type': name} for name in namespaces], 'cgroupsPath': f'{PARENT}/{cgroup}',
                  'resources': {'memory': {'limit': 64 << 20}, 'pids': {'limit': 200}, 'cpu': {'shares': 512},
                                'devices': [{'allow': False, 'access': 'rwm'}]}},
    }


def bundle(name, spec):
    path = f'{WORK}/bundles/{name}'
    os.makedirs(path, exist_ok=True)
    with open(f'{path}/config.json', 'w') as file:
        json.dump(spec, file)
    return path


def command(*words):
    return [OCI, '--root', STATE, *words]


def environment(fault=None):
    env = dict(os.environ, WHERRY_TEST_MARK=WORK)
    if fault:
        env['WHERRY_FAULT'] = fault
    return env


def oci(*words, fault=None, timeout=20):
    """Its output goes to a file: a process that it leaves behind must not hold us up."""
    with open(f'{WORK}/oci.out', 'w+') as out:
        done = subprocess.run(command(*words), stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=timeout,
                              env=environment(fault))
        out.seek(0)
        return done.returncode, out.read().strip()


def marked():
    """Processes that were started by a runtime of ours, or in a container of ours."""
    found = []
    for path in glob.glob('/proc/[0-9]*'):
        pid = int(path[6:])
        try:
            if pid == os.getpid() or open(f'{path}/stat').read().rsplit(')', 1)[1].split()[0] in 'ZX':
                continue
            with open(f'{path}/environ', 'rb') as file:
                by_environment = MARK.encode() in file.read().split(b'\0')
            with open(f'{path}/cgroup') as file:
                by_cgroup = f':{PARENT}/' in file.read()
        except OSError:
            continue
        if by_environment or by_cgroup:
            found.append(pid)
    return found


def left_over(names=()):
    """What is left of all containers, a text each."""
    found = []
    for pid in marked():
        try:
            found.append(f'process {pid} ' + open(f'/proc/{pid}/cmdline').read().replace('\0', ' '))
        except OSError:
            pass
    for top in (f'/sys/fs/cgroup{PARENT}', *glob.glob(f'/sys/fs/cgroup/*{PARENT}')):
        found += [f'cgroup {path}' for path in glob.glob(f'{top}/*/')]
    with open('/proc/self/mountinfo') as file:
        found += [f'mount {line.split()[4]}' for line in file if f'{WORK}/' in line]
    if os.path.isdir(STATE):
        found += [f'file {STATE}/{name}' for name in os.listdir(STATE) if not name.startswith('.')]
    return found
