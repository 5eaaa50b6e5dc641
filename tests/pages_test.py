# SPDX-License-Identifier: MIT
"""pages_test.py REPOSITORY PROGRAM: links, paths and commands of every page exist, and planted ones that do not are found."""
import functools
import pathlib
import re
import subprocess
import sys

SOURCE, PROGRAM = pathlib.Path(sys.argv[1]), sys.argv[2]
FOLDERS = ("baselines", "ci", "cmake", "docs", "kernels", "python", "runner", "scenarios", "tests")
OTHERS = {"--allow-run-as-root", "--oversubscribe", "--no-tests"}  # of mpirun and ctest
ENDING = r"\.(?:md|h|cpp|cu|cuh|py|toml|cmake|txt|json|svg|yml)"


@functools.cache
def files():
    found = [*SOURCE.glob("*"), *(file for folder in FOLDERS for file in (SOURCE / folder).rglob("*"))]
    return {"/" + file.relative_to(SOURCE).as_posix() for file in found if file.is_file()}


@functools.cache
def suffixes():
    return {name[at:] for name in files() for at in range(len(name)) if name[at] == "/"}


@functools.cache
def help_of(verb):
    said = subprocess.run([PROGRAM, verb, "--help"], text=True, capture_output=True).stdout
    return said if f"Usage: stepgate {verb} " in said else ""


@functools.cache
def has_option(option):
    programs = (name for name in files() if re.match(r"/(runner/verbs|ci|cmake|python)/", name))
    quoted = re.compile(rf"(?<![\w-]){option}(?![\w-])")
    return option in OTHERS or any(quoted.search((SOURCE / name[1:]).read_text(errors="replace")) for name in programs if not name.endswith(".md"))


def anchors(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)}


def wrong_links(page, text):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if "://" in target:
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            yield f"there is no {target}"
        elif anchor and anchor not in anchors(text if file == page else file.read_text()):
            yield f"{target} has no part #{anchor}"


def wrong_paths(page, text):
    for path in re.findall(r"`([\w./-]+)`", text):
        known = path.split("/")[0] in FOLDERS and "/" in path
        if (known or "/" in path and re.search(ENDING + "$", path)) and not path.startswith("/"):
            bare = path.rstrip("/")
            if not (SOURCE / bare).exists() and not (page.parent / bare).exists() and not any(f"/{bare}{end}" in suffixes() for end in ("", ".h", ".cpp")):
                yield f"there is no {path}"


def commands(text):
    """What follows `stepgate` in code spans and blocks, without comments."""
    blocks = re.findall(r"^```.*?^```", text, re.M | re.S) + re.findall(r"^    .*$", text, re.M)
    spans = [" ".join(span.split()) for span in re.findall(r"`(stepgate\s[^`]+)`", text)]
    lines = [line.split(" #")[0] for block in blocks for line in block.splitlines()]
    starts = r"^\s*(?:\$ |\S*/|torchrun .*?|srun .*?|mpirun .*?|ncu .*?)?stepgate ([a-z-]+)(.*)$"
    return [found.groups() for line in [*lines, *spans] if (found := re.match(starts, line))]


def wrong_commands(text):
    for verb, rest in commands(text):
        if not help_of(verb):
            yield f"stepgate has no verb '{verb}'"
        rest = re.sub(r"\"[^\"]*\"", "", rest).split(" | ")[0]
        for option in re.findall(r"(?<=\s)(--[a-z-]+|-[a-z])\b", rest):
            known = re.search(rf"(?<![\w-]){option}(?![\w-])", help_of(verb))
            if not known:
                yield f"stepgate {verb} has no option {option}"


def wrong_options(text):
    """Options that a span names without their verb: some source must have them."""
    for option in re.findall(r"`(--[a-z][a-z-]+)\b[^`]*`", text):
        if not has_option(option):
            yield f"nothing has an option {option}"


def wrong_shape(text):
    """Prose wider than 100 columns, and paragraphs that begin with what is no subject."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    lines = ["", *prose.splitlines()]
    for before, line in zip(lines, lines[1:]):
        if len(line) > 100 and not re.match(r"\||    |!\[", line):
            yield f"wider than 100: {line}"
        if (not before or line[:2] == "- ") and re.match(r"(- |\d+\. |#+ )?(\*\*)?(Of|Whose|What|Those|Who)\b", line):
            yield f"begins without a subject: {line}"


@functools.cache
def example():
    """What the program says of the example of README.md and docs/how-it-decides.md, a space between words."""
    command = [PROGRAM, "--baselines", SOURCE / "baselines", "run", SOURCE / "scenarios/sync_every_step.toml", "--device", "simulated"]
    return " ".join(subprocess.run([*command, "--seed", "1", "--verbose"], text=True, capture_output=True).stdout.split())


def wrong_example(text):
    """Lines with figures of the example that are no longer what the program says."""
    figures = r"^    .*(?: us .* %|in a typical round|in 5 rounds|of the time\b|simulated GPU seconds)"
    for line in text.splitlines():
        if re.match(figures, line) and " ".join(line.split()) not in example():
            yield f"the program does not say: {line.strip()}"


def wrong(page, text):
    found = [*wrong_links(page, text), *wrong_paths(page, text), *wrong_commands(text), *wrong_options(text)]
    if "baselines" not in page.relative_to(SOURCE).parts:
        found += wrong_shape(text)
    if page.relative_to(SOURCE).as_posix() in ("README.md", "docs/how-it-decides.md"):
        found += wrong_example(text)
    return [f"{page.relative_to(SOURCE)}: {what}" for what in found]


pages = sorted(SOURCE / name[1:] for name in files() if name.endswith(".md"))
failures = [what for page in pages for what in wrong(page, page.read_text())]
PLANTED = ["[a page](no_page.md)", "[a part](gate.md#no-part)", "`runner/plan/no_file.h`", "`plan/no_file.cpp`", "`ci/jobs/no_job`",
           "    stepgate rum my.toml", "    $ stepgate run my.toml --no-option", "```\nsrun -n 2 stepgate run a.toml --rank 2\n```",
           "`stepgate history --runs 2`", "`--no-option FILE`", "`stepgate\nplan --device simulated`", "word " * 21, "Those that are loaded.", "- **What is loaded** stays.", "## What is loaded",
           "    1.32x in a typical round, at least 1.31x", "    baseline  425.3 us  425 us  430 us  2.408M/s  53.4 %  96.26 MiB"]
for planted in PLANTED:
    if len(wrong(SOURCE / "docs/how-it-decides.md", "# A page\n\n" + planted + "\n")) != 1:
        failures.append(f"planted and not found: {planted}")
print("\n".join(failures))
sys.exit(1 if failures else 0)
