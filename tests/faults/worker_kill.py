# kill -9 of the worker while a container writes and exits: the log is whole, the exit code is right, and no verb is needed in between.
import os
import random
import subprocess
import time

from pods import LONG, WHERRY, Pod, check, children, wherry

SEED = int(os.environ.get('WHERRY_SEED', random.randrange(1 << 30)))
ROUNDS = 200 if LONG else 10
BURSTS, LINES = 12, 1500  # a burst is 1500 lines of 80 bytes: more than a pipe holds
PAD = 'x' * 70

# Each burst in one go; busybox's usleep is the only pause there is.
WRITER = f'''b=0; while [ $b -lt {BURSTS} ]; do
  seq $((b * {LINES} + 1)) $(((b + 1) * {LINES})) | sed 's/$/ {PAD}/'; usleep 20000; b=$((b + 1)); done; exit CODE'''
WANTED = ''.join(f'{i} {PAD}\n' for i in range(1, BURSTS * LINES + 1)).encode()


def difference(wanted, got):
    if wanted == got:
        return []
    at = next((i for i, (a, b) in enumerate(zip(wanted, got)) if a != b), min(len(wanted), len(got)))
    return [f'{len(got)} bytes of {len(wanted)}, different from byte {at}: wanted {wanted[at:at + 30]!r}, got {got[at:at + 30]!r}']


def killed_while_writing(tty, rounds):
    problems, slowest, kills = [], 0.0, 0
    for number in range(rounds):
        code = random.randrange(256)
        flags = ['-t'] if tty else []
        pod = Pod(*flags, None, 'sh', '-c', WRITER.replace('CODE', str(code)))
        where = f'round {number}'
        for _ in range(random.choice((1, 1, 2, 3))):
            time.sleep(random.random() * 0.4)
            took = pod.kill_worker()
            if took is None:
                problems.append(f'{where}: no worker came back')
                break
            kills += took > 0
            slowest = max(slowest, took)
        if not pod.ended():
            problems.append(f'{where}: still {pod.container()["state"]}')
        elif pod.container()['exitCode'] != code:
            problems.append(f'{where}: exit code {pod.container()["exitCode"]}, wanted {code}')
        log = pod.log()
        problems += [f'{where}: {text}' for text in log.problems[:1]]
        got = log.stdout.replace(b'\r\n', b'\n') if tty else log.stdout
        problems += [f'{where}: {text}' for text in difference(WANTED, got)]
        removed = pod.remove()
        if removed.returncode != 0:
            problems.append(f'{where}: rm: {removed.stderr.decode().strip()}')
    kind = 'terminal' if tty else 'pipes'
    if kills < rounds / 2:
        problems.append(f'only {kills} deaths while it ran')
    check(f'killed_while_writing_{kind}', problems)
    # The third death within ten seconds may wait for 200 ms (the back-off); a second is the promise.
    check(f'worker_back_within_a_second_{kind}', [] if slowest < 1 else [f'{slowest:.2f} s (of {kills} kills)'])


def killed_around_the_exit(rounds):
    """REL-04: the code is the true one, whether the worker dies before, during or after the exit."""
    problems = []
    for number in range(rounds):
        code = random.randrange(256)
        pod = Pod(None, 'sh', '-c', f'usleep 150000; echo last words; exit {code}')
        time.sleep(0.05 + random.random() * 0.2)
        pod.kill_worker()
        if not pod.ended():
            problems.append(f'round {number}: still {pod.container()["state"]}')
        elif pod.container()['exitCode'] != code:
            problems.append(f'round {number}: {pod.container()["exitCode"]}, wanted {code}')
        pod.kill_worker()
        said = wherry('wait', pod.id).stdout.decode().strip()
        if said != str(code):
            problems.append(f'round {number}: wait says {said!r} after another death, wanted {code}')
        if pod.log().stdout != b'last words\n':
            problems.append(f'round {number}: log {pod.log().stdout!r}')
        pod.remove()
    check('REL_04_exit_code_stays_true', problems)


def killed_by_a_signal_unseen():
    pod = Pod(None, 'sleep', '1000')
    init = pod.container()['pid']
    keeper_children = children(pod.keeper)
    worker = pod.worker()
    os.kill(worker, 9)
    os.kill(init, 9)
    ended = pod.ended()
    status = pod.container()
    problems = [] if ended and status['exitCode'] == 137 and status.get('signal') == 9 else [f'{status}']
    if init not in keeper_children:
        problems.append('the keeper is not the parent of init')
    pod.remove()
    check('REL_04_killed_during_the_outage', problems)


