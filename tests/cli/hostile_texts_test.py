# SPDX-License-Identifier: MIT
# hostile_texts_test.py PROGRAM REPOSITORY FOLDER: texts that a terminal or a CI system could take for something else, from every source
# by which a stranger's text comes in, through every verb. No line of what stepgate prints or writes begins a command, no matter which
# blanks stand before it, and no character is invisible. The oracle is Python's own Unicode, and finds planted lines.
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unicodedata

PROGRAM, REPOSITORY, PLACE = (pathlib.Path(word).resolve() for word in sys.argv[1:])
BLANKS = [" ", "\t", "\v", "\f", "\r", "\u0085", "\u00a0", "\u1680", "\u2003", "\u2028", "\u202f", "\u205f", "\u3000", "\u200b", "\u061c", "\u00ad",
          "\ufeff", "\u2800", "\u3164", "\U000e0041"]
COMMANDS = ["::error file=ci/gate,line=1::pwned", "::add-mask::a", "::stop-commands::z", "##vso[task.setvariable variable=x]y", "##VsO[task]",
            "##[error]pwned", "##teamcity[x]"]
CONTROLS = ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x7f", "\b", "\u202epwned", "\u2066"]
HOSTILE = "".join(f"\n{blank}{command}" for blank in BLANKS for command in COMMANDS[:2]) + "".join(
    f"\n{control}{command}" for control, command in zip(CONTROLS, COMMANDS)) + "\r" + COMMANDS[0]
# Names have fewer letters, and paths have no line ends in a shell's words.
SHORT = ["\u00a0::error::pwned", "\x1b[2J\u200b::add-mask::a", "a\n::error::pwned", "\u202e##vso[task]x"]


def toml(text):
    return '"' + "".join(f"\\U{ord(letter):08x}" for letter in text) + '"'


def blank_or_invisible(letter):
    return letter.isspace() or unicodedata.category(letter) in ("Cc", "Cf", "Zs", "Zl", "Zp") or letter in "\u2800\u3164"


def faults_of(text):
    for line in text.split("\n"):
        trimmed = line
        while trimmed and blank_or_invisible(trimmed[0]):
            trimmed = trimmed[1:]
        if trimmed.startswith("::") or re.search(r"##\w*\[", line):
            yield "a command: " + repr(line)
        if any(blank_or_invisible(letter) and letter != " " for letter in line):
            yield "an invisible character: " + repr(line)


for planted in BLANKS[1:] + CONTROLS + COMMANDS:
    assert list(faults_of("a\n " + planted + "b")), repr(planted)
assert not list(faults_of("at::native::add of 3 \u00b5s, ## [a]\n"))

failures = []
asked = []


def look(where, data):
    text = data if isinstance(data, str) else data.decode("utf-8", errors="surrogateescape")
    if any("\udc80" <= letter <= "\udcff" for letter in text):
        failures.append((where, "bytes that are not UTF-8"))
    failures.extend((where, fault) for fault in faults_of(text))


def stepgate(source, *words, files=(), says=None, variables=None, codes=(0, 1, 2, 3, 4, 77)):
    asked.append(source)
    done = subprocess.run([str(PROGRAM), "--baselines", str(PLACE / "baselines"), *words], cwd=PLACE, capture_output=True, timeout=120,
                          env={**ENVIRONMENT, **(variables or {})}, stdin=subprocess.DEVNULL)
    where = f"{source}: {' '.join(map(str, words))[:120]!r}"
    assert done.returncode in codes, (where, done)
    look(where + ", output", done.stdout)
    look(where + ", errors", done.stderr)
    for file in files:
        look(f"{where}, {file}", (PLACE / file).read_bytes())
        (PLACE / file).unlink()
    if says:  # the text came as far as the output at all
        assert says in (done.stdout + done.stderr).decode(errors="replace"), (where, done)


ENVIRONMENT = {name: value for name, value in os.environ.items() if not re.match("CI$|GITHUB_|STEPGATE_", name)}
shutil.rmtree(PLACE, ignore_errors=True)
PLACE.mkdir(parents=True)
shutil.copytree(REPOSITORY / "tests/baselines/round-numbers", PLACE / "baselines/round-numbers")
profile = (PLACE / "baselines/round-numbers/device.toml").read_text()
(PLACE / "baselines/hostile").mkdir()
(PLACE / "baselines/hostile/device.toml").write_text(re.sub("(?m)^name = .*", lambda _: "name = " + toml(HOSTILE), profile))


