# SPDX-License-Identifier: MIT
"""describe_test.py PROGRAM FOLDER: the manual page and the completions know every verb, option and choice that --help prints, shells
complete with them, and what is left out of one is found. Shells that are not installed are skipped, but not in CI."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

PROGRAM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])


def said(*words, **options):
    return subprocess.run(words, text=True, capture_output=True, check=True, **options).stdout


def help_of(*verb):
    """The options of a page of --help, each with its choices."""
    page = said(PROGRAM, *verb, "--help")
    found = {}
    for names, value in re.findall(r"^  ((?:-\w,)?--[\w-]+)(?: (\S+))?", page, re.M):
        for name in names.split(","):
            found[name] = [re.sub(r"\[.*", "", choice) for choice in (value or "").split("|")] if "|" in (value or "") else []
    return found


VERBS = re.findall(r"^  (\w+) ", said(PROGRAM, "--help").split("Subcommands:")[1], re.M)
OPTIONS = {verb: help_of(verb) for verb in VERBS}
FILES = {form: FOLDER / form for form in ("man", "bash", "zsh", "fish")}


def bash(file, *words):
    return said("bash", "-c", 'source "$0"; complete -p stepgate >/dev/null; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stepgate; printf "%s\\n" "${COMPREPLY[@]}"',
                file, "stepgate", *words).split()


def fish(file, *words):
    # In a folder without files, whose names would be among the answers.
    return [line.split("\t")[0] for line in said("fish", "--no-config", "-c", f"source '{file}'; complete -C 'stepgate {' '.join(words)}'", cwd=FOLDER / "empty",
                                                 env={**os.environ, "HOME": str(FOLDER)}).splitlines()]


def wrong_completions(complete, file):
    if missing := set(VERBS) - set(complete(file, "")):
        yield f"no verb {missing}"
    for verb, options in OPTIONS.items():
        offered = set(complete(file, verb, "--")) | set(complete(file, verb, "-"))
        if missing := set(options) - offered:
            yield f"no {missing} of {verb}"
        for option, choices in options.items():
            if choices and sorted(complete(file, verb, option, "")) != sorted(choices):
                yield f"not the choices of {verb} {option}: {complete(file, verb, option, '')}"


def wrong_texts(form, file):
    """What a manual page or a completion of zsh does not name."""
    text = file.read_text().replace("\\-", "-").replace("\\fB", " ")
    begin = r"^\.SS {}$" if form == "man" else r"^      {}\) _arguments"
    for verb, options in OPTIONS.items():
        parts = re.split(begin.format(verb), text, flags=re.M)
        if len(parts) != 2:
            yield f"no verb {verb}"
            continue
        own = re.split(begin.format(r"\w+"), parts[1], flags=re.M)[0]
        for option, choices in options.items():
            if not re.search(rf"(?<![\w-]){option}(?![\w-])", own):
                yield f"no {option} of {verb}"
            if form == "zsh" and choices and f":({' '.join(choices)})" not in own:
                yield f"not the choices of {verb} {option}"


CHECKS = {"man": lambda file: wrong_texts("man", file), "zsh": lambda file: wrong_texts("zsh", file),
          "bash": lambda file: wrong_completions(bash, file), "fish": lambda file: wrong_completions(fish, file)}
READS = {"man": ["mandoc", "-T", "lint", "-W", "error"], "bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "-n"]}
assert len(VERBS) > 10 and OPTIONS["run"]["--undecided"] == ["skip", "fail", "pass"], (VERBS, OPTIONS.get("run"))
shutil.rmtree(FOLDER, ignore_errors=True)
(FOLDER / "empty").mkdir(parents=True)
skipped = []
for form, file in FILES.items():
    file.write_text(said(PROGRAM, "describe", form))
    if not shutil.which(READS[form][0]):
        skipped.append(READS[form][0])
        if form == "fish":
            continue
    else:
        said(*READS[form], file)
    assert not (wrong := list(CHECKS[form](file))), (form, wrong)
    whole = file.read_text()
    for left_out in ("--undecided", "history"):
        planted = whole.replace(left_out.replace("-", "\\-") if form == "man" else left_out[2:] if form == "fish" and left_out.startswith("--") else left_out, "planted")
        assert planted != whole, (form, left_out)
        (FOLDER / "planted").write_text(planted)
        assert any(left_out in said for said in CHECKS[form](FOLDER / "planted")), f"{form}: {left_out} was left out, and nothing said so"
assert bash(FILES["bash"], "--baselines", "") == [] and bash(FILES["bash"], "run", "my") == [], "files are the shell's own to complete"
assert bash(FILES["bash"], "--baselines", "b", "ru") == ["run"] and bash(FILES["bash"], "run", "--device", "s") == ["simulated"]
assert subprocess.run([PROGRAM, "describe", "tcsh"], capture_output=True).returncode == 2
if skipped:
    print("skipped, since they are not installed:", *skipped, file=sys.stderr)
    sys.exit(77 if os.environ.get("CI", "") in ("", "false", "0") else 1)
