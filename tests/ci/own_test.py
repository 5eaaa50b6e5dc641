# SPDX-License-Identifier: MIT
"""own_test.py REPOSITORY RELEASE FOLDER: what the action for GitHub, the template for GitLab, the plugin for Buildkite and the stage for
Jenkins run, in a repository that has scenarios and nothing else, with the release of pack_test.py and their inputs played. Each hands
the verdict on, keeps reports, and starts nothing that has another checksum."""
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import jsonschema
import yaml

REPOSITORY, RELEASE, FOLDER = map(pathlib.Path, sys.argv[1:])
CI = REPOSITORY / "ci"
TARBALL = next(RELEASE.glob("*.tar.gz"))
SHA256 = re.search(rf"^(\w+)  {re.escape(TARBALL.name)}$", (RELEASE / "SHA256SUMS").read_text(), re.M).group(1)
VERSION, KIND = re.fullmatch(r"stepgate-([\d.]+)-linux-\w+-(\w+)\.tar\.gz", TARBALL.name).groups()
SCENARIO = """claim = "half the kernels take half the time"
model = {{ kind = "spin", kernel_us = 20 }}
[variant.baseline]
model.kernels = 20
[variant.fix]
model.kernels = 10
[expect]
line = "fix.samples_per_s >= {} * baseline.samples_per_s"
"""
ENVIRONMENT = {name: value for name, value in os.environ.items() if not re.match("CI$|GITHUB_|STEPGATE_|BUILDKITE", name)} | {"CI": "true", "HOME": str(FOLDER / "home")}


def started(script, checkout, variables):
    return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], text=True, capture_output=True, cwd=checkout, env=ENVIRONMENT | variables)


def github(checkout, command, sha256, tarball=TARBALL, kernels=None):
    action = yaml.safe_load((CI / "github/action/action.yml").read_text())
    inputs = {name: given.get("default") for name, given in action["inputs"].items()}
    inputs |= {"version": VERSION, "sha256": sha256, "kind": KIND, "release": tarball.parent.as_uri(), "command": command, "ledger": str(FOLDER / "ledger")}
    if kernels:
        inputs |= kernels | {"base": "base"}
        shutil.rmtree(checkout / "base", ignore_errors=True)
        subprocess.run(["git", "worktree", "prune"], cwd=checkout, check=True)
        subprocess.run(["git", "worktree", "add", "--detach", "-q", "base", "HEAD"], cwd=checkout, check=True)
    outputs = FOLDER / "outputs"
    outputs.write_text("")
    places = {"GITHUB_ACTIONS": "true", "GITHUB_ACTION_PATH": str(CI / "github/action"), "GITHUB_ACTION_REPOSITORY": "OWNER/stepgate",
              "GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(FOLDER / "page"), "RUNNER_TEMP": str(FOLDER / "temp")}
    for step in action["runs"]["steps"]:
        variables = {name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found.group(1)], value) for name, value in step["env"].items()}
        ended = started(step["run"], checkout, places | variables)
        if ended.returncode != 0:
            break
    said = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
    if said:
        assert set(said) == set(action["outputs"]) and said["exit-code"] == str(ended.returncode) and ((checkout / said["report"]).exists() or ended.returncode == 2 or kernels), said
        assert said["verdict"] == (checkout / "out/verdict").read_text().strip(), said
    return ended


def gitlab(checkout, command, sha256, tarball=TARBALL, kernels=None):
    job = yaml.safe_load((CI / "gitlab/own.yml").read_text())[".stepgate"]
    variables = job["variables"] | {"STEPGATE_RELEASE": tarball.as_uri(), "STEPGATE_SHA256": sha256, "STEPGATE_COMMAND": command}
    variables["STEPGATE_LEDGER"] = str(FOLDER / "ledger")
    if kernels:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, check=True, text=True, capture_output=True).stdout.strip()
        variables |= {"STEPGATE_LIBRARY": kernels["library"], "STEPGATE_BUILD_LIBRARY": kernels["build"], "STEPGATE_KERNELS": kernels["kernels"],
                      "CI_MERGE_REQUEST_DIFF_BASE_SHA": head}
    return started("\n".join(job["script"]), checkout, variables)


def buildkite(checkout, command, sha256):
    plugin = yaml.safe_load((CI / "buildkite/stepgate-buildkite-plugin/plugin.yml").read_text())
    configuration = {"release": TARBALL.as_uri(), "sha256": sha256, "command": command}
    jsonschema.validate(configuration, plugin["configuration"])
    variables = {f"BUILDKITE_PLUGIN_STEPGATE_{name.upper()}": value for name, value in configuration.items()}
    return started(str(CI / "buildkite/stepgate-buildkite-plugin/hooks/command"), checkout, variables | {"BUILDKITE_PIPELINE_SLUG": "p", "BUILDKITE_BRANCH": "b"})


