# SPDX-License-Identifier: MIT
# out_of_memory_test.py PROGRAM REPOSITORY LIBRARY FOLDER: lets one allocation of C++ after the other fail in `run`, `check`, `mutate`
# and others, and in every process that they start: some of the first 50, and STEPGATE_FAILED_ALLOCATIONS (15) at even distances up to
# the last. Each run ends as without the failure, or with 3 and words, or 2 where an output could not be written; never by a signal.
import os
import pathlib
import re
import shutil
import subprocess
import sys

PROGRAM, REPOSITORY, LIBRARY, PLACE = (pathlib.Path(word).resolve() for word in sys.argv[1:5])
TIMES = int(os.environ.get("STEPGATE_FAILED_ALLOCATIONS", "15"))
FAILED = "[an allocation fails]\n"
shutil.rmtree(PLACE, ignore_errors=True)
PLACE.mkdir(parents=True)
(PLACE / "s.toml").write_text("""claim = "half the kernels take half the time"
model = { kind = "spin", kernel_us = 20 }
[variant.baseline]
model.kernels = 20
[variant.fix]
model.kernels = 10
[expect]
line = "fix.samples_per_s >= 1.5 * baseline.samples_per_s"
""")
VERBS = {
    "run": ["run", "s.toml", "--device", "simulated:round-numbers", "--seed", "1", "--json", "r.json", "--junit", "r.xml", "--report", "r.html",
            "--ledger", "l"],
    "mutate": ["mutate", "s.toml", "--device", "simulated:round-numbers"],
    "plan": ["plan", "s.toml", "--memory", "--picture", "p.svg"],
    "check": ["check", "s.toml"],
    "list": ["list", "--json", "s.toml"],
    "help": ["--help"],
    "accept": ["accept", "s.toml", "--device", "simulated:round-numbers", "--baselines", "b"],
    "gate": ["gate", "--only", "counts", "--base", str(PROGRAM), "--head", str(PROGRAM), "s.toml", "--device", "simulated:round-numbers", "--seed", "1"],
}
faults = []


def run(verb, number):
    shutil.rmtree(PLACE / "b", ignore_errors=True)
    shutil.rmtree(PLACE / "l", ignore_errors=True)
    shutil.copytree(REPOSITORY / "tests/baselines", PLACE / "b")
    variables = {name: value for name, value in os.environ.items() if not re.match("CI$|GITHUB_|STEPGATE_", name)}
    variables |= {"STEPGATE_BASELINES": str(REPOSITORY / "tests/baselines"), "LD_PRELOAD": str(LIBRARY), "STEPGATE_FAILS_AT": str(number)}
    return subprocess.run([PROGRAM, *VERBS[verb]], cwd=PLACE, env=variables, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def last_of(verb, whole):
    """The number of allocations, to a tenth."""
    most = 50
    while FAILED in run(verb, most).stderr:  # of the first process
        most = most * 11 // 10 + 1 if most > 50000 else most * 2
    return most


looked_at = 0
for verb in VERBS:
    whole = run(verb, 0)
    assert whole.returncode in (0, 1, 77), (verb, whole)
    last = last_of(verb, whole)
    few = range(1, 51, max(1, 250 // TIMES))
    for number in sorted({*few, *(50 + (last - 50) * step // TIMES for step in range(TIMES))}):
        done = run(verb, number)
        failed = FAILED.strip() in done.stderr + done.stdout
        words = (done.stderr + done.stdout).replace(FAILED, "")
        looked_at += failed
        good = done.returncode == whole.returncode or (failed and done.returncode in (2, 3) and len(words.strip()) > 20)
        if not good:
            faults.append((verb, number, done.returncode, words[-300:]))
for fault in faults:
    print(*fault)
assert looked_at > TIMES, "hardly an allocation failed"
sys.exit(f"{len(faults)} of {looked_at} failures are not told" if faults else 0)
