# SPDX-License-Identifier: MIT
"""stable_test.py PROGRAM SOURCES FOLDER [VERSION]: today's program reads the files of every version in tests/stable, and writes at least the keys
that it wrote then, with values of the same types; a renamed key is found or refused. With a VERSION the files of that version are recorded
instead, as is done once for a release."""
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

PROGRAM, SOURCES, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
RECORDED = SOURCES / "tests/stable"
RUN = ["run", "scenario.toml", "--device", "simulated:round-numbers", "--subject", "the change", "--ledger", "ledger", "--json", "run.json"]
GATE = ["gate", "--base", "./stepgate", "--head", "./stepgate", "scenario.toml", "--device", "simulated:round-numbers", "--seed", "1", "--json", "gate.json"]
ACCEPT = ["accept", "scenario.toml", "--device", "simulated:round-numbers", "--seed", "1", "--commit", "0123abc"]
HISTORY = ["history", "scenario.toml", "--json", "history.json"]
WORKER = ["worker", "scenario.toml", "--device", "simulated:round-numbers", "--seed", "1", "--counts"]
TIMING = ["worker", "scenario.toml", "--device", "simulated:round-numbers", "--seed", "1"]
REQUESTS = [{"do": "hello", "protocol": 1}, {"do": "count", "work": "scenario/baseline"}, {"do": "count", "work": "scenario/fix"}]
TIMED_REQUESTS = [{"do": "hello", "protocol": 1}, {"do": "load", "work": "scenario/fix"}, {"do": "run", "steps": 62, "wash_out": 1}, {"do": "unload"}]
CODES = {
    0: ["run", "scenario.toml", "--device", "simulated:round-numbers", "--seed", "1"],
    1: ["run", "scenario.toml", "--device", "simulated:round-numbers", "--seed", "1", "--set", "sync.where=step"],
    2: ["run", "scenario.toml", "--device", "simulated:no-such-device"],
    3: ["run", "scenario.toml", "--device", "cuda:77"],
    4: ["history", "scenario.toml"],
    77: ["run", "scenario.toml", "--device", "simulated:round-numbers", "--seed", "1", "--no-trace"],
}


def stepgate(*words, **options):
    variables = {name: value for name, value in os.environ.items() if not re.match("CI$|GITHUB_|STEPGATE_", name)}
    return subprocess.run([PROGRAM, *words], text=True, capture_output=True, env={**variables, "STEPGATE_BASELINES": "baselines", "STEPGATE_SETTINGS": "none"}, **options)


def shape(value, path=""):
    """Every place in a JSON value, with the type that stands there; null may become anything."""
    if isinstance(value, dict):
        keys = {(f"{path}.{key}", "key") for key in value}
        return {(path, "object")}.union(keys, *(shape(each, f"{path}.{key}") for key, each in value.items()))
    if isinstance(value, list):
        return {(path, "list")}.union(*(shape(each, f"{path}[]") for each in value))
    if value is None:
        return set()
    return {(path, "boolean" if isinstance(value, bool) else "number" if isinstance(value, (int, float)) else "text")}


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def lost(before, now):
    """What was in the JSON lines before and is not in those of now."""
    return set().union(*map(shape, before)) - set().union(*map(shape, now))


def conversation(folder, words, requests):
    answered = stepgate(*words, cwd=folder, input="".join(json.dumps(request, separators=(",", ":")) + "\n" for request in requests))
    assert answered.returncode == 0, answered
    return list(zip(requests, map(json.loads, answered.stdout.splitlines()), strict=True))


def fresh(name, source):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(source / "scenario.toml", folder)
    shutil.copytree(SOURCES / "tests/baselines", folder / "baselines")
    (folder / "stepgate").symlink_to(PROGRAM)
    return folder


def write_all(folder):
    """Lets the program write every file, in a folder with the scenario."""
    assert (codes := {code: stepgate(*words, cwd=folder).returncode for code, words in CODES.items()}) == {code: code for code in CODES}, codes
    for words in (ACCEPT, [*RUN, "--seed", "1"], GATE):
        assert (done := stepgate(*words, cwd=folder)).returncode == 0, done
    assert (done := stepgate(*HISTORY, cwd=folder)).returncode == 4, done  # one run shows no drift
    said = conversation(folder, WORKER, REQUESTS) + conversation(folder, TIMING, TIMED_REQUESTS)
    (folder / "worker.jsonl").write_text("".join(json.dumps(line) + "\n" for pair in said for line in pair))


FILES = ["run.json", "gate.json", "history.json", "worker.jsonl"]
KEPT = ["ledger/simulated/gpu-of-round-numbers/scenario.toml", "baselines/simulated/gpu-of-round-numbers/scenario.toml"]


