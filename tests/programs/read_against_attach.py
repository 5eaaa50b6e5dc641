# SPDX-License-Identifier: MIT
"""Reads traces of profiled.py and attaches to the same program on a GPU: the counts of both must be equal, and what is known by
construction.

    python3 read_against_attach.py STEPGATE [NAME...]

Prints a line a case. Ends with 77 where there is no PyTorch or no GPU.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "profiled.py")
# The things of profiled.py, then options for its trace alone.
CASES = {
    "plain": ([], []),
    "item": (["item=1"], []),
    "items": (["item=3", "small=7"], []),
    "logged": (["every=10"], []),
    "pageable": (["pageable=2"], []),
    "pinned": (["pinned=3", "clone=1"], []),
    "waits": (["wait=1", "event=2"], []),
    "polls": (["poll=5", "item=1"], []),
    "caches": (["empty_cache=1"], []),
    "graphs": (["graph=2", "pinned=1"], []),
    "sync_events": (["item=2", "wait=1", "event=1"], ["--sync-events"]),
    "stacks": (["item=1", "pageable=1"], ["--stack"]),
    "masks": (["mask=2"], []),
    "hooks": (["hook=1"], []),
    "threads": (["thread=1"], []),
    "to_host": (["cpu=1", "scalar=2"], []),
    "guarded": (["finite=1", "scaler=1"], []),
    "late": (["late=1", "second=1"], []),
    "streams": (["side=2", "cast=1"], []),
    "compiled": (["compiled=3"], []),
    "lstm": (["lstm=1", "item=1"], []),
    "sparse": (["sparse=1"], []),
    "recomputed": (["recompute=1"], []),
}
AT_ONCE = 6  # cases
# The synthetic steps of these traces count what they counted, and take as long within 10 %.
SYNTHETIC = ("plain", "item", "logged", "pageable", "pinned", "waits")
# Polls through the driver are in no trace.
NOT_COMPARED = {"polls"}


def counts_of(stepgate, words, file):
    done = subprocess.run([stepgate, *words], capture_output=True, text=True, timeout=300)
    if not os.path.exists(file):
        raise RuntimeError(done.stdout + done.stderr)
    with open(file) as text:
        processes = [process for process in json.loads(text.readline())["program"] if process["counts"]]
    if len(processes) != 1:
        raise RuntimeError(done.stdout + done.stderr)
    return processes[0], done.stdout


def added(counts, plain, things, known):
    """What is wrong with the counts beside those of the plain loop."""
    wrong = []
    wanted = {}
    for name, number in things:
        for key, value in known.get(name, {}).items():
            wanted[key] = wanted.get(key, 0) + number * value
    for key, value in wanted.items():
        if abs(counts[key] - plain[key] - value) > 1e-9:
            wrong.append(f"{key} is {counts[key] - plain[key]:g} more than that of the plain loop, and {value} is right")
    return wrong


def compared(stepgate, folder, name):
    """The counts that a trace of a case has, what differs, and what read printed."""
    things, options = CASES[name]
    trace = os.path.join(folder, f"{name}.json.gz")
    try:
        subprocess.run([sys.executable, PROGRAM, "--trace", trace, *options, *things], check=True, capture_output=True, timeout=300)
        read, printed = counts_of(stepgate, ["read", "--json", f"{trace}.r", trace], f"{trace}.r")
        attached, _ = counts_of(stepgate, ["attach", "--quiet", "--json", f"{trace}.a", "--skip-steps", "15", "--steps", "20", "--",
                                           sys.executable, PROGRAM, *things], f"{trace}.a")
    except (RuntimeError, subprocess.SubprocessError) as error:
        return {}, [f"{error} {getattr(error, 'stderr', b'') or ''}"], ""
    return read["counts"], [f"{key}: attach {attached['counts'][key]:g}, read {value:g}" for key, value in read["counts"].items()
                            if key not in NOT_COMPARED and abs(attached["counts"][key] - value) > 1e-9], printed


def synthetic(stepgate, folder, name):
    """What is wrong with the synthetic step of a case's trace, and what its run printed."""
    scenario = os.path.join(folder, f"{name}.toml")
    subprocess.run([stepgate, "read", "--as-scenario", scenario, os.path.join(folder, f"{name}.json.gz")], check=True,
                   capture_output=True, timeout=60)
    done = subprocess.run([stepgate, "run", scenario, "-v"], capture_output=True, text=True, timeout=120)
    time = [line.strip() for line in done.stdout.splitlines() if "typical round" in line]
    return [] if done.returncode == 0 else [f"exit code {done.returncode}"], (time or [""])[-1], done.stdout + done.stderr


def main():
    try:
        import torch
    except ImportError:
        print("there is no PyTorch")
        return 77
    if not torch.cuda.is_available():
        print("PyTorch has no GPU")
        return 77
    sys.path.insert(0, HERE)
    from profiled import KNOWN

    stepgate = os.path.abspath(sys.argv[1])
    names = list(dict.fromkeys(["plain", *(sys.argv[2:] or CASES)]))
    failed, plain = 0, {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for name, (counts, wrong, printed) in zip(names, pool.map(lambda name: compared(stepgate, folder, name), names)):
            plain = plain or counts
            if counts and plain:
                things = [(thing.split("=")[0], int(thing.split("=")[1])) for thing in CASES[name][0]]
                wrong += added(counts, plain, things, KNOWN)
            print(f"{name}: {'; '.join(wrong) or 'equal'}")
            if wrong:
                print(printed)
            failed += bool(wrong)
        for name in SYNTHETIC:
            if name not in names:
                continue
            wrong, time, printed = synthetic(stepgate, folder, name)
            print(f"synthetic {name}: {'; '.join(wrong) or 'holds'}; {time}")
            if wrong:
                print(printed)
            failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
