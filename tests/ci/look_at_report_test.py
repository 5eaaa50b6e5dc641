# SPDX-License-Identifier: MIT
# look_at_report_test.py REPOSITORY STEPGATE FOLDER PROGRAM CUDA: pages of runs, sweeps, gates and attached programs, and
# pictures of stored runs, are as ci/look_at_report wants them in a real browser, and it finds each of the faults planted
# here. PROGRAM takes part with the faked library CUDA. 77 where there is no Chromium, which CI does not excuse.
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

repository, stepgate, place, program, cuda = sys.argv[1:]
looker = os.path.join(repository, "ci/look_at_report")
shutil.rmtree(place, ignore_errors=True)
os.makedirs(place)
failures = []


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, cwd=place)


def write(name, text):
    path = os.path.join(place, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def scenario(name, text, *changes):
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    write(f"scenarios/{name}.toml", text)


def of_the_suite(name, *changes):
    with open(os.path.join(repository, "scenarios", name + ".toml"), encoding="utf-8") as file:
        scenario(name, file.read(), *changes)


# Something failed, with timelines of three variants; something undecided, with names as long as they get; something by
# its plans alone; and a claim that wants to run.
of_the_suite("everything_wrong", ("fix.copy_overlap >= 20%", "fix.copy_overlap <= 5%"))
of_the_suite("copy_overlap")
of_the_suite("resize_without_free")
with open(os.path.join(repository, "scenarios/ranks/straggler_rank.toml"), encoding="utf-8") as file:  # ranks that wait for one
    scenario("straggler_rank", file.read(), ("../bases/", "bases/"))
shutil.copytree(os.path.join(repository, "scenarios/bases"), os.path.join(place, "scenarios/bases"))
scenario("tie", """claim = "<script>window.planted = 1</script><img src=x onerror='window.planted = 1'> \\u0007"
model = { kind = "spin", kernels = 10 }
measure = { rounds = 12 }
[variant.baseline]
[variant.a_variant_whose_name_is_as_long_as_somebody_may_want_it_to_be]
[expect]
a_line_with_a_long_name_of_its_own = "a_variant_whose_name_is_as_long_as_somebody_may_want_it_to_be.samples_per_s >= 1 * baseline.samples_per_s"
""")
common = [stepgate, "--baselines", os.path.join(repository, "baselines")]
found = run(*common, "run", "scenarios", "--device", "simulated", "--seed", "1", "--report", "run.html")
if found.returncode != 1:
    sys.exit(f"the run ended with {found.returncode}:\n{found.stdout}{found.stderr}")
head = write("head", f'#!/bin/sh\nif [ "$3" = worker ]; then folder=$2; shift 3; set -- --baselines "$folder" worker --injected extra_wait "$@"; fi\nexec {stepgate} "$@"\n')
os.chmod(head, 0o755)
found = run(*common, "gate", "--base", stepgate, "--head", head, "--device", "simulated", "--seed", "1", "--pairs", "12",
            "--report", "gate.html", "scenarios/copy_overlap.toml", "scenarios/tie.toml")
if found.returncode != 1:
    sys.exit(f"the gate ended with {found.returncode}:\n{found.stdout}{found.stderr}")

write("sweep/graphs.toml", """claim = "a graph pays where kernels are short"
model = { kind = "spin", kernels = 50 }
[sweep]
model.kernel_us = [1, 4, 40]
[variant.baseline]
[variant.fix]
launch.via = "graph"
[expect]
pays = "fix.samples_per_s >= 1.5 * baseline.samples_per_s when model.kernel_us < 10"
harms = "fix.samples_per_s >= 0.98 * baseline.samples_per_s"
""")
found = run(*common, "run", "sweep", "--device", "simulated", "--seed", "1", "--report", "sweep.html")
if found.returncode != 1:
    sys.exit(f"the sweep ended with {found.returncode}:\n{found.stdout}{found.stderr}")


def attach(options, calls):
    return subprocess.run([stepgate, "attach", *options, "--", program, "40", *calls], capture_output=True, text=True, cwd=place,
                          env={**os.environ, "STEPGATE_CUPTI": cuda})


attach(["--accept", "accepted.toml"], ["launch", "wait"])
found = attach(["--against", "accepted.toml", "--report", "attach.html"], ["launch", "wait", "wait", "copy.pageable", "malloc", "free"])
if found.returncode != 1:
    sys.exit(f"the attached program ended with {found.returncode}:\n{found.stdout}{found.stderr}")

with open(os.path.join(repository, "tests/baselines/round-numbers/device.toml"), encoding="utf-8") as file:
    write("stored/usual/device.toml", file.read())
write("kept.toml", """claim = "as fast as it was"
model = { kind = "spin", kernels = 10 }
[variant.fix]
[expect]
no_slide = "fix.samples_per_s >= 0.97 * stored.fix.samples_per_s"
""")
run(stepgate, "--baselines", "stored", "accept", "kept.toml", "--runs", "3", "--device", "simulated:usual", "--seed", "1", "--commit", "0123abc")
run(stepgate, "--baselines", "stored", "history", "kept.toml", "--plot", "history.svg", "--report", "history.html")

pages = ["run.html", "gate.html", "sweep.html", "attach.html", "history.html"]
for page in pages:
    try:
        xml.etree.ElementTree.parse(os.path.join(place, page))
    except xml.etree.ElementTree.ParseError as error:
        failures.append(f"{page} is not well-formed: {error}")

# Nothing is taken for looked at where there is no browser.
for ci, code in [("", 77), ("true", 1)]:
    found = subprocess.run([sys.executable, looker, "run.html"], cwd=place, env={"PATH": place, "CI": ci}, capture_output=True, text=True)
    if found.returncode != code or "there is no Chromium" not in found.stderr:
        failures.append(f"without a browser, CI='{ci}': {found.returncode}\n{found.stderr}")

found = run(looker, "run.html", "gate.html")
if found.returncode == 77:
    print(found.stderr)
    sys.exit(77)
if found.returncode != 0:
    failures.append("the pages as they are:\n" + found.stdout + found.stderr)
found = run(looker, "--at", "380", "light", "sweep.html", "attach.html", "history.html", "history.svg")  # what differs is their width
if found.returncode != 0:
    failures.append("pages on a telephone:\n" + found.stdout + found.stderr)
with open(os.path.join(place, "history.svg"), encoding="utf-8") as file:
    write("wide.svg", file.read().replace("max-width:100%", ""))
found = run(looker, "--at", "380", "light", "wide.svg")
if found.returncode != 1 or "scrolls sideways" not in found.stdout:
    failures.append("a picture that is too wide was not seen:\n" + found.stdout + found.stderr)

with open(os.path.join(place, "history.html"), encoding="utf-8") as file:  # without the picture for telephones
    write("wide.html", file.read().replace("svg.history{display:block;width:100%;", "svg.history{display:block;").replace("{svg.history.wide{display:none}", "{"))
found = run(looker, "--at", "380", "light", "wide.html")
if found.returncode != 1 or "scrolls sideways" not in found.stdout:
    failures.append("a history that is too wide was not seen:\n" + found.stdout + found.stderr)

with open(os.path.join(place, "gate.html"), encoding="utf-8") as file:
    page = file.read()
# Text of the page, its replacement, words of the complaint; at 380 px and dark where nothing else
# is said.
faults = [
    (".scrolls{overflow-x:auto;", ".scrolls{", "scrolls sideways", "760", "dark"),
    ("table.words,table.words :is(caption,tbody,tr,th,td){display:block}", ".scrolls{overflow-x:visible!important}", "scrolls sideways"),
    ("<main>", '<main><p style="width:500px">wide</p>', "beyond the edge"),
    ("--dim:#a7afb8", "--dim:#3a4149", "contrast"),
    ("--dim:#545b63", "--dim:#b0b0b0", "contrast", "380", "light"),
    ("td svg.interval{width:18rem}", "td svg.interval{min-width:90rem}", "cut on a wide screen", "1600", "dark"),
    ("</svg>", '<text x="0" y="12">words upon</text><text x="4" y="12">words</text></svg>', "words overlap"),
    ("</svg>", '<text x="300" y="12">words that go on and on</text></svg>', "words leave their picture"),
    ("</svg>", '<text x="0" y="14" style="fill:#888">grey</text></svg>', "contrast in a picture"),
    ('<html lang="en">', "<html>", "no language"),
    ("<h3>", "<h4>", "a level of headings is left out"),
    ('<th scope="row">', "<th>", "a row without a title"),
    (' role="img"', "", "a picture without words"),
    (' tabindex="0"', "", "a box that a keyboard cannot scroll"),
    ("<main>", '<main><img src="nowhere.png" alt=""/>', "an attribute that loads or runs"),
    ("<main>", "<main><script>1</script>", "a script"),
    ("<main>", '<main id="a"><p id="a">x</p>', "an id twice"),
    ("<main>", '<main><p style="font-size:8px">x</p>', "small text"),
]
for index, (old, new, words, *at) in enumerate(faults):
    if old not in page:
        failures.append(f"the page has no '{old}'")
        continue
    planted = page.replace(old, new)
    if old == "<h3>":
        planted = planted.replace("</h3>", "</h4>")
    file = write(f"planted{index}.html", planted)
    found = run(looker, "--at", *(at or ["380", "dark"]), file)
    if found.returncode != 1 or not re.search(re.escape(": " + words), found.stdout):
        failures.append(f"'{old}' -> '{new}': not '{words}':\n{found.stdout}{found.stderr}")
# Without the policy a planted script would run, and is seen to.
without = re.sub(r"<meta http-equiv[^>]*>", "", page).replace("<main>", "<main><script>window.planted = 1</script>")
found = run(looker, "--at", "380", "light", write("planted_script.html", without))
if "a script ran" not in found.stdout:
    failures.append("a script that ran was not seen:\n" + found.stdout + found.stderr)

print("\n".join(failures))
sys.exit(1 if failures else 0)
