# SPDX-License-Identifier: MIT
# one_failure_test.py PROGRAM REPOSITORY LIBRARY TRACER FOLDER: lets one allocation of a verb's process or of its children fail
# (fail_allocation.cpp), or one of their system calls (fail_system_call.cpp), in a run of its own. Each ends as without the failure and
# with all that was asked for, or with 3 or 2 and words; never by a signal. What was stored before is there, and no output is half of one.
# STEPGATE_FAILURES says how many fail of the allocations that are the first at their call stack, and of the system calls in each way that
# they can fail: 15 of either at each verb if it is not set, `all`, or `every`, which takes every allocation of `run` and `check`.
# STEPGATE_FAILURE_SECONDS ends the loop earlier, in an order that differs from day to day. STEPGATE_FAILURES_OF is a pattern, such as
# `gate sys`, and with STEPGATE_FAILURES_TOLD the end of each run is printed.
import collections
import concurrent.futures
import datetime
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import tomllib
import xml.etree.ElementTree

PROGRAM, REPOSITORY, LIBRARY, TRACER, PLACE = (pathlib.Path(word).resolve() for word in sys.argv[1:6])
HOW_MANY = os.environ.get("STEPGATE_FAILURES", "15")
SECONDS = os.environ.get("STEPGATE_FAILURE_SECONDS")
ONLY = os.environ.get("STEPGATE_FAILURES_OF", "")
SEED = str(datetime.date.today()) if SECONDS else "1"
SHARED_BYTES = 3 << 20
WAYS = 3
DEVICE = ["--device", "simulated:round-numbers"]
VERBS = {
    "run": ["run", "s.toml", *DEVICE, "--seed", "1", "--json", "r.json", "--junit", "r.xml", "--report", "r.html", "--ledger", "l"],
    "mutate": ["mutate", "s.toml", *DEVICE],
    "plan": ["plan", "s.toml", "--memory", "--picture", "p.svg"],
    "check": ["check", "s.toml"],
    "list": ["list", "--json", "s.toml"],
    "help": ["--help"],
    "accept": ["accept", "s.toml", *DEVICE, "--baselines", "b"],
    "gate": ["gate", "--only", "counts", "--base", str(PROGRAM), "--head", str(PROGRAM), "s.toml", *DEVICE, "--seed", "1", "--json", "g.json"],
}
ALSO = [("gate", 4)]  # where BASE does not answer, the gate cannot compare
STORED = {"l": "--ledger", "b": "--baselines"}
VARIABLES = {name: value for name, value in os.environ.items() if not re.match("CI$|GITHUB_|STEPGATE_", name)}
VARIABLES["STEPGATE_BASELINES"] = str(REPOSITORY / "tests/baselines")
shutil.rmtree(PLACE, ignore_errors=True)
PLACE.mkdir(parents=True)
TEMPLATE = PLACE / "template"
TEMPLATE.mkdir()
SCENARIO = """claim = "half the kernels take half the time"
model = { kind = "spin", kernel_us = 20 }
[variant.baseline]
model.kernels = 20
[variant.fix]
model.kernels = 10
[expect]
line = "fix.samples_per_s >= 1.5 * baseline.samples_per_s"
"""
(TEMPLATE / "s.toml").write_text(SCENARIO)
shutil.copytree(REPOSITORY / "tests/baselines", TEMPLATE / "b")