def read_ledger(folder, ledger):
    shutil.rmtree(folder / "ledger", ignore_errors=True)
    (folder / KEPT[0]).parent.mkdir(parents=True)
    (folder / KEPT[0]).write_text(ledger)
    (folder / "run.json").unlink(missing_ok=True)
    run = stepgate(*RUN, "--seed", "2", cwd=folder)  # no evidence counts twice
    return run, run.returncode == 0 and lines_of(folder / "run.json")[0]["earlier"]["runs"]


def read_history(folder, baseline):
    (folder / KEPT[1]).parent.mkdir(parents=True, exist_ok=True)
    (folder / KEPT[1]).write_text(baseline)
    history = stepgate(*HISTORY, cwd=folder)
    return history, lines_of(folder / "history.json") if history.returncode == 4 else []


def replay(worker, requests):
    """A worker that answers as the recorded one did."""
    return f"python3 {SOURCES}/tests/stable/replay.py {worker} {len(requests)}"


def gate_accepting(folder, accepted):
    """A gate of a HEAD that waits in every step, which somebody accepts."""
    (folder / "accepted.toml").write_text(accepted)
    base = f"./stepgate {' '.join(WORKER)}"
    return stepgate("gate", "--only", "counts", "--base-command", base, "--head-command", f"{base} --set sync.where=step", "--accepted", "accepted.toml", cwd=folder)


def check(version):
    before = RECORDED / version
    folder = fresh(version, before)
    assert (codes := stepgate("check", "scenario.toml", cwd=folder)).returncode == 0, codes
    write_all(folder)
    for name in FILES:
        assert not (gone := lost(lines_of(before / name), lines_of(folder / name))), f"{version}/{name}: {sorted(gone)}"
        for key in re.findall(r'"(\w+)":', (before / name).read_text())[::5]:
            planted = [json.loads(line.replace(f'"{key}":', '"planted":')) for line in (folder / name).read_text().splitlines()]
            assert lost(lines_of(before / name), planted), f"{version}/{name}: '{key}' was renamed, and nothing said so"
    # Others compute the verdict from the JSON of then, and export it.
    for words in ([SOURCES / "ci/recompute.py", before / "run.json"], ["-m", "stepgate", "export", "--format", "csv", before / "run.json"]):
        read = subprocess.run([sys.executable, *words], env={**os.environ, "PYTHONPATH": SOURCES / "python"}, text=True, capture_output=True)
        assert read.returncode == 0, read
    # Files that are kept between runs, and the same with the names of keys changed.
    ledger, baseline = ((before / pathlib.Path(name).parts[0]).with_suffix(".toml").read_text() for name in KEPT)
    run, earlier = read_ledger(folder, ledger)
    assert earlier == 1, run
    history, series = read_history(folder, baseline)
    assert series and "1 run since" in history.stdout, history
    for key in ("format", "seed", "subject"):
        run, _ = read_ledger(folder, re.sub(rf"^{key} ", "planted ", ledger, count=1, flags=re.M))
        assert run.returncode == 2, (key, run)
    for key in ("format", "commit", "date"):
        history, _ = read_history(folder, re.sub(rf"^{key} ", "planted ", baseline, count=1, flags=re.M))
        assert history.returncode == 2, (key, history)
    # Accepted changes, of which the date is over one day.
    in_a_month = datetime.date.today() + datetime.timedelta(days=30)
    accepted = re.sub(r'^(until +)= ".*"$', rf'\1= "{in_a_month}"', (before / "accepted.toml").read_text(), flags=re.M)
    one_less = accepted.rpartition("[[accepted]]")[0]
    for text, code in ((accepted, 0), (one_less, 1), *((re.sub(rf"^{key} ", "planted ", accepted, count=1, flags=re.M), 2) for key in ("workload", "what", "at_most", "who", "why", "until"))):
        assert (gate := gate_accepting(folder, text)).returncode == code, (text, gate)
    # A worker of then beside one of today.
    head = f"./stepgate {' '.join(WORKER)}"
    for worker, code in ((before / "worker.jsonl", 0), (folder / "planted.jsonl", 3)):
        (folder / "planted.jsonl").write_text((before / "worker.jsonl").read_text().replace('"works"', '"planted"'))
        gate = stepgate("gate", "--only", "counts", "--base-command", replay(worker, REQUESTS), "--head-command", head, cwd=folder)
        assert gate.returncode == code, (worker, gate)


def record(version):
    (RECORDED / version).mkdir()
    for name in ("scenario.toml", "accepted.toml"):
        shutil.copy(RECORDED / name, RECORDED / version)
    folder = fresh(version, RECORDED / version)
    write_all(folder)
    for name in FILES:
        shutil.copy(folder / name, RECORDED / version)
    for name in KEPT:
        shutil.copy(folder / name, (RECORDED / version / pathlib.Path(name).parts[0]).with_suffix(".toml"))


if len(sys.argv) > 4:
    record(sys.argv[4])
versions = sorted(each.name for each in RECORDED.iterdir() if each.is_dir())
assert "0.2.0" in versions, versions
for version in versions:
    check(version)
print(f"reads the files of {', '.join(versions)}")