def scenario(file, claim="a", variant="fix", expect="fix.samples_per_s >= 1.5 * baseline.samples_per_s", more=""):
    (PLACE / file).write_text(f"claim = {toml(claim)}\nmodel = {{ kind = \"spin\", kernel_us = 20 }}\n{more}"
                              f"[variant.baseline]\nmodel.kernels = 20\n[variant.fix]\nmodel.kernels = 10\n[expect]\nline = {toml(expect)}\n")


SIMULATED = ("--device", "simulated:round-numbers", "--seed", "1")
REPORTS = ("--json", "r.json", "--junit", "r.xml", "--summary", "r.md", "--report", "r.html")
REPORT_FILES = ("r.json", "r.xml", "r.md", "r.html")


def script(file, text):
    (PLACE / file).write_text("#!" + sys.executable + "\n" + text)
    (PLACE / file).chmod(0o755)
    return "./" + file


# The claim, which is one line.
scenario("good.toml")
for claim in [blank + COMMANDS[0] for blank in BLANKS] + [control + command for control, command in zip(CONTROLS, COMMANDS)]:
    scenario("claim.toml", claim=claim)
    stepgate("claim", "list", "claim.toml")
    if claim[0] not in "\u00a0\u200b\x1b":
        continue
    for words in (["list", "--json"], ["check"], ["check", "--strict"], ["plan"], ["mutate"], ["history"]):
        stepgate("claim", *words, "claim.toml")
    stepgate("claim", "run", "-v", "claim.toml", *SIMULATED, *REPORTS, "--picture", "r.svg", files=(*REPORT_FILES, "r.svg"), says=claim[-6:])
    stepgate("claim", "run", "claim.toml", *SIMULATED, "--json", "-", says=claim[-6:])

# Words of a scenario that are refused, or that are reasons, and words of the command line.
for text in [HOSTILE, *SHORT]:
    stepgate("key", "accept", "good.toml", *SIMULATED, "--commit", text, "--date", "2026-01-01", "--ledger", "l", codes=range(256))
    scenario("bad.toml", expect=f"fix.{text}", more=f"{toml(text)} = 1\nhost.step_us = {toml(text)}\n")
    for verb in ("check", "run", "list", "plan", "mutate"):
        stepgate("key", verb, "bad.toml", codes=(2,))
    stepgate("key", "list", "--json", "bad.toml", codes=(2,))
    (PLACE / "extends.toml").write_text(f"extends = {toml(text)}\n")
    stepgate("extends", "check", "extends.toml", codes=(2,))
    for words in (["plan", "good.toml", "--variant", text], ["fields", text], [text], ["run", text], ["run", "--" + text, "good.toml"],
                  ["check", "good.toml", "--set", text], ["check", "good.toml", "--set", "sync.where=" + text], ["run", "--tag", text, "good.toml"],
                  ["run", "good.toml", "--device", text], ["new", "--like", text, "n.toml"], ["read", text], ["attach", "--", text],
                  ["history", text], ["gate", "--base", text, "--head", text, "good.toml"], ["run", "good.toml", *SIMULATED, "--json", text + "/a/b"]):
        stepgate("word", *words, codes=(0, 2, 3, 4))

# The path.
for text in SHORT:
    folder = PLACE / ("in" + text)
    folder.mkdir()
    for file in (folder / "a.toml", PLACE / (text + ".toml")):
        shutil.copy(PLACE / "good.toml", file)
        name = str(file.relative_to(PLACE))
        for verb in (["list"], ["list", "--json"], ["check"], ["plan"], ["mutate"], ["history"], ["run", *SIMULATED]):
            stepgate("path", *verb, name, codes=(2,))
    for name in (f"in{text}/t.json", f"in{text}/n.toml"):
        stepgate("path", "run", "good.toml", *SIMULATED, "--json", name, codes=(0,))
    stepgate("path", "new", "--like", "sync", f"in{text}/new.toml")
    stepgate("path", "read", f"in{text}/t.json")
    shutil.rmtree(folder)
    (PLACE / (text + ".toml")).unlink()

# The device's name.
stepgate("device", "devices", says="pwned")
stepgate("device", "run", "-v", "good.toml", "--device", "simulated:hostile", "--seed", "1", *REPORTS, files=REPORT_FILES, says="pwned")

