# SPDX-License-Identifier: MIT
"""command_again_test.py PROGRAM SOURCES FOLDER: the command at the end of every report that did not pass, as a shell reads it, says the same
again, and one with another seed does not."""
import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

PROGRAM, SOURCES, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[1:])
shutil.rmtree(FOLDER, ignore_errors=True)
(FOLDER / "bin").mkdir(parents=True)
(FOLDER / "bin/stepgate").symlink_to(PROGRAM)
ENVIRONMENT = {**os.environ, "PATH": f"{FOLDER}/bin:{os.environ['PATH']}", "STEPGATE_BASELINES": f"{SOURCES}/tests/baselines", "STEPGATE_PROFILES": f"{SOURCES}/baselines"}
for name in ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
    ENVIRONMENT.pop(name, None)


def called(command):
    # An option of the command must stand for the folder that the variable names here.
    environment = ENVIRONMENT if isinstance(command, list) else {name: value for name, value in ENVIRONMENT.items() if name != "STEPGATE_BASELINES"}
    return subprocess.run(command if isinstance(command, list) else ["bash", "-c", command], cwd=FOLDER, env=environment, text=True, capture_output=True)


def scenario(file, limit, variants="[variant.baseline]\nmodel.kernels = 20\n[variant.fix]\nmodel.kernels = 10\n", more=""):
    path = FOLDER / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'claim = "a claim"\ntags = ["ab"]\nmodel = {{ kind = "spin", kernel_us = 20 }}\n{more}{variants}[expect]\nline = "fix.samples_per_s >= {limit} * baseline.samples_per_s"\n')


def story(text, name):
    """What the output says of a scenario, without the line of the command."""
    found = re.search(rf"^{re.escape(name)} on .*?^(?:SIMULATED )?{re.escape(name)}: [^\n]*$", text, re.M | re.S)
    assert found, (name, text)
    return found[0]


def outcomes(text, name):
    return re.findall(rf"^  (\w+) +line  |^SIMULATED {re.escape(name)}: (\w+)", story(text, name), re.M)


def commands_in_text(text):
    return re.findall(r"^again: (.*)$", text, re.M)


def commands_in_markdown(text):
    return [html.unescape(found) for found in re.findall(r"again: <code>(.*?)</code>", text)]


def commands_in_junit(text):
    ends = [end for case in xml.etree.ElementTree.fromstring(text).iter("testcase") for end in case if end.tag in ("failure", "error", "skipped")]
    assert ends
    return [re.search(r"; again: (.*)$", end.get("message")).group(1) for end in ends]


def reports():
    return (commands_in_markdown((FOLDER / "s.md").read_text()), commands_in_markdown((FOLDER / "r.html").read_text()), commands_in_junit((FOLDER / "j.xml").read_text()))


REPORTS = ["--junit", "j.xml", "--summary", "s.md", "--report", "r.html", "--json", "r.json", "--annotations", "none"]
scenario("my scenarios/it's $HOME.toml", 3)
scenario("my scenarios/good.toml", 1.5)
scenario("my scenarios/level.toml", 1, "[variant.baseline]\n[variant.fix]\n", "measure = { rounds = 12 }\n")
first = called(["stepgate", "run", "my scenarios", "--device", "simulated:round-numbers", "--seed", "1", "--set", "batch.size=32", "--tag", "ab", *REPORTS])
assert first.returncode == 1, first
*told, of_the_suite = commands_in_text(first.stdout)
assert len(told) == 2 and "good" not in "".join(told), told
for command, name in zip(told, ("it's $HOME", "level")):
    again = called(command)
    # Alone it has other noise: other numbers, and the same outcomes.
    assert again.returncode == {"it's $HOME": 1, "level": 77}[name], again
    assert outcomes(again.stdout, name) == outcomes(first.stdout, name), (command, again.stdout)
    assert commands_in_text(again.stdout) == [command], (command, again.stdout)
    assert called(command).stdout == again.stdout
    planted = called(re.sub(r"--seed \d+", "--seed 2", command))
    assert story(planted.stdout, name) != story(again.stdout, name), "another seed says the same"
summary, page, junit = reports()
whole = summary[-1]
assert whole == of_the_suite and summary[:-1] == told and sorted(page[:-1]) == sorted(told) and sorted(junit) == sorted(told) and page[-1] == whole, (summary, page, junit)
again = called(whole)
assert again.returncode == 1 and again.stdout == first.stdout, (whole, again.stdout)

passing = called(["stepgate", "run", "my scenarios/good.toml", "-v", "--device", "simulated:round-numbers", *REPORTS])
assert passing.returncode == 0 and "again: " not in passing.stdout + "".join((FOLDER / name).read_text() for name in ("s.md", "r.html", "j.xml")), passing

wrong = called(["stepgate", "run", "no such.toml", "-x", *REPORTS])
assert wrong.returncode == 2, wrong
for command in sum(reports(), []):
    again = called(command)
    assert (again.returncode, again.stderr) == (2, wrong.stderr), (command, again)

scenario("old/step.toml", 1.5)
scenario("new/step.toml", 1.5, more="batch.size = 128\n")
workers = [f"stepgate worker --baselines {SOURCES}/tests/baselines {folder}/step.toml --device simulated:round-numbers --counts" for folder in ("old", "new")]
gate = called(["stepgate", "gate", "--base-command", workers[0], "--head-command", workers[1], "--only", "counts", "--margin", "3%", *REPORTS])
assert gate.returncode == 1, gate
told = commands_in_text(gate.stdout)
assert len(told) == 1 and "--margin 3%" in told[0] and "--only counts" in told[0], gate.stdout
for commands in reports():
    assert set(commands) == set(told), (commands, told)
again = called(told[0])
found = [line for line in gate.stdout.splitlines() if not re.search(r"\d s$", line)]
assert again.returncode == 1 and [line for line in again.stdout.splitlines() if not re.search(r"\d s$", line)] == found, again.stdout

secret = called(["stepgate", "gate", "--base-command", workers[0] + " --set TOKEN=abcdefgh", "--head-command", workers[1], "--only", "counts", *REPORTS])
assert "abcdefgh" not in "".join(sum(reports(), [])), reports()
print("every command says the same again")
