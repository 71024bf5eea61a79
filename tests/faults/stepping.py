# wherry-oci under stepper.c: a command line that is killed, or fails, at one of its system calls.
import os
import re
import subprocess

from bundles import WORK, command, environment

STEPPER = f'{WORK}/stepper'
REPORT = f'{WORK}/stepper.report'
HANG = 15  # seconds; a command line takes a hundredth of a second


def call_names():
    with open('/usr/include/x86_64-linux-gnu/asm/unistd_64.h') as file:
        return {int(number): name for name, number in re.findall(r'#define __NR_(\w+) (\d+)', file.read())}


NAMES = call_names()


def build(here):
    subprocess.run(['gcc', '-O1', '-o', STEPPER, f'{here}/stepper.c'], check=True)


def step(options, what, words, out_name='step.out'):
    """(status, standard output, standard error, {process: (calls, name of the call that was hit)}); status None: it hung."""
    if os.path.exists(REPORT):
        os.unlink(REPORT)
    with open(f'{WORK}/{out_name}', 'w+') as out, open(f'{WORK}/step.err', 'w+') as err:
        stepper = subprocess.Popen([STEPPER, '-o', REPORT, *options, *what, '--', *command(*words)],
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment())
        try:
            status = stepper.wait(HANG)
        except subprocess.TimeoutExpired:
            stepper.kill()
            stepper.wait()
            status = None
        out.seek(0), err.seek(0)
        output, errors = out.read(), err.read().strip()
    report = {}
    if os.path.exists(REPORT):
        with open(REPORT) as file:
            for line in file:
                process, calls, hit = map(int, line.split())
                report[process] = (calls, NAMES.get(hit, str(hit)) if hit >= 0 else None)
    return status, output, errors, report


def sample(calls, most, first=1):
    """At most so many of the calls, spread evenly."""
    if not most or calls <= most:
        return list(range(first, calls + 1))
    return [first + (calls - first) * index // (most - 1) for index in range(most)]
