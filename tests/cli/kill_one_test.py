# SPDX-License-Identifier: MIT
# kill_one_test.py PROGRAM REPOSITORY FOLDER: wherever stepgate runs a program of somebody else, which starts children that leave its
# process group and ignore requests to end, each one process of stepgate's is killed (SIGKILL) in a run of its own. Nothing of the
# program is left; where all are killed at once something is, and is found.
import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

PROGRAM, REPOSITORY, PLACE = (pathlib.Path(word).resolve() for word in sys.argv[1:])
shutil.rmtree(PLACE, ignore_errors=True)
PLACE.mkdir(parents=True)
STUBBORN = """#!/bin/sh
trap '' TERM HUP INT
setsid sh -c "trap '' TERM HUP INT; sleep $1 & exec sleep $1" </dev/null >/dev/null 2>&1 &
exec sleep $1
"""
(PLACE / "stubborn").write_text(STUBBORN)
(PLACE / "stubborn").chmod(0o755)
(PLACE / "s.toml").write_text('claim = "c"\nmodel = { kind = "spin", kernels = 10, kernel_us = 20 }\n[variant.step]\n[expect]\nw = "step.host_waits_per_step == 0"\n')
SIMULATED = ["--device", "simulated", "--seed", "7"]


def calls(mark):
    program = f'program = {{ command = ["./stubborn", "{mark}"], timeout_s = 8 }}\n[variant.step]\n[expect]\n'
    (PLACE / f"counted{mark}.toml").write_text('claim = "c"\n' + program + 'w = "step.host_waits_per_step <= 9"\n')
    (PLACE / f"timed{mark}.toml").write_text('claim = "c"\n' + program + 'w = "step.steps_per_s >= 1"\n')
    (PLACE / f"head{mark}").write_text(f'#!/bin/sh\ncase "$*" in *" run "*) exec ./stubborn {mark};; esac\nexec {PROGRAM} "$@"\n')
    (PLACE / f"head{mark}").chmod(0o755)
    return {
        "attach": ["attach", "--", "./stubborn", mark],
        "run of counts": ["run", f"counted{mark}.toml"],
        "run of times": ["run", f"timed{mark}.toml"],
        "gate --program": ["gate", "--program", f"counted{mark}.toml", "--base", ".", "--head", ".", "--only", "counts"],
        "worker": ["gate", "--only", "time", "--base-command", f"./stubborn {mark}", "--head-command", f"./stubborn {mark}", "--stall-seconds", "8"],
        "HEAD's run": ["gate", "--only", "assertions", "--base", str(PROGRAM), "--head", f"./head{mark}", "s.toml", *SIMULATED, "--run-seconds", "8"],
    }


def processes():
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                stat = (entry / "stat").read_text()
                yield int(entry.name), words, int(stat[stat.rindex(")") + 2:].split()[1]), os.readlink(entry / "exe")
            except (OSError, ValueError):  # it has ended
                continue


def theirs(mark):
    return [number for number, words, _, exe in processes() if mark.encode() in words and pathlib.Path(exe) != PROGRAM]


def ours(first):
    found, grew = {first}, True
    while grew:
        more = {number for number, _, parent, exe in processes() if parent in found and pathlib.Path(exe) == PROGRAM}
        grew = not more <= found
        found |= more
    return [first, *sorted(found - {first})]


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


ALL = 99


def kill_one(name, index, mark):
    """What is wrong, and how many processes stepgate had."""
    variables = {variable: value for variable, value in os.environ.items() if not re.match("CI$|GITHUB_|STEPGATE_", variable)}
    run = subprocess.Popen([PROGRAM, "--baselines", REPOSITORY / "tests/baselines" if "HEAD" not in name else REPOSITORY / "baselines", *calls(mark)[name]],
                           cwd=PLACE, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=(PLACE / mark).open("w"))
    try:
        if not wait_until(lambda: len(theirs(mark)) >= (6 if name in BOTH else 3) or run.poll() is not None, 30) or run.poll() is not None:
            return f"{name}: the program did not come: {(PLACE / mark).read_text()}", 0
        mine = ours(run.pid)
        for number in mine if index == ALL else [mine[min(index, len(mine) - 1)]]:
            os.kill(number, signal.SIGKILL)
        if not wait_until(lambda: run.poll() is not None, 60):
            return f"{name}: still runs after the {index + 1}. of {len(mine)} of ours was killed", len(mine)
        if not wait_until(lambda: not theirs(mark), 5):
            return f"{name}: of the program {len(theirs(mark))} processes are left after the {index + 1}. of {len(mine)} of ours was killed", len(mine)
        return "", len(mine)
    finally:
        run.kill()
        run.wait()
        for number in theirs(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)


# The processes of stepgate's: itself and a supervisor of each program; in a gate of programs a worker of each side as well.
OURS = {"attach": 2, "run of counts": 2, "run of times": 2, "gate --program": 7, "worker": 3, "HEAD's run": 2}
BOTH = ["gate --program", "worker"]
jobs = [(name, index) for name, count in OURS.items() for index in range(count)]
with concurrent.futures.ThreadPoolExecutor(9) as pool:
    done = list(pool.map(lambda job: kill_one(*job[1], f"9{job[0]:03}.{os.getpid()}"), enumerate(jobs)))
    planted, _ = pool.submit(kill_one, "attach", ALL, f"99.{os.getpid()}").result()
faults = [fault for fault, _ in done if fault]
found = {name: max(count for (of, _), (_, count) in zip(jobs, done) if of == name) for name in OURS}
if "are left" not in planted:
    faults.append(f"nothing is seen to be left where all of ours are killed: {planted}")
print(*faults, found, sep="\n")
sys.exit("something is left" if faults else "there are other processes of stepgate's" if found != OURS else 0)