def jenkins(checkout, command, sha256):
    script = re.search(r"script: '''(.*?)'''", (CI / "jenkins/Jenkinsfile.own").read_text(), re.S).group(1).replace("\\\\", "\\")
    return started(script, checkout, {"STEPGATE_RELEASE": TARBALL.as_uri(), "STEPGATE_SHA256": sha256, "STEPGATE_COMMAND": command, "JOB_NAME": "j"})


shutil.rmtree(FOLDER, ignore_errors=True)
seeds = itertools.count(1)  # a ledger takes no seed twice


def simulated():
    return f"--device simulated --seed {next(seeds)}"


(FOLDER / "sg").mkdir(parents=True)
subprocess.run(["tar", "-xzf", TARBALL, "-C", FOLDER / "sg", "--strip-components", "1"], check=True)
for system in (github, gitlab, buildkite, jenkins):
    checkout = FOLDER / system.__name__ / "a checkout"
    (checkout / "scenarios").mkdir(parents=True)
    (FOLDER / "temp").mkdir(exist_ok=True)
    scenario = checkout / "scenarios/half.toml"

    def ends(command, code, words, sha256=SHA256):
        shutil.rmtree(checkout / "out", ignore_errors=True)
        ended = system(checkout, command, sha256)
        assert ended.returncode == code and words in ended.stdout + ended.stderr, (system.__name__, command, code, words, ended)

    scenario.write_text(SCENARIO.format(1.5))
    ends(f"run scenarios {simulated()}", 0, "stepgate: passes")
    assert sorted(path.name for path in (checkout / "out").iterdir()) == ["exit_code", "junit.xml", "report.html", "result.jsonl", "summary.md", "verdict"]
    assert json.loads((checkout / "out/result.jsonl").read_text().splitlines()[0])["outcome"] == "passes"
    assert not (checkout / "baselines").exists()
    ends(f"run 'scenarios/half.toml' {simulated()}", 0, "stepgate: passes")  # words may be quoted
    # Planted: half a command, which would pass without the other half; and one for a shell.
    ends(f"run {simulated()} scenarios/half.toml\n'scenarios/other", 2, "does not end on its line")
    assert (checkout / "out/verdict").read_text() == "wrong request\n"
    ends(f"run scenarios/$(touch made).toml`touch made` ;touch made {simulated()}", 2, "stepgate: wrong request")
    assert not (checkout / "made").exists()
    scenario.write_text(SCENARIO.format(3))
    ends(f"run scenarios {simulated()}", 1, "stepgate: fails")
    assert (checkout / "out/exit_code").read_text() == "1\n" and "<failure" in (checkout / "out/junit.xml").read_text()
    if KIND == "host":
        ends("run scenarios", 4, "stepgate: not gated")  # nothing is simulated unasked
    ends(f"run scenario {simulated()}", 2, "stepgate: wrong request")
    scenario.write_text(SCENARIO.format(1.5))
    ends(f"gate --stored scenarios {simulated()}", 4, "stepgate: not gated")
    subprocess.run([FOLDER / "sg/bin/stepgate", "accept", "--runs", "5", "scenarios", "--device", "simulated"], cwd=checkout, check=True, capture_output=True)
    ends(f"gate --stored --margin 50% scenarios {simulated()}", 0, "stepgate: passes")
    # Planted: another file than the checksum says.
    wrong = SHA256[:-1] + ("0" if SHA256[-1] != "0" else "1")
    ended = system(checkout, f"run scenarios {simulated()}", wrong)
    assert ended.returncode != 0 and "stepgate: " not in ended.stdout, ended
(FOLDER / "github/a checkout/scenarios/half.toml").write_text(SCENARIO.format(3))
assert "half.toml,line=8" in github(FOLDER / "github/a checkout", f"run scenarios {simulated()}", SHA256).stdout, "no annotation"
assert "half" in (FOLDER / "page").read_text()
# Planted: links that a commit brings.
checkout = FOLDER / "github/a checkout"
(FOLDER / "elsewhere").mkdir()
(checkout / "link").symlink_to(FOLDER / "elsewhere")
(checkout / "out/deep").mkdir()
for link in ["out/key", "out/deep/key"]:
    (checkout / link).symlink_to(FOLDER / "page")
(checkout / "out/verdict").unlink()
(checkout / "out/verdict").symlink_to(FOLDER / "elsewhere/verdict")
github(checkout, f"run scenarios {simulated()}", SHA256)
assert (checkout / "out/verdict").read_text() == "fails\n" and not [path for path in (checkout / "out").rglob("*") if path.is_symlink()]
for nowhere in ["", "-p", "link", "link/", str(TARBALL / "below a file")]:
    ended = subprocess.run([FOLDER / "sg/share/stepgate/ci/jobs/own", nowhere, "run scenarios"], text=True, capture_output=True, cwd=checkout)
    assert ended.returncode == 2 and "is no folder for reports" in ended.stderr, ended