# A worker: its names, errors, the tail of its standard error, answers that are none.
script("worker", f"""import json, sys
trick, text, short = sys.argv[1], {HOSTILE!r}, {SHORT!r}
for line in sys.stdin:
    do = json.loads(line)["do"]
    if trick == do:
        sys.exit(text)
    if trick == "not json " + do:
        print(text.replace("\\n", "\\u2028")); sys.stdout.flush(); continue
    if trick == "error " + do:
        print(json.dumps({{"error": text}})); sys.stdout.flush(); continue
    if do == "hello":
        named = text if trick == "names" else "w"
        works = [short[0]] if trick == "works" else ["w"]
        print(json.dumps({{"protocol": 1, "program": named[:90], "version": named[:90], "device": named[:90], "works": works}}))
    elif do == "load":
        print(json.dumps({{"loaded": True}}))
    elif do == "run":
        print(json.dumps({{"steps": 3, "elapsed_ns": -1}}))
    else:
        print("{{}}")
    sys.stdout.flush()
""")
for trick in ("hello", "load", "run", "not json hello", "not json run", "error hello", "error load", "error run", "names", "works"):
    command = f"{sys.executable} worker '{trick}'"
    stepgate("worker", "gate", "--only", "time", "--base-command", command, "--head-command", command, "--seed", "1", "--stall-seconds", "5", *REPORTS,
             codes=(2, 3, 4), says="pwned" if trick in ("hello", "load", "run") else None)

# HEAD: the tail of its standard error, and texts of the JSON of its `run`.
for name, does in {"dies": f"sys.stderr.write({HOSTILE!r}); sys.exit(3)",
                   "lies": f"""out = subprocess.run([{str(PROGRAM)!r}, *sys.argv[1:]], capture_output=True).stdout.decode()
for line in out.splitlines():
    print(re.sub(r'("(?:claim|reason|text|name|why|fault)":)"[^"]*"', lambda found: found[1] + json.dumps({HOSTILE!r}), line))"""}.items():
    script("head", f"""import json, os, re, subprocess, sys
if "run" in sys.argv:
    {does.replace(chr(10), chr(10) + '    ')}
else:
    os.execv({str(PROGRAM)!r}, [{str(PROGRAM)!r}, *sys.argv[1:]])
""")
    stepgate("head", "gate", "--only", "assertions", "--base", str(PROGRAM), "--head", "./head", "good.toml", *SIMULATED, *REPORTS,
             codes=(1, 2, 3, 4), says="pwned" if name == "dies" else None)

# The program of a user prints them, at once and with other words of ours in between.
script("prints", f"""import sys, time
for stream in (sys.stdout, sys.stderr):
    stream.write({HOSTILE!r} + "\\na"); stream.flush(); time.sleep(0.3)
    stream.write("::error::pwned"); stream.flush(); time.sleep(0.1)
    stream.write(":"); stream.flush(); time.sleep(0.1)
    stream.write(":error::pwned\\n"); stream.flush()
""")
(PLACE / "program.toml").write_text('claim = "a"\nprogram = { command = ["./prints"], timeout_s = 60 }\n[variant.a]\n[expect]\nw = "a.host_waits_per_step <= 9"\n')
(PLACE / "timed.toml").write_text('claim = "a"\nprogram = { command = ["./prints"], timeout_s = 60 }\n[variant.a]\n[expect]\nw = "a.steps_per_s >= 1"\n')
stepgate("program", "attach", "--", "./prints", says="pwned")
stepgate("program", "run", "program.toml", says="pwned")
stepgate("program", "run", "timed.toml", says="pwned")
stepgate("program", "gate", "--program", "program.toml", "--base", ".", "--head", ".", "--only", "counts")

# Names of kernels and calls in a trace.
subprocess.run([sys.executable, REPOSITORY / "tests/programs/read_traces.py", PLACE / "trace.json"], check=True)
trace = json.loads((PLACE / "trace.json").read_text())
for event in trace["traceEvents"]:
    if event.get("cat") in ("kernel", "cpu_op", "python_function", "gpu_memcpy", "user_annotation"):
        event["name"] = HOSTILE[:200] + event["name"] if event["cat"] != "user_annotation" else event["name"]
(PLACE / "trace.json").write_text(json.dumps(trace))
stepgate("kernel", "read", "trace.json", "--json", "r.json", files=("r.json",))
stepgate("kernel", "read", "trace.json", "--as-scenario", "r.toml", files=())
stepgate("kernel", "read", "trace.json", "trace.json")

if failures:
    for where, fault in failures[:30]:
        print(where, fault, sep="\n    ")
    sys.exit(f"{len(failures)} faults")
print(f"{len(asked)} calls of {len(set(asked))} sources")
