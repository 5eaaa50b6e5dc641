# SPDX-License-Identifier: MIT
# tutorial_test.py REPOSITORY STEPGATE FOLDER: the commands of docs/tutorial.md, carried out in their order in an empty
# folder, print what the page shows; they are at most twelve, and end with a scenario that fails and then passes. A page
# with a fault planted is refused.
import os
import re
import shutil
import subprocess
import sys

repository, stepgate, place = (os.path.abspath(word) for word in sys.argv[1:])
MOST_COMMANDS = 12


def steps(page):
    """What a reader does: ("write", file, text) and ("run", command, lines of output), in order."""
    found = []
    for written, run in re.findall(r"^```toml\n([\s\S]*?)^```$|^((?:    .*\n)+)", page, re.M):
        if written:
            found.append(("write", re.match(r"# (\S+)", written)[1], written))
            continue
        for line in run.splitlines():
            if line.startswith("    $ "):
                found.append(("run", line[6:], []))
            elif found and found[-1][0] == "run" and run.startswith("    $ "):
                found[-1][2].append(line[4:])
    return found


def differs(shown, printed):
    """Whether the lines are not those printed, where ... stands for any number of lines."""
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in shown)
    return re.fullmatch(pattern, printed) is None


def wrong(page):
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    environment = {**os.environ, "PATH": os.path.dirname(stepgate) + ":" + os.environ["PATH"], "STEPGATE_BASELINES": os.path.join(repository, "baselines")}
    environment.pop("COLUMNS", None)
    environment.pop("GITHUB_ACTIONS", None)
    outcomes = []  # of runs: the scenario, and whether it passes
    for kind, name, content in steps(page):
        if kind == "write":
            with open(os.path.join(place, name), "w", encoding="utf-8") as file:
                file.write(content)
            continue
        found = subprocess.run(["sh", "-c", name], capture_output=True, text=True, cwd=place, env=environment)
        if found.returncode != 0:
            yield f"{name}: ends with {found.returncode}: {found.stderr}"
        if differs(content, found.stdout):
            yield f"{name}: the page does not show what it prints:\n{found.stdout}"
        if run := re.match(r"stepgate run (\S+)", name):
            outcomes.append((run[1], "exit code 1" not in found.stdout))
    commands = sum(kind == "run" for kind, *_ in steps(page))
    if not 0 < commands <= MOST_COMMANDS:
        yield f"{commands} commands, and at most {MOST_COMMANDS} are a tutorial"
    written = [name for kind, name, _ in steps(page) if kind == "write"]
    if outcomes[-2:] != [(written[-1], False), (written[-1], True)] if written else True:
        yield f"it does not end with a scenario that fails and then passes: {outcomes}"


with open(os.path.join(repository, "docs/tutorial.md"), encoding="utf-8") as file:
    page = file.read()
failures = list(wrong(page))
faults = [
    ("passes after 5 rounds of 2 loads, 0.229", "passes after 5 rounds of 2 loads, 0.230", "does not show"),
    ("    exit code 1\n", "    exit code 1\n    more\n", "does not show"),
    ("stepgate mutate my.toml", "stepgate mutate none.toml", "ends with 2"),
    ('transfer.host = "pageable"', 'transfer.host = "pinned"', "fails and then passes"),
    ("    $ stepgate mutate", "    $ true\n" * 3 + "    $ stepgate mutate", "at most 12"),
]
for old, new, words in faults:
    if old not in page:
        failures.append(f"the page has no '{old}'")
    elif not any(words in line for line in wrong(page.replace(old, new))):
        failures.append(f"'{old}' -> '{new}': not refused as '{words}'")
print("\n".join(failures))
sys.exit(1 if failures else 0)