assert not list((FOLDER / "elsewhere").iterdir())

# A repository with a kernel and a scenario that launches it. The release is one whose `kernel check`, which needs a GPU, is played.
PLAYED = FOLDER / "played"
PLAYED.mkdir()
subprocess.run(["tar", "-xzf", TARBALL, "-C", PLAYED], check=True)
played = next(PLAYED.iterdir())
(played / "bin/stepgate").rename(played / "bin/stepgate.real")
(played / "bin/stepgate").write_text("""#!/bin/sh
[ "$1 $2" != "kernel check" ] || { echo "$@"; exit "$(cat check_code)"; }
exec "${0%/*}/stepgate.real" "$@"
""")
(played / "bin/stepgate").chmod(0o755)
tarball = PLAYED / TARBALL.name
subprocess.run(["tar", "-czf", tarball, "-C", PLAYED, played.name], check=True)
sha256 = subprocess.run(["sha256sum", tarball], check=True, text=True, capture_output=True).stdout.split()[0]
SOURCE = """#include <stepgate/kernel.h>
STEPGATE_KERNEL_LIBRARY();
STEPGATE_EXPORT int layer_norm(const stepgate_request* request, stepgate_prepared* prepared) { return STEPGATE_UNSUPPORTED; }
"""
STEP = """claim = "the kernel is no slower"
model = { kind = "transformer", layers = 1, hidden = 64, heads = 2, seq = 16, vocab = 64, dtype = "bf16" }
batch.size = 8
launch.fuse = "none"
[variant.mine.kernels]
layer_norm = { library = "build/libmine.so", time_us = 8 }
[expect]
norm = "mine.kernel_us(layer_norm) <= 1 ms"
"""
workflow = yaml.safe_load((CI / "github/kernels.yml").read_text())["jobs"]["stepgate"]["steps"]
given = next(step["with"] for step in workflow if "github/action" in step.get("uses", ""))
assert set(given) <= set(yaml.safe_load((CI / "github/action/action.yml").read_text())["inputs"]), given
assert given["base"] in [step.get("with", {}).get("path") for step in workflow if "checkout" in step.get("uses", "")], given
KERNELS = {"library": "build/libmine.so", "kernels": "layer_norm",
           "build": 'mkdir -p build && cc -shared -fPIC -I"$STEPGATE_PREFIX/include" norm.c -o build/libmine.so'}
origin = FOLDER / "origin"
(origin / "scenarios").mkdir(parents=True)
(origin / "norm.c").write_text(SOURCE)
(origin / "scenarios/step.toml").write_text(STEP)
for words in (["init", "-q"], ["add", "."], ["-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "base"]):
    subprocess.run(["git", *words], cwd=origin, check=True)
for system in (github, gitlab):
    checkout = FOLDER / system.__name__ / "kernels"
    subprocess.run(["git", "clone", "-q", origin, checkout], check=True)

    def gated(code, words, verdict, check="0", source=SOURCE + "STEPGATE_EXPORT const char build[] = \"another\";\n", kernels=KERNELS):
        shutil.rmtree(checkout / "out", ignore_errors=True)
        shutil.rmtree(checkout / "build", ignore_errors=True)
        (checkout / "check_code").write_text(check)
        (checkout / "norm.c").write_text(source)
        ended = system(checkout, f"gate --source norm.c scenarios {simulated()}", sha256, tarball, kernels)
        said = ended.stdout + ended.stderr
        assert ended.returncode == code and words in said, (system.__name__, code, words, ended)
        assert (checkout / "out/verdict").read_text().strip() == verdict, ended
        return said

    said = gated(0, "PASSED", "passes")
    assert "kernels    1 kernel, 0 slower" in said and "the same library" not in said, said
    asked = (checkout / "out/check.txt").read_text().split()
    assert asked[:4] == ["kernel", "check", "build/libmine.so", "layer_norm"] and asked[-2:] == ["--scenario", "scenarios"], asked
    # Planted: a kernel that the check refuses, sources that do not compile, a BASE without a library, and a function that is gone.
    said = gated(1, "stepgate: fails", "fails", check="1")
    assert "PASSED" not in said and not (checkout / "out/result.jsonl").exists(), said
    gated(2, "HEAD builds no build/libmine.so", "wrong request", source="nonsense")
    in_head = KERNELS["build"].replace("norm.c", "$([ -e check_code ] && echo norm.c)")
    gated(4, "BASE builds no build/libmine.so", "not gated", kernels=KERNELS | {"build": in_head})
    gated(2, "exports no 'layer_norm'", "wrong request", source=SOURCE.replace("int layer_norm", "int norm"))
    assert "the same library, byte for byte" in gated(0, "PASSED", "passes", source=SOURCE)