def burst_then_exit(rounds):
    problems = []
    for number in range(rounds):
        pod = Pod(None, 'sh', '-c', 'seq 1 200000 | head -c 1048576; exit 3')
        wanted = ''.join(f'{i}\n' for i in range(1, 200001)).encode()[:1048576] + b'\n'  # what ends the last line
        if not pod.ended():
            problems.append(f'round {number}: still running')
        # The exit is published, so the log must be whole now, with no grace.
        log = pod.log()
        problems += [f'round {number}: {text}' for text in log.problems[:1]]
        problems += [f'round {number}: {text}' for text in difference(wanted, log.stdout)]
        if pod.container()['exitCode'] != 3:
            problems.append(f'round {number}: exit code {pod.container()["exitCode"]}')
        pod.remove()
    check('REL_23_burst_then_exit', problems)


def random_text(size):
    """Lines of any length, many of more than 16 KiB, bytes of any value."""
    out = bytearray()
    while len(out) < size:
        kind = random.random()
        length = 0 if kind < 0.2 else random.randrange(1, 200) if kind < 0.7 else random.randrange(1000, 70000)
        out += random.randbytes(length).replace(b'\n', b'.') + b'\n'
    return bytes(out[:size])


def partial_lines(rounds):
    problems = []
    for number in range(rounds):
        text = random_text(random.randrange(1, 400_000))
        if number % 2:
            text = text.rstrip(b'\n') + b'the end'  # no newline at the end
        share = os.path.join(os.environ['WORK'], 'share')
        os.makedirs(share, exist_ok=True)
        with open(f'{share}/text', 'wb') as file:
            file.write(text)
        sizes = [random.choice((1, 7, 100, 4095, 4096, 16383, 16384, 16385, 65536, 100000)) for _ in range(6)]
        steps, at = [], 0
        while at < len(text) and len(steps) < 60:
            size = random.choice(sizes)
            steps.append(f'tail -c +{at + 1} /share/text | head -c {size}')
            at += size
        steps.append(f'tail -c +{at + 1} /share/text')
        with open(f'{share}/write', 'w') as file:
            file.write('\n'.join(steps) + '\n')
        pod = Pod('-v', f'{share}:/share:ro', None, 'sh', '/share/write')
        if number % 3 == 2:
            time.sleep(random.random() * 0.2)
            pod.kill_worker()
        if not pod.ended():
            problems.append(f'round {number}: still running')
        log = pod.log()
        problems += [f'round {number}: {found}' for found in log.problems[:1]]
        # The line that was open at the end is closed with F: the same bytes and a newline.
        wanted = text if text.endswith(b'\n') or not text else text + b'\n'
        problems += [f'round {number}: {found}' for found in difference(wanted, log.stdout)]
        if text and log.last_tag.get('stdout') != b'F':
            problems.append(f'round {number}: the last line has no F')
        if log.longest > 16384 + 100:
            problems.append(f'round {number}: a line of {log.longest} bytes')
        pod.remove()
    check('REL_24_partial_lines', problems)


def exec_ends():
    """REL-28: the exec of `sleep 365d &` is over when its process is, though the pipe is still held."""
    pod = Pod(None, 'sleep', '1000')
    problems = []
    for script, code in (('sleep 365d &', 0), ('sleep 365d & echo out', 0), ('sleep 365d & exit 4', 4)):
        out = os.path.join(os.environ['WORK'], 'exec.out')
        began = time.monotonic()
        with open(out, 'wb') as file:
            client = subprocess.Popen([WHERRY, 'exec', pod.id, 'sh', '-c', script], stdin=subprocess.DEVNULL,
                                      stdout=file, stderr=file)
        try:
            if client.wait(5) != code:
                problems.append(f'{script!r}: status {client.returncode}')
        except subprocess.TimeoutExpired:
            client.kill()
            client.wait()
            problems.append(f'{script!r}: not over after {time.monotonic() - began:.1f} s')
        if 'echo' in script and open(out).read() != 'out\n':
            problems.append(f'{script!r}: output {open(out).read()!r}')
    pod.remove()
    check('REL_28_exec_ends_with_its_process', problems)


if __name__ == '__main__':
    print(f'# seed {SEED}', flush=True)
    random.seed(SEED)
    killed_while_writing(tty=False, rounds=ROUNDS)
    killed_while_writing(tty=True, rounds=ROUNDS)
    killed_around_the_exit(ROUNDS)
    killed_by_a_signal_unseen()
    burst_then_exit(1000 if LONG else 8)
    partial_lines(100 if LONG else 12)
    exec_ends()