def start(words, folder, variables=None):
    """The code, None after two minutes, and what was said."""
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
        process = subprocess.Popen(words, cwd=folder, env=VARIABLES | (variables or {}), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   start_new_session=True)
        try:
            code = process.wait(120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
    return code, (folder / "err").read_text(errors="replace") + (folder / "out").read_text(errors="replace")


# One run is stored before, which no failure must cost: in the ledger one of another text, which decides nothing.
assert start([PROGRAM, *VERBS["accept"]], TEMPLATE)[0] == 0
(TEMPLATE / "s.toml").write_text(SCENARIO.replace("1.5 *", "1.4 *"))
assert start([PROGRAM, "run", "s.toml", *DEVICE, "--seed", "2", "--ledger", "l"], TEMPLATE)[0] == 0
(TEMPLATE / "s.toml").write_text(SCENARIO)


def stored_file(folder, place):
    return folder / place / "simulated/gpu-of-round-numbers/s.toml"


def digests(text):
    return [run["digest"] for run in tomllib.loads(text)["run"]]


def fault_of_stored(folder, place, is_asked_for):
    before = stored_file(TEMPLATE, place).read_text()
    file = stored_file(folder, place)
    if not file.exists():
        return f"{place} is lost"
    text = file.read_text(errors="replace")
    if text == before:
        return f"{place} has no new run" if is_asked_for else None
    if start([PROGRAM, "history", "s.toml", STORED[place], place], folder)[0] == 2:
        return f"{place} is damaged"
    return None if digests(text)[:-1] == digests(before) else f"{place} has {digests(text)}"


def fault_of_text(file, reads, is_asked_for):
    text = file.read_text(errors="replace") if file.exists() else ""
    if not text:
        return f"{file.name} is missing" if is_asked_for else None
    try:
        reads(text)
    except (ValueError, xml.etree.ElementTree.ParseError) as error:
        return f"{file.name} is half of one: {error}"


def whole_page(text):
    if not text.rstrip().endswith(("</html>", "</svg>")):
        raise ValueError("it has no end")


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


READERS = {".json": json_lines, ".xml": xml.etree.ElementTree.fromstring, ".html": whole_page, ".svg": whole_page}


def faults_of(verb, folder, code, words, as_ever):
    """What is wrong with a run in which something failed."""
    if code is None:
        yield "it hangs"
    elif code not in (as_ever, 2, 3) and (verb, code) not in ALSO:
        yield f"it ends with {code}"
    elif code != as_ever and len(words.strip()) < 20:
        yield "it says nothing"
    elif re.search("^: |not TOML", words, re.MULTILINE):
        yield "it names nothing, or a fault that no file has"
    for word in VERBS[verb]:
        if (reads := READERS.get(pathlib.Path(word).suffix)) and "/" not in word:
            yield fault_of_text(folder / word, reads, code == as_ever)
    if verb in ("run", "accept"):
        yield fault_of_stored(folder, "l" if verb == "run" else "b", code == as_ever)


class Allocations:
    """The first allocation at each call stack, as "P:N"; every one of run and check."""

    def prepare(self, folder):
        (folder / "shared").write_bytes(b"")
        os.truncate(folder / "shared", SHARED_BYTES)
        return {"LD_PRELOAD": str(LIBRARY), "STEPGATE_FAILING_FILE": str(folder / "shared")}

    def shared(self, folder):
        with open(folder / "shared", "rb") as file:
            processes, failed, *counts = struct.unpack("256q", file.read(8 * 256))
        return failed, counts[:processes]

    def places(self, verb, folder):
        (folder / "shared.stacks").write_text("")
        start([PROGRAM, *VERBS[verb]], folder, self.prepare(folder))
        _, counts = self.shared(folder)
        stacks = (folder / "shared.stacks").read_text().split("\n")[:-1]
        print(f"{verb}: {sum(counts)} allocations in {sum(map(bool, counts))} processes, {len(stacks)} call stacks", flush=True)
        if HOW_MANY == "every" and verb in ("run", "check"):
            return [f"{process}:{number}" for process, count in enumerate(counts) for number in range(1, count + 1)]
        return [line.replace(" ", ":") for line in stacks]

    def fail(self, verb, place, folder):
        code, words = start([PROGRAM, *VERBS[verb]], folder, self.prepare(folder) | {"STEPGATE_FAILS_AT": place})
        return code, words, "an allocation" if self.shared(folder)[0] else None


class SystemCalls:
    """Every one, as "WAY:N"."""

    def words(self, verb, place, folder):
        way, number = place.split(":")
        return [TRACER, number, way, folder / "report", PROGRAM, *VERBS[verb]]

    def places(self, verb, folder):
        places = []
        for way in range(WAYS):
            start(self.words(verb, f"{way}:0", reset(folder)), folder)
            count = int((folder / "report").read_text())
            places += [f"{way}:{number}" for number in range(1, count + 1)]
            print(f"{verb}: {count} system calls can fail in {way + 1} or more ways", flush=True)
        return places

    def fail(self, verb, place, folder):
        code, words = start(self.words(verb, place, folder), folder)
        report = (folder / "report").read_text().split("\n")
        return code, words, report[0] if len(report) > 2 or (code is None and report[0]) else None


def reset(folder):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(TEMPLATE, folder)
    return folder


KINDS = {"allocations": Allocations(), "system calls": SystemCalls()}
codes_as_ever = {verb: start([PROGRAM, *words], reset(PLACE / "whole" / verb))[0] for verb, words in VERBS.items()}
assert set(codes_as_ever.values()) == {0}, codes_as_ever


def cut_short(name):
    return lambda folder: os.truncate(folder / name, 500)


# A file of two runs, neither of which was there before.
OTHER = reset(PLACE / "other")
stored_file(OTHER, "l").unlink()
for seed in ("3", "4"):
    (OTHER / "s.toml").write_text(SCENARIO.replace("1.5 *", f"1.{seed} *"))
    start([PROGRAM, "run", "s.toml", *DEVICE, "--seed", seed, "--ledger", "l"], OTHER)
# Each of these ends of a run would be found.
TOLD = "there is not enough host memory"
for code, words, change, found in (
        (0, "", lambda _: None, []),
        (3, TOLD, lambda _: None, []),
        (-6, "terminate called", lambda _: None, ["it ends with -6"]),
        (139, "", lambda _: None, ["it ends with 139"]),
        (77, TOLD, lambda _: None, ["it ends with 77"]),
        (None, TOLD, lambda _: None, ["it hangs"]),
        (3, "", lambda _: None, ["it says nothing"]),
        (2, ": cannot be read: Invalid argument", lambda _: None, ["it names nothing"]),
        (2, "s.toml:3:1: not TOML: '0.5' could not be interpreted", lambda _: None, ["it names nothing"]),
        (3, TOLD, cut_short("r.json"), ["r.json is half of one"]),
        (3, TOLD, cut_short("r.xml"), ["r.xml is half of one"]),
        (2, TOLD, cut_short("r.html"), ["r.html is half of one"]),
        (0, "", lambda folder: (folder / "r.html").unlink(), ["r.html is missing"]),
        (0, "", lambda folder: (folder / "r.json").write_text(""), ["r.json is missing"]),
        (3, TOLD, lambda folder: shutil.rmtree(folder / "l"), ["l is lost"]),
        (3, TOLD, cut_short(stored_file(pathlib.Path(), "l")), ["l is damaged"]),
        (0, "", lambda folder: shutil.copy(stored_file(TEMPLATE, "l"), stored_file(folder, "l")), ["l has no new run"]),
        (0, "", lambda folder: shutil.copy(stored_file(OTHER, "l"), stored_file(folder, "l")), ["l has ["])):
    planted = PLACE / "planted"
    shutil.rmtree(planted, ignore_errors=True)
    shutil.copytree(PLACE / "whole/run", planted)
    change(planted)
    faults = [fault for fault in faults_of("run", planted, code, words, 0) if fault]
    assert len(faults) == len(found) and all(map(str.startswith, faults, found)), (code, words, faults, found)
jobs = []
for verb in VERBS:
    for kind, what in KINDS.items():
        if not re.search(ONLY, f"{verb} {kind}"):
            continue
        places = what.places(verb, reset(PLACE / "places"))
        assert places, (verb, kind)
        if HOW_MANY.isdigit():
            places = [places[len(places) * index // int(HOW_MANY)] for index in range(int(HOW_MANY))]
        jobs += [(verb, kind, place) for place in places]
if SECONDS:
    random.Random(SEED).shuffle(jobs)
deadline = time.monotonic() + float(SECONDS or "inf")
ends = collections.Counter()
faults = []


def say(*facts):
    print("; ".join(map(str, facts))[:700].replace("\n", " | ") + "\n", end="", flush=True)


def look_at(job):
    verb, kind, place = job
    if time.monotonic() > deadline:
        return
    folder = reset(PLACE / f"thread{threading.get_ident()}")
    code, words, failed = KINDS[kind].fail(verb, place, folder)
    ends[verb, kind, "is not reached" if not failed else "as ever" if code == codes_as_ever[verb] else code] += 1
    for fault in filter(None, faults_of(verb, folder, code, words, codes_as_ever[verb])):
        faults.append((verb, kind, place))
        say(verb, kind, place, failed, fault, words.strip()[-300:])
    if os.environ.get("STEPGATE_FAILURES_TOLD"):
        say("told", verb, kind, place, failed, code, words.strip()[-300:])


with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
    list(pool.map(look_at, jobs))
for (verb, kind, end), count in sorted(ends.items(), key=str):
    print(f"{verb}, {kind}, {end}: {count}")
looked_at = sum(count for (_, _, end), count in ends.items() if end != "is not reached")
print(f"{looked_at} failures of {len(jobs)} in the order of {SEED}")
assert looked_at > min(len(jobs) // 2, 100), "hardly anything failed"
sys.exit(f"{len(set(faults))} of {looked_at} failures are not told" if faults else 0)
