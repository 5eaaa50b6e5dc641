# SPDX-License-Identifier: MIT
# ci_files_test.py REPOSITORY FOLDER STEPGATE: the files of CI systems keep check_ci_files.py's rules; it finds each of the faults
# planted here; and the scripts that those files start hand exit codes on and let nothing in.
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import yaml

repository, place, built = sys.argv[1:]
checker = os.path.join(repository, "tests/ci/check_ci_files.py")
failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, **more)


missing = [name for name in ["shellcheck"] if shutil.which(name) is None]
if missing:
    sys.exit(f"not installed: {' '.join(missing)}")

found = run(sys.executable, checker, repository)
expect(found.returncode == 0, "the files as they are:\n" + found.stdout + found.stderr)

# File, what stands there, what is put instead, words of the complaint.
faults = [
    ("github/gate.yml", "  workflow_run:\n    workflows: [stepgate build]\n    types: [completed]", "  pull_request:",
     "the change brings its own gate"),
    ("github/gate.yml", "  workflow_run:", "  pull_request_target:", "pull_request_target runs with secrets"),
    ("jobs/answer", "  4) state", "  5) state", "no branch for exit code 4"),
    ("github/gate.yml", "ref: ${{ github.sha }}\n          path: own\n          sparse-checkout: ci/jobs\n          persist-credentials: false\n      - uses: actions/download-artifact@v5\n        continue",
     "ref: ${{ github.event.workflow_run.head_sha }}\n          path: own\n          sparse-checkout: ci/jobs\n          persist-credentials: false\n      - uses: actions/download-artifact@v5\n        continue", "beside what others wrote"),
    ("github/gate.yml", "own/ci/jobs/confined out own/ci/jobs/gate", "ci/jobs/gate", "the change's own script runs"),
    ("github/gate.yml", "own/ci/jobs/confined out own/ci/jobs/gate", "own/ci/jobs/gate", "unconfined"),
    ("github/gate.yml", "exec own/ci/jobs/confined", "own/ci/jobs/confined", "hears of no end"),
    ("github/gate.yml", 'base out "$STEPGATE_LEDGER" &', 'base out "$STEPGATE_LEDGER"', "hears of no end"),
    ("github/gate.yml", "github.sha", "github.event.workflow_run.head_sha", "the workflow's and base's own"),
    ("github/gate.yml", "    environment: ", "    name: ", "nobody is asked about forks"),
    ("github/gate.yml", "      contents: read\n      actions: read", "      statuses: write", "a token that writes"),
    ("github/gate.yml", "number=$(head -c 20 head/pull_request)", "number=${{ github.event.workflow_run.head_branch }}",
     "text of others becomes a script"),
    ("github/gate.yml", "[[ $number =~ ^[0-9]+$ ]]", "[ $number =~ ^[0-9]+$ ]", "SC2074"),
    ("github/build.yml", "runs-on: ubuntu-24.04", "runs-on: [self-hosted, gpu]", "runs on our machine"),
    ("github/build.yml", "persist-credentials: false", "persist-credentials: true", "the token stays on disk"),
    ("github/build.yml", "contents: read", "contents: write", "a token that may write"),
    ("github/nightly.yml", "      - if: always()\n        uses", "      - uses", "a failed job keeps no report"),
    ("github/nightly.yml", "  schedule:", "  repository_dispatch:", "nothing starts it"),
    ("github/weekly.yml", "timeout-minutes: 180", "continue-on-error: true", "no timeout"),
    ("github/refresh.yml", "ci/jobs/refresh", "ci/jobs/renew", "there is no program ci/jobs/renew"),
    ("gitlab/stepgate.yml", "    name: stepgate-answer\n", "    name: stepgate\n", "the token is every job's"),
    ("gitlab/stepgate.yml", "$STEPGATE_NOTES\n      when: always", "$STEPGATE_NOTES", "nobody hears of a gate that fails"),
    ("gitlab/stepgate.yml", "    - job: stepgate-build-base\n", "    - job: stepgate-build-head\n", "beside what the change left"),
    ("gitlab/stepgate.yml", "exit_codes: [77]", "exit_codes: [1, 77]", "only 77 may be orange"),
    ("gitlab/stepgate.yml", "  resource_group: gpu\n", "", "two jobs at once"),
    ("gitlab/stepgate.yml", "    when: always\n", "", "no report when it fails"),
    ("gitlab/stepgate.yml", "trusted/ci/jobs/gate", "ci/jobs/gate", "the change's own script runs"),
    ("gitlab/stepgate.yml", "env -i ", "env ", "the change sees the job's token"),
    ("gitlab/stepgate.yml", "GIT_STRATEGY: none", "GIT_STRATEGY: clone", "lie where it is judged"),
    ("gitlab/stepgate.yml", "RUNNER_SCRIPT_TIMEOUT: 50m", "RUNNER_SCRIPT_TIMEOUT: 55m", "stepgate-gate: no time is left"),
    ("gitlab/stepgate.yml", "    RUNNER_AFTER_SCRIPT_TIMEOUT: 5m\n", "", "stepgate-nightly: no time is left"),
    ("gitlab/stepgate.yml", "timeout: 3 hours", "timeout: 175 minutes", "stepgate-weekly: no time is left"),
    ("gitlab/stepgate.yml", "timeout: 2 hours", "timeout: 1 hour", "stepgate-sanitizers: no time is left"),
    ("gitlab/stepgate.yml", "paths: [head]", "paths: [head, trusted]", "hands over more than a program"),
    ("buildkite/gate.yml", "exit_status: 77", "exit_status: 1", "only 77 may be orange"),
    ("buildkite/gate.yml", "    concurrency: 1\n", "", "two jobs at once"),
    ("buildkite/gate.yml", "prefix trusted/ci/jobs/build change", "prefix ci/jobs/build change", "the change's own script runs"),
    ("buildkite/gate.yml", "confined change/prefix ", "confined . ", "where it can reach base"),
    ("buildkite/gate.yml", "rm -rf trusted change out", "rm -rf trusted out", "may have a link at change"),
    ("buildkite/gate.yml", "      rm -rf out\n", "", "may have a link at out"),
    ("jenkins/Jenkinsfile.gate", "confined change/prefix ", "confined . ", "where it can reach base"),
    ("buildkite/nightly.yml", "artifact_paths", "artefact_paths", "no report"),
    ("jenkins/Jenkinsfile.gate", "case 77:", "case 78:", "no branch for exit code 77"),
    ("jenkins/Jenkinsfile.gate", "lock(resource: 'gpu')", "", "lock(resource"),
    ("jenkins/Jenkinsfile.gate", "skipDefaultCheckout()", "", "lie where it is judged"),
    ("jenkins/Jenkinsfile.weekly", "      }\n", "", "unbalanced"),
    ("github/gate.yml", "          path: out\n", "          path: out/junit.xml\n", "report.html is not kept"),
    ("gitlab/stepgate.yml", "paths: [out]", "paths: [out/junit.xml]", "report.html is not kept"),
    ("buildkite/nightly.yml", '["out/**/*"]', '["out/*.xml"]', "report.html is not kept"),
    ("jenkins/Jenkinsfile.nightly", "'out/**'", "'out/*.xml'", "no archiveArtifacts"),
    ("jobs/nightly", '--report "$out/report.html"', "", "no page for people"),
    ("github/nightly.yml", "ci/jobs/sanitizers . out", "echo none", "nothing starts ci/jobs/sanitizers"),
    ("gitlab/stepgate.yml", "ci/jobs/sanitizers . out", "echo none", "nothing starts ci/jobs/sanitizers"),
    ("buildkite/nightly.yml", "ci/jobs/sanitizers . out", "echo none", "nothing starts ci/jobs/sanitizers"),
    ("jenkins/Jenkinsfile.nightly", "ci/jobs/sanitizers . sanitizers", "echo none", "nothing starts ci/jobs/sanitizers"),
    ("github/gate.yml", "path: ${{ runner.temp }}/ledger", "path: other", "no ledger of earlier runs"),
    ("gitlab/stepgate.yml", "paths: [ledger-$CI_COMMIT_SHA]", "paths: [other]", "no ledger of earlier runs"),
    ("gitlab/stepgate.yml", '"$STEPGATE_LEDGER/." ledger-nightly', '"$STEPGATE_LEDGER/." other', "no ledger of earlier runs"),
    ("github/gate.yml", "STEPGATE_LEDGER: ${{ runner.temp }}/ledger", "STEPGATE_LEDGER: out/ledger", "the ledger lies in the checkout"),
    ("github/gate.yml", 'base out "$STEPGATE_LEDGER"', "base out out/ledger", "the ledger lies in the checkout"),
    ("github/nightly.yml", '"$HOME/stepgate-ledger"', "ledger", "the ledger lies in the checkout"),
    ("gitlab/stepgate.yml", '. out "$STEPGATE_LEDGER"', ". out ledger", "the ledger lies in the checkout"),
    ("buildkite/gate.yml", '"$$HOME/stepgate-ledger', '"stepgate-ledger', "the ledger lies in the checkout"),
    ("buildkite/nightly.yml", ' "$$HOME/stepgate-ledger"', "", "the ledger lies in the checkout"),
    ("jenkins/Jenkinsfile.gate", "STEPGATE_LEDGER=$HOME/", "STEPGATE_LEDGER=", "the ledger lies in the checkout"),
    ("jenkins/Jenkinsfile.nightly", '"$HOME/stepgate-ledger"', "out/ledger", "the ledger lies in the checkout"),
    ("jobs/nightly", 'ledger_outside "$ledger" "$sources" .', "true", "the ledger may lie in the checkout"),
    ("github/gate.yml", "          path: downloaded\n", "          path: head\n", "more than files"),
    ("github/gate.yml", "own/ci/jobs/take downloaded head", "mv downloaded head", "more than files"),
    ("gitlab/stepgate.yml", "head/bin/stepgate trusted left", "head/bin/stepgate trusted out", "where reports are read"),
    ("gitlab/stepgate.yml", "kill -KILL -1", "true", "may still change"),
    ("jobs/nightly", "kernel_resources", "nothing", "what kernels take"),
    ("github/release.yml", "    container:", "    permissions: { contents: write }\n    container:", "a token that writes where sources run"),
    ("jobs/fetch", "| sha256sum", "| cat", "nobody checked"),
    ("gitlab/own.yml", "| sha256sum -c -", "| cat", "nobody checked"),
    ("jenkins/Jenkinsfile.own", "sha256sum -c -", "cat", "nobody checked"),
    ("github/own.yml", "    if: github.event.pull_request.head.repo.full_name == github.repository\n", "", "runs on our machine"),
    ("github/kernels.yml", "    if: github.event.pull_request.head.repo.full_name == github.repository\n", "", "runs on our machine"),
    ("github/kernels.yml", "path: base\n          persist-credentials: false", "path: base", "the token stays on disk"),
    ("github/own.yml", "          path: out\n", "          path: out/junit.xml\n", "report.html is not kept"),
    ("github/action/action.yml", '"$OUT" "$COMMAND"', '"$OUT" ${{ inputs.command }}', "text of others becomes a script"),
    ("github/action/action.yml", "STEPGATE_LEDGER: ${{ inputs.ledger }}", "A: b", "no ledger of earlier runs"),
    ("buildkite/stepgate-buildkite-plugin/hooks/command", "ci/jobs/own", "ci/jobs/run", "there is no program ci/jobs/run"),
    ("buildkite/own.yml", "exit_status: 77", "exit_status: 1", "only 77 may be orange"),
    ("gitlab/own.yml", "  resource_group: gpu\n", "", "two jobs at once"),
    ("jenkins/Jenkinsfile.own", "case 77:", "case 78:", "no branch for exit code 77"),
    ("jobs/gate", '"$base" --baselines', "$base --baselines $unset", "SC2154"),
]
shutil.rmtree(place, ignore_errors=True)
for file, old, new, words in faults:
    shutil.copytree(os.path.join(repository, "ci"), os.path.join(place, "ci"))
    path = os.path.join(place, "ci", file)
    text = open(path).read()
    expect(old in text, f"{file} has no '{old}'")
    with open(path, "w") as planted:
        planted.write(text.replace(old, new, 1))
    quickly = [] if words.startswith("SC") else ["--without-shellcheck"]
    found = run(sys.executable, checker, place, *quickly)
    expect(found.returncode == 1 and words in found.stdout,
           f"{file}, '{old}' -> '{new}': not '{words}':\n{found.stdout}{found.stderr}")
    shutil.rmtree(place)


# A program that ends as it is told and says how it was called.
def fake(name, text):
    path = os.path.join(place, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


# Resources that kernels take, as cuobjdump prints them.
usage = "Fatbin elf code:\narch = sm_{0}\n Function first:\n  REG:{1} STACK:0 SHARED:{2} LOCAL:0 CONSTANT[0]:576\n Function second:\n  REG:9 STACK:{3} SHARED:0 LOCAL:0\n"
good = usage.format(80, 40, 1024, 0) + usage.format(90, 255, 49152, 48)


def fake_cuobjdump(text, code=0):
    fake("cuobjdump", f"cat <<'END'\n{text}END\nexit {code}\n")


# A compute-sanitizer that finds what a program leaves behind, where it is asked about leaks.
sanitizer = f"""echo "$@" >>{place}/sanitizer.calls
leaks=
while [ $# -gt 0 ]; do case $1 in
  --leak-check) leaks=$STEPGATE_KEEP_LEAKS; shift 2 ;;
  --*) shift 2 ;;
  *) "$@"; code=$?; [ "$code$leaks" != 01 ] || {{ echo "========= Leaked 1,048,576 bytes at 0x1"; exit 1; }}; exit $code ;;
esac; done
"""
kinds = ["mlp", "spin", "transformer", "elementwise", "chase", "recommender", "resnet", "unet"]


def lists(kinds):
    text = "".join(f"\n{'':25}{kind:17}what it is" for kind in kinds)
    return f"""[ "$1" != fields ] || {{ echo "model.kind             kinds{text}"; exit 0; }}\n"""


says_kinds = lists(kinds)
# A program of one benchmark, of which the test says how long its kernel takes.
fake("nvidia-smi", "echo 'GPU of a test, 1.2'\n")
fake("kernels_bench", f"""for word; do case $word in --benchmark_out=*) file=${{word#*=}} ;; esac; done
python3 -c "import json; print(json.dumps(dict(benchmarks=[dict(name='add', run_type='iteration', real_time=float(t), time_unit='us') for t in '$(cat {place}/took)'.split()])))" >"$file"
""")


def kernels_take(*times):
    with open(os.path.join(place, "took"), "w") as file:
        file.write(" ".join(map(str, times)))


kernels_take(10, 10.1, 10.2)
jobs = os.path.join(repository, "ci/jobs")
out = os.path.join(place, "out")
head = fake("head", "exit 0\n")
ledger = tempfile.mkdtemp()
for code in [0, 1, 2, 3, 4, 77, 139]:
    stepgate = fake("stepgate", f'echo "$@" >>{place}/calls\n{says_kinds}exit {code}\n')
    fake("compute-sanitizer", sanitizer)
    fake_cuobjdump(good)
    path = {"PATH": place + ":" + os.environ["PATH"]}
    for words in [["gate", stepgate, head, repository, out, ledger], ["nightly", stepgate, repository, out, ledger],
                  ["refresh", stepgate, repository, out], ["weekly", stepgate, repository, out]]:
        ended = run(os.path.join(jobs, words[0]), *words[1:], env=path)
        written = open(os.path.join(out, "exit_code")).read().strip()
        expect(ended.returncode == code and written == str(code),
               f"{words[0]}: the program ended with {code}, the job with {ended.returncode}, '{written}' is written:\n"
               + ended.stderr)
        shutil.rmtree(out)
calls = open(os.path.join(place, "calls")).read()
expect(f"--baselines {repository}/baselines gate --base {place}/stepgate --head {head}" in calls, "gate: " + calls)
expect(calls.count(f"--ledger {ledger}") == 14, "gate or nightly: does not go on from the ledger: " + calls)
os.symlink(repository, os.path.join(ledger, "link"))
for inside in [os.path.join(repository, "ledger"), os.path.join(ledger, "link/ledger"), "ledger", "."]:
    for words in [["gate", stepgate, head, repository, out, inside], ["nightly", stepgate, repository, out, inside]]:
        os.makedirs(out, exist_ok=True)
        ended = run(os.path.join(jobs, words[0]), *words[1:], env=path, cwd=place)
        expect(ended.returncode == 2 and "lies in the checkout" in ended.stderr, f"{words[0]}: takes the ledger {inside}: {ended}")
shutil.rmtree(out)
expect(f"gate --soak --head {place}/stepgate" in calls, "nightly: no soak: " + calls)
expect("accept" in calls and f"--baselines {out}/baselines accept" in calls, "refresh writes to the trusted baselines")

# Scenarios of ranks are for two GPUs, where there are any; without the list of folders nothing is gated.
trusted = os.path.join(place, "sources of base")
os.makedirs(os.path.join(trusted, "scenarios/ranks"))
os.makedirs(os.path.join(trusted, "baselines/gpu-of-a-test"))
open(os.path.join(trusted, "baselines/gpu-of-a-test/train_step.toml"), "w").close()
stepgate = fake("stepgate", 'echo "$@"\n')
suite, of_ranks = f"{ledger} {trusted}/scenarios", f" {trusted}/scenarios/ranks"
for gpus, has_ranks, folders in [(1, True, suite), (2, True, suite + of_ranks), (8, True, suite + of_ranks), (2, False, suite)]:
    if not has_ranks:
        os.rmdir(os.path.join(trusted, "scenarios/ranks"))
    smi = fake("gpus of a runner/nvidia-smi", "echo GPU of a test\n" * gpus)
    ended = run(os.path.join(jobs, "gate"), stepgate, head, trusted, out, ledger, env={"PATH": os.path.dirname(smi) + ":" + path["PATH"]})
    expect(ended.returncode == 0 and ended.stdout.strip().endswith("--ledger " + folders), f"gate: {gpus} GPUs: {ended}")
alone = os.path.join(place, "jobs alone")
os.makedirs(alone)
for name in ["gate", "ledger.sh"]:
    shutil.copy(os.path.join(jobs, name), alone)
ended = run(os.path.join(alone, "gate"), stepgate, head, trusted, out, ledger, env=path)
expect(ended.returncode == 3 and ended.stdout == "", f"gate: without the list of folders: {ended}")

for spoil in [f"mkfifo {out}/exit_code", f"ln -s /dev/full {out}/exit_code", f"mkdir {out}/exit_code"]:
    stepgate = fake("stepgate", f"rm -f {out}/exit_code; {spoil}; exit 1\n")
    ended = run(os.path.join(jobs, "gate"), stepgate, head, repository, out, ledger, env=path, timeout=20)
    expect(ended.returncode == 1 and open(os.path.join(out, "exit_code")).read() == "1\n", f"gate: {spoil}: {ended}")
shutil.rmtree(out)

# The job ends with the worst code of its parts.
stepgate = fake("stepgate", says_kinds + 'case "$*" in *input_path*) exit 1 ;; *graph_launch*) exit 3 ;; *) exit 77 ;; esac\n')
ended = run(os.path.join(jobs, "weekly"), stepgate, repository, out, env=path)
expect(ended.returncode == 1, f"weekly: 77, 1 and 3 make {ended.returncode}")
for code, job in [(1, 1), (2, 2), (4, 0), (0, 0)]:
    stepgate = fake("stepgate", says_kinds + f'case "$*" in *" history "*) exit {code} ;; *) exit 0 ;; esac\n')
    ended = run(os.path.join(jobs, "weekly"), stepgate, repository, out, env=path)
    expect(ended.returncode == job, f"weekly: a history that ends with {code} makes {ended.returncode}")

# Every kind of model is looked at for leaks, and a week is red where a kind is new, a leak is there or the planted one is overlooked.
called = open(os.path.join(place, "sanitizer.calls")).read()
expect(called.count("--tool memcheck --target-processes application-only --error-exitcode 1 --leak-check full") == 9 * called.count("planted_leak.toml") > 0,
       "weekly: not every kind of model is looked at for leaks: " + called)
program = subprocess.run([built, "fields", "model.kind"], capture_output=True, text=True, check=True).stdout
for listed, tool, job, part, words in [
        (says_kinds, sanitizer, 0, "kinds: 0", ""), (lists([*kinds, "convolution"]), sanitizer, 1, "kinds: 1", "no scenario for models of kind 'convolution'"),
        (lists([]), sanitizer, 1, "kinds: 1", "names no kind"), (f"[ $1 != fields ] || {{ cat <<'END'\n{program}END\nexit 0; }}\n", sanitizer, 0, "kinds: 0", ""),
        (says_kinds, sanitizer.replace("Leaked", "Lost"), 1, "planted-leak: 1", "overlooked a planted leak"),
        (says_kinds, sanitizer.replace("leaks=$STEPGATE_KEEP_LEAKS", "leaks="), 1, "planted-leak: 1", "overlooked a planted leak"),
        (says_kinds, 'case "$*" in *llama_block*) echo "========= Leaked 64 bytes at 0x1"; exit 1 ;; esac\n' + sanitizer, 1, "memcheck-transformer: 1", "Leaked 64 bytes"),
        (says_kinds, 'case "$*" in *planted_leak*) exit 3 ;; esac\n' + sanitizer, 3, "planted-leak: 3", "overlooked a planted leak")]:
    stepgate = fake("stepgate", listed + "exit 0\n")
    fake("compute-sanitizer", tool)
    ended = run(os.path.join(jobs, "weekly"), stepgate, repository, out, env=path)
    said = "".join(open(os.path.join(out, name)).read() for name in os.listdir(out) if name.endswith(".log"))
    expect(ended.returncode == job and part in ended.stdout and words in said, f"weekly: not {job}, '{part}', '{words}': {ended}\n{said}")
    shutil.rmtree(out)
os.makedirs(out)

# A night in which everything passes, but what kernels take is too much, or cannot be looked at.
stepgate = fake("stepgate", "exit 0\n")
for text, code, job, words in [
        (usage.format(90, 256, 0, 0), 0, 1, "takes REG 256"), ("", 0, 1, "no kernel at all"),
        ("cuobjdump info    : File 'stepgate' does not contain device code\n", 1, 1, "no kernel at all"),
        ("", 1, 4, "not checked: cuobjdump ended with 1"), (good, 0, 0, "sm_90: 2 kernels")]:
    fake_cuobjdump(text, code)
    ended = run(os.path.join(jobs, "nightly"), stepgate, repository, out, ledger, env=path)
    expect(ended.returncode == job and words in ended.stdout, f"nightly: {text!r} and {code} of cuobjdump: {ended}")
# A kernel that becomes slower is a warning in the night's page, and fails in the next. Without the program the night says so.
fake_cuobjdump(good)
for times, job, words in [((12, 12.1, 12.2), 0, "warning: add"), ((12, 12.1, 12.2), 1, "slower 2 times in a row"), ((10, 10.1, 10.2), 0, "1 compared")]:
    kernels_take(*times)
    ended = run(os.path.join(jobs, "nightly"), stepgate, repository, out, ledger, env=path)
    page = open(os.path.join(out, "summary.md")).read()
    expect(ended.returncode == job and words in ended.stdout and words in page, f"nightly: kernels take {times}: {ended}")
    shutil.rmtree(out)
expect(os.listdir(os.path.join(ledger, "benchmarks")) == ["GPU-of-a-test--1.2.json"], "nightly: another name of the device and driver")
os.rename(os.path.join(place, "kernels_bench"), os.path.join(place, "hidden"))
ended = run(os.path.join(jobs, "nightly"), stepgate, repository, out, ledger, env=path)
expect(ended.returncode == 4 and "no " + os.path.join(place, "kernels_bench") in open(os.path.join(out, "benchmarks.log")).read(), f"nightly without benchmarks: {ended}")
# In a build tree it lies in the folder of the kernels, and the program in the runner's.
for folder in ["build/runner", "build/kernels"]:
    os.makedirs(os.path.join(place, folder))
shutil.copy(stepgate, os.path.join(place, "build/runner"))
shutil.move(os.path.join(place, "hidden"), os.path.join(place, "build/kernels/kernels_bench"))
ended = run(os.path.join(jobs, "nightly"), os.path.join(place, "build/runner/stepgate"), repository, out, ledger, env=path)
expect(ended.returncode == 0 and "1 compared" in ended.stdout, f"nightly in a build tree: {ended}")
shutil.move(os.path.join(place, "build/kernels/kernels_bench"), place)
few = os.path.join(place, "few programs")
os.makedirs(few)
for program in ["bash", "cat", "dirname", "mkdir", "python3", "realpath", "rm", "tee"]:
    os.symlink(shutil.which(program), os.path.join(few, program))
os.symlink(os.path.join(place, "nvidia-smi"), os.path.join(few, "nvidia-smi"))
ended = run(os.path.join(jobs, "nightly"), stepgate, repository, out, ledger, env={"PATH": few})
expect(ended.returncode == 4 and "not checked: no cuobjdump" in ended.stdout, f"nightly without cuobjdump: {ended}")

# The sanitizers' job, of which every part is a program that ends as it is told: the worst code is the job's.
sources = os.path.join(place, "sources")
os.makedirs(os.path.join(sources, "ci"))
with open(os.path.join(sources, "ci/packages.sh"), "w") as file:
    file.write("install_packages() { :; }\nconfigure_and_build() { echo built; }\n")
for tests, fuzzing, job in [("exit 0", "exit 0", 0), ("exit 8", "exit 0", 1), ("exit 0", "exit 1", 1), ("exit 0", "exit 2", 2),
                            ('case "$*" in *host-tsan*) exit 8 ;; esac', "exit 0", 1),
                            ('case "$*" in *host-integer*) exit 8 ;; esac', "exit 2", 1),
                            ('case "$*" in *power*) exit 8 ;; esac', "exit 0", 1)]:
    fake("ctest", tests + "\n")
    fake("sources/ci/fuzz", f'echo "$@"; {fuzzing}\n')
    ended = run(os.path.join(jobs, "sanitizers"), sources, out, env=path)
    written = open(os.path.join(out, "exit_code")).read().strip()
    expect(ended.returncode == job and written == str(job) and "\n120\n" in ended.stdout,
           f"sanitizers: {tests}, {fuzzing}: {ended}, '{written}' is written")

# ci/gate --base in a repository of its own, where a build is a program that says how it was called.
clone = os.path.join(place, "a clone")
os.makedirs(os.path.join(clone, "ci/jobs"))
for name in ["gate", "jobs/scenario_folders"]:
    shutil.copy(os.path.join(repository, "ci", name), os.path.join(clone, "ci", name))
with open(os.path.join(clone, "ci/packages.sh"), "w") as file:
    file.write("""say() { :; }
install_packages() { :; }
find_nvcc() { :; }
has_gpu() { false; }
configure_and_build() {
  mkdir -p "build/$1/runner"
  printf '#!/bin/sh\\ncase $0 in *gate/base*) echo BASE ;; *) echo HEAD ;; esac\\nprintf "%%s\\\\n" "$@"\\nexit 77\\n' >"build/$1/runner/stepgate"
  chmod +x "build/$1/runner/stepgate"
}
""")


def git(*words):
    ended = run("git", "-C", clone, "-c", "user.name=a", "-c", "user.email=a@b", *words)
    expect(ended.returncode == 0, f"git {words}: {ended.stderr}")


def gate(*words, gpus=1):
    smi = fake("gpus/nvidia-smi", "echo GPU of a test\n" * gpus)
    return run(os.path.join(clone, "ci/gate"), *words, cwd=place, env={**os.environ, "PATH": os.path.dirname(smi) + ":" + os.environ["PATH"]})


def write(name, text):
    os.makedirs(os.path.dirname(os.path.join(clone, name)), exist_ok=True)
    with open(os.path.join(clone, name), "w") as file:
        file.write(text)


write("scenarios/a.toml", "")
write("scenarios/ranks/b.toml", "")
git("init", "-q", "-b", "main")
git("add", ".")
git("commit", "-q", "-m", "a gate")
old, new = "build/gate/base/build/host/runner/stepgate", "build/host/runner/stepgate"
terms = f"--baselines build/gate/base/baselines gate --base {old} --head {new} --head-files=scenarios "
ended = gate("--base", "main", "--margin", "1 %")
expect(ended.returncode == 77, f"ci/gate: 77 makes {ended.returncode}: {ended.stderr}")
said = ended.stdout.split("\n")
expect(" ".join(said).strip() == f"BASE {terms}--margin 1 % build/gate/base/scenarios", f"ci/gate: {said}")
expect("1 %" in said, f"ci/gate takes an argument apart: {said}")
write("accepted.toml", "")  # the working tree is not clean either
said = " ".join(gate("--base", "main").stdout.split())
expect(said == f"BASE {terms}--accepted accepted.toml build/gate/base/scenarios", f"ci/gate, accepted: {said}")
said = " ".join(gate("--base", "main", gpus=2).stdout.split())
expect(said == f"BASE {terms}--head-files=scenarios/ranks --accepted accepted.toml build/gate/base/scenarios build/gate/base/scenarios/ranks",
       f"ci/gate, two GPUs: {said}")
shutil.rmtree(os.path.join(clone, "scenarios/ranks"))
said = " ".join(gate("--base", "main", gpus=2).stdout.split())
expect(said == f"BASE {terms}--accepted accepted.toml build/gate/base/scenarios build/gate/base/scenarios/ranks",
       f"ci/gate, two GPUs, no scenarios of ranks: {said}")
tried = os.path.join(clone, "build/gate/base")
os.remove(os.path.join(tried, "ci/gate"))
with open(os.path.join(tried, "more.toml"), "w") as file:
    file.write("what somebody tried out")
gate("--base", "main")
expect(os.path.exists(os.path.join(tried, "ci/gate")) and not os.path.exists(os.path.join(tried, "more.toml")),
       "ci/gate: what was changed in BASE's folder is taken for REF's")
for words, complaint in [(["--base"], "says no REF"), (["--base", "nowhere"], "knows no commit 'nowhere'")]:
    ended = gate(*words)
    expect(ended.returncode == 2 and complaint in ended.stderr, f"ci/gate {words}: {ended.returncode} {ended.stderr}")

docker = fake("docker", '[ "$1" = run ] || exit 0\nprintf "%s\\n" "$@"\nenv\n')
more = {"PATH": path["PATH"], "STEPGATE_IMAGE": "image", "SECRET": "hidden"}
ended = run(os.path.join(jobs, "confined"), out, "program", "argument", env=more, cwd=place)
words = ended.stdout.split("\n")
for word in ["none", "--read-only", "ALL", f"{place}:{place}:ro"]:
    expect(word in words, f"confined: no {word} in {words}")
expect(any(re.fullmatch(re.escape(out) + r"\.confined\.\w+/out:" + re.escape(out), word) for word in words), f"confined: no copy of {out}: {words}")
expect("--gpus" not in words and "SECRET" not in " ".join(words[:words.index("image")]), f"confined: {words}")
ended = run(os.path.join(jobs, "confined"), ".", "program", env=more, cwd=place)
expect(ended.stdout.count(f":{place}\n") == 1 and f":{place}:ro" not in ended.stdout, "confined: one place twice: " + ended.stdout)
ended = run(os.path.join(jobs, "confined"), out, "program", env={**more, "STEPGATE_GPU": "2"}, cwd=place)
expect("--gpus\ndevice=2\n" in ended.stdout, "confined: " + ended.stdout)
with open(os.path.join(ledger, "kept.toml"), "w") as file:
    file.write("kept\n")
fake("tools/docker", 'for word; do case $word in *:' + ledger + ') cat "${word%:*}/kept.toml"; echo more >"${word%:*}/new.toml" ;; esac; done\n')
ended = run(os.path.join(jobs, "confined"), out, "program", cwd=place,
            env={**more, "STEPGATE_LEDGER": ledger, "PATH": os.path.join(place, "tools") + ":" + os.environ["PATH"]})
expect(ended.stdout == "kept\n" and os.path.exists(os.path.join(ledger, "new.toml")), f"confined: no ledger goes in and out: {ended}")

# Things that a stranger's program leaves in a folder, by shell scripts that work there; `secret` is
# a file of the machine.
secret = os.path.join(place, "secret")
with open(secret, "w") as file:
    file.write("TOP SECRET OF THE HOST\n")
leaves = {
    "a link to a file": f"ln -s {secret} x",
    "a link in the place of a report": f"rm -f summary.md; ln -s {secret} summary.md",
    "a link to a folder": f"ln -s {place} x",
    "a link in the place of a folder": f"rm -rf evidence; ln -s {place} evidence",
    "a pipe": "rm -f summary.md; mkfifo x summary.md",
    "a socket": "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"x\")'",
    "a second link": f"ln {secret} x",
    "a name like another's but for a blank": f"ln {secret} x; head -c 100 /dev/zero >'x '",
    "a folder in the place of a report": "rm -f summary.md; mkdir summary.md; ln -s ../../secret summary.md/x",
    "a sparse file": "truncate -s 3G x",
    "too much": "for n in 1 2 3 4 5 6 7 8 9; do head -c 100000 /dev/zero >x$n; done",
    "too many": "for n in 1 2 3 4 5 6 7 8 9; do echo >x$n; done",
    "a name that is a command": "mkdir -p ':'; echo >'::error file=x::injected'; echo >':/a\nb'",
    "folders without an end": "d=.; for n in $(seq 60); do d=$d/d; mkdir $d; done; echo >$d/x",
    "what nobody may read": "echo >evidence/y; chmod 000 evidence",
}
if os.getuid() == 0:
    leaves["a device"] = "rm -f summary.md; mknod summary.md c 1 5"
tools = os.path.join(place, "tools") + ":" + os.environ["PATH"]
limits = {"STEPGATE_TAKES_FILES": "8", "STEPGATE_TAKES_BYTES": "500000"}


def is_data(folder, what):
    """Nothing but what anybody may read and upload."""
    files = [os.path.join(at, name) for at, folders, names in os.walk(folder) for name in folders + names]
    for path in files:
        expect(not os.path.islink(path) and (os.path.isdir(path) or os.path.isfile(path)), f"{what}: {path} is no file")
    files = [path for path in files if os.path.isfile(path) and not os.path.islink(path)]
    for path in files:
        expect(os.stat(path).st_nlink == 1 and re.fullmatch(r"[A-Za-z0-9._+/-]+", os.path.relpath(path, folder)), f"{what}: {path}")
        with open(path, "rb") as file:
            expect(b"TOP S" not in file.read(), f"{what}: {path} shows a file of the machine")
    expect(len(files) <= 8 and sum(os.stat(path).st_size for path in files) <= 500000, f"{what}: takes too much: {files}")


def left_by(script):
    """A folder with a report and evidence, in which the script has worked."""
    folder = os.path.join(place, "left")
    run("chmod", "-R", "u+rwX", folder)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "evidence"))
    for name in ["summary.md", "evidence/0.toml"]:
        with open(os.path.join(folder, name), "w") as file:
            file.write("said\n")
    ended = run("sh", "-c", script, cwd=folder)
    expect(ended.returncode == 0, f"{script}: {ended.stderr}")
    return folder


take = os.path.join(jobs, "take")
unsaid = ["nothing else", "what nobody may read", "folders without an end"]
taken = os.path.join(place, "taken")


def what_is_taken(take, script, what, swap=None, there="true"):
    """By a `take`, where the script left something; with what comes in the place of a file once it has been looked at, and a
    script of what was there before."""
    shutil.rmtree(taken, ignore_errors=True)
    os.makedirs(taken)
    run("sh", "-c", there, cwd=taken)
    folder = left_by(script)
    if swap:
        fake("tools/find", f'{shutil.which("find")} "$@"\ncd {folder}; {swap}\n')
    ended = run("bash", take, folder, taken, env={**os.environ, **limits, "PATH": tools}, timeout=20)
    if swap:
        os.remove(os.path.join(place, "tools/find"))
    is_data(taken, f"take: {what}")
    return ended


for what, script in [("nothing else", "true")] + list(leaves.items()):
    ended = what_is_taken(take, script, what)
    expect(ended.returncode == 0 and ("left" in ended.stderr) == (what not in unsaid), f"take: {what}: {ended}")
    kept = "place of" in what or what in ["a pipe", "a device"] or os.path.exists(os.path.join(taken, "summary.md"))
    expect(kept, f"take: {what}: the report is gone")
to_link = f"ln -sf {secret} summary.md"
for swap in [to_link, "rm summary.md; mkfifo summary.md"]:
    ended = what_is_taken(take, "true", swap, swap)
    expect(os.path.exists(os.path.join(taken, "evidence/0.toml")), f"take: {swap}: {ended}")
ended = what_is_taken(take, "mkdir -p a/b; echo >a/b/c; echo >z", "types crossed", there="mkdir -p summary.md/x z; echo >z/y; echo >evidence; echo >a")
said = sorted(os.path.relpath(os.path.join(at, name), taken) for at, folders, names in os.walk(taken) for name in names)
expect(ended.returncode == 0 and said == ["a/b/c", "evidence/0.toml", "summary.md", "z"], f"take: files where there were folders, and the reverse: {said}, {ended}")
# A link in its way leads nowhere: neither is what it leads to written.
elsewhere = os.path.join(place, "elsewhere")
os.makedirs(elsewhere)


def links_in_its_way(take):
    what_is_taken(take, "true", "links in its way", there=f"ln -s {elsewhere} evidence; ln -s {secret} summary.md")
    expect(os.listdir(elsewhere) == [] and "TOP S" in open(secret).read(), "take: writes through a link that was there before")
    expect(os.path.exists(os.path.join(taken, "evidence/0.toml")), "take: a link keeps a file away")


links_in_its_way(take)
for program in ["find", "head", "sort"]:  # busybox's know less
    fake("tools/" + program, "exit 1\n")
    ended = what_is_taken(take, "true", f"no {program}")
    os.remove(os.path.join(place, "tools", program))
    expect(ended.returncode == 3 and "not all is taken" in ended.stderr, f"take: {program} fails: {ended}")
# Each part of it is needed.
text = open(take).read()
for old, new, what, swap in [
        ('"$kind$links" != f1', '"$links" != 1', "a link in the place of a report", None), ('"$kind$links" != f1', '"$kind" != f', "a second link", None),
        ("[[ ! $name =~ ^[A-Za-z0-9._+/-]+$ ]]", "false", "a name that is a command", None), ('[ "$size" -gt "$bytes" ]', "false", "too much", None),
        ('[ "$files" -lt 1 ]', "false", "too many", None), ("nofollow,", "", "nothing else", to_link)]:
    expect(old in text, f"take has no '{old}'")
    planted = text.replace(old, new).replace("nofollow,", "" if old.startswith('"$kind') else "nofollow,")
    found, before = len(failures), list(failures)
    what_is_taken(fake("planted", planted), leaves.get(what, "true"), what, swap)
    missed = len(failures) == found
    failures[:] = before
    expect(not missed, f"take: '{old}' -> '{new}' is not found by {what}")

expect('&& [ ! -L "$place" ]' in text, "take looks for no links in its way")
found, before = len(failures), list(failures)
links_in_its_way(fake("planted", text.replace('&& [ ! -L "$place" ]', "")))
missed = len(failures) == found
failures[:] = before
expect(not missed, "take: that it follows links in its way is not found")

# The same through ci/jobs/confined and what GitHub's job does with its folder, where docker runs the script as the program.
few = ["a link in the place of a report", "a link to a folder", "a pipe", "a folder in the place of a report", "too much"]
github = yaml.safe_load(open(os.path.join(repository, "ci/github/gate.yml")))["jobs"]
summarize = next(step["run"] for step in github["gate"]["steps"] if step.get("id") == "gate")
os.symlink(repository, os.path.join(place, "own"))
out_folder = os.path.join(place, "out")
summary = os.path.join(place, "summary_of_github")
github_env = {**more, **limits, "PATH": tools, "GITHUB_OUTPUT": "/dev/null", "GITHUB_STEP_SUMMARY": summary}


def docker_runs(script, removes="true", code=1):
    """A docker that works in the folder that it would show the program, and looks at the real one meanwhile."""
    fake("tools/docker", f"""echo "$1 $2 $3" >>{place}/docker.calls
[ "$1" = run ] || {{ {removes}; exit 0; }}
for word; do case $word in *:{out_folder}) cd "${{word%:*}}" ;; esac; done
echo said >summary.md; mkdir -p evidence; echo said >evidence/0.toml
{script}
find {out_folder} ! -type d >>{place}/seen
exit {code}
""")


for what, script in [(what, leaves[what]) for what in few]:
    shutil.rmtree(out_folder, ignore_errors=True)
    for file in [summary, os.path.join(place, "seen")]:
        if os.path.exists(file):
            os.remove(file)
    docker_runs(script)
    ended = run("bash", "-e", "-c", summarize, env=github_env, cwd=place, timeout=20)
    expect(ended.returncode == 1, f"gate.yml: {what}: {ended}")
    is_data(out_folder, f"confined: {what}")
    said = open(summary).read() if os.path.exists(summary) else ""
    expect("TOP S" not in said and (said == "said\n" or "place of" in what or what in ["a pipe", "a device"]), f"gate.yml: {what}: the page says {said}")
    expect(open(os.path.join(place, "seen")).read() == "", f"confined: {what}: the program writes where others look")
expect(not [name for name in os.listdir(place) if ".confined." in name], "confined: leaves its copies")

# A change's checkout with links where its program goes: base's program and the runner's files are neither shown nor replaced.
change, base = os.path.join(place, "change"), os.path.join(place, "basis/prefix/bin")
base_program = os.path.join(base, "stepgate")
os.makedirs(base)
fake("tools/docker", """[ "$1" = run ] || exit 0
for word; do case $word in *.confined.*/out:*) cd "${word%:*}" ;; esac; done
find . -type f -exec cat {} +
rm -rf bin && mkdir bin && echo head >bin/stepgate
""")


def built_where_links_are(confined, folder, script):
    """Returns whether it was built, and whether nothing else was touched, shown or left to be uploaded."""
    shutil.rmtree(change, ignore_errors=True)
    os.makedirs(change)
    with open(base_program, "w") as file:
        file.write("base")
    run("sh", "-c", script, cwd=change)
    ended = run("bash", confined, folder, "program", env=github_env, cwd=place)
    links = [name for at, folders, names in os.walk(change) for name in folders + names if os.path.islink(os.path.join(at, name))]
    is_apart = open(base_program).read() == "base" and os.path.exists(secret) and "TOP S" not in ended.stdout and "base" not in ended.stdout
    run("bash", "-c", f"rm -rf bin; rm -f {change}; rm -rf *.confined.*", cwd=place)
    return ended.returncode == 0, is_apart and (ended.returncode == 2 and "is a link" in ended.stderr or not links)


linked = [("change/prefix", "ln -s ../basis/prefix prefix", False), ("change/prefix/", "ln -s ../basis prefix", False),
          ("change/prefix", "cd ..; rmdir change; ln -s basis change", False),
          ("change/prefix", f"mkdir prefix; ln -s {base} prefix/bin", True), ("change/prefix", f"mkdir -p prefix/a; ln -s {secret} prefix/a/x; mkfifo prefix/p", True),
          (os.path.join(place, "change/prefix"), "true", True)]
script = open(os.path.join(jobs, "confined")).read()
for folder, links, builds in linked:
    built, apart = built_where_links_are(os.path.join(jobs, "confined"), folder, links)
    expect(built == builds and apart, f"confined {folder}: {links}: built {built}, apart {apart}")
for old, new, planted in [('[ ! -L "$place" ]', "true", linked[0]), ("! -type f ! -type d -delete", "-prune", linked[4])]:
    expect(old in script, f"confined has no '{old}'")
    os.makedirs(os.path.join(place, "jobs"), exist_ok=True)
    shutil.copy(take, os.path.join(place, "jobs/take"))
    built, apart = built_where_links_are(fake("jobs/confined", script.replace(old, new)), *planted[:2])
    expect(not apart, f"confined: '{old}' -> '{new}' is not found")

# A container ends with the job, and what it had found by then is kept: whether the job's script is told, as `confined`, or
# GitHub's step, of which the shell alone hears; and whether that is told twice, the second time while docker removes.
confined = ["bash", os.path.join(jobs, "confined"), "out", "program"]
step = os.path.join(place, "step.sh")
slowly = f"touch {place}/ending; sleep 0.3"


def has_come(name):
    file = os.path.join(place, name)
    for _ in range(1000):
        if os.path.exists(file):
            os.remove(file)
            return
        time.sleep(0.01)
    sys.exit(f"{name} does not come:\n" + "\n".join(failures))


def what_ends(words, signals, what, script=f"ln -s {secret} x; touch {place}/begun; exec sleep 30"):
    """The exit code of a job that is told to end, and again while its container is removed."""
    shutil.rmtree(out_folder, ignore_errors=True)
    docker_runs(script, slowly if len(signals) > 1 else "true")
    job = subprocess.Popen(words, env=github_env, cwd=place, stderr=subprocess.DEVNULL)
    for number, moment in zip(signals, ["begun", "ending"]):
        has_come(moment)
        job.send_signal(number)
    try:
        job.wait(timeout=5)
    except subprocess.TimeoutExpired:
        job.kill()
    calls = open(os.path.join(place, "docker.calls")).read().split("\n")
    started = [line.split()[2] for line in calls if line.startswith("run ")]
    expect(f"rm --force {started[-1]}" in calls, f"{what}: the container goes on: {calls}")
    copies = [name for name in os.listdir(place) if ".confined." in name]
    expect(not copies, f"{what}: leaves its copy")
    for name in copies:
        shutil.rmtree(os.path.join(place, name))
    return job.returncode


with open(step, "w") as file:
    file.write(summarize)
for number in [signal.SIGHUP, signal.SIGINT, signal.SIGTERM]:
    signal.signal(number, signal.SIG_DFL)  # a shell cannot trap what whoever started this ignores
for words, signals in [(confined, [signal.SIGTERM]), (confined, [signal.SIGINT, signal.SIGTERM]), (confined, [signal.SIGHUP]), (["bash", "-e", step], [signal.SIGINT]),
                       (["bash", "-e", step], [signal.SIGINT, signal.SIGTERM]), (["bash", "-e", step], [signal.SIGTERM])]:
    what = f"{'gate.yml' if step in words else 'confined'}, {signals}"
    code = what_ends(words, signals, what)
    expect(code == (143 if step in words else 128 + signals[0]), f"{what}: ends with {code}")
    is_data(out_folder, what)
    expect(os.path.exists(os.path.join(out_folder, "evidence/0.toml")), f"{what}: a job that is ended loses its evidence")
what_ends(confined, [signal.SIGTERM], "a pull", f"touch {place}/begun; until [ -e {place}/pulled ]; do sleep 0.02; done; touch {place}/started")
open(os.path.join(place, "pulled"), "w").close()
time.sleep(0.3)
expect(not os.path.exists(os.path.join(place, "started")), "confined: a container begins once nobody waits for it")

# A copy that cannot be cleared away leaves the program's exit code as it is.
docker_runs("true", code=77)
for program in ["chmod", "rm"]:
    fake("tools/" + program, f'case "$*" in *.confined.*) exit 1 ;; esac\nexec {shutil.which(program)} "$@"\n')
    ended = run(*confined, env=github_env, cwd=place)
    os.remove(os.path.join(place, "tools", program))
    expect(ended.returncode == 77, f"confined: {program} fails: {ended}")
    run("bash", "-c", "rm -rf out.confined.*", cwd=place)

# The proposer of a change gives its number in a file.
ask = next(step["run"] for step in github["who"]["steps"] if step.get("id") == "ask")
os.makedirs(os.path.join(place, "asked/head"))
fake("asked/bin/gh", "echo asked >>asked.calls\n")
asks = {"PATH": os.path.join(place, "asked/bin") + ":" + os.environ["PATH"], "GITHUB_OUTPUT": "/dev/null", "GITHUB_REPOSITORY": "a/b", "HEAD_SHA": "1"}
for script in [f"ln -s {secret} pull_request", "mkfifo pull_request", "mkdir pull_request", "ln -s /dev/zero pull_request"]:
    run("bash", "-c", f"rm -rf head/*; cd head; {script}", cwd=os.path.join(place, "asked"))
    ended = run("bash", "-e", "-c", ask, env=asks, cwd=os.path.join(place, "asked"), timeout=20)
    expect(ended.returncode == 1 and "is no file" in ended.stderr, f"gate.yml: {script}: {ended}")
run("bash", "-c", "rm -rf head/*; echo 7 >head/pull_request", cwd=os.path.join(place, "asked"))
ended = run("bash", "-e", "-c", ask, env=asks, cwd=os.path.join(place, "asked"))
expect(os.path.exists(os.path.join(place, "asked/asked.calls")), f"gate.yml: a number is not asked about: {ended}")

# GitLab's job begins without what another one left, and ends what the program left at work before it takes what that left.
gitlab = yaml.safe_load(open(os.path.join(repository, "ci/gitlab/stepgate.yml")))
after = gitlab[".stepgate-gpu"]["after_script"]
for name in ["setpriv", "chown"]:
    fake("tools/" + name, "exit 1\n")
run("bash", "-c", "rm -rf out; mkdir -p out/history; echo 0 | tee out/exit_code out/.x >out/history/x", cwd=place)
run("bash", "-e", "-c", "\n".join(gitlab["stepgate-gate"]["script"]), env={**os.environ, "PATH": tools, "STEPGATE_LEDGER": ledger, "CI_COMMIT_SHA": "1"}, cwd=place)
os.remove(os.path.join(place, "tools/chown"))
expect(os.listdir(out_folder) == ["exit_code"] and open(os.path.join(out_folder, "exit_code")).read() == "3\n", f"GitLab: begins with another job's {os.listdir(out_folder)}")
os.symlink(repository, os.path.join(place, "trusted"))
for what, script in [(what, leaves[what]) for what in few]:
    shutil.rmtree(out_folder, ignore_errors=True)
    folder = left_by(script)
    fake("tools/setpriv", f'[ -e {out_folder}/evidence ] || echo "$@" >{place}/ended\n')  # as another user: nobody is killed here
    os.makedirs(ledger, exist_ok=True)
    with open(os.path.join(ledger, "kept.toml"), "w") as file:
        file.write("kept\n")
    ended = run("bash", "-e", "-c", "\n".join(after), env={**os.environ, **limits, "PATH": tools, "STEPGATE_LEDGER": ledger, "CI_COMMIT_SHA": "1"}, cwd=place, timeout=20)
    is_data(out_folder, f"GitLab: {what}")
    expect(os.path.exists(os.path.join(place, "ledger-1/kept.toml")), f"GitLab: {what}: the ledger is lost: {ended}")
    expect("kill -KILL -1" in open(os.path.join(place, "ended")).read(), f"GitLab: {what}: {ended}")
    os.remove(os.path.join(place, "ended"))
run("chmod", "-R", "u+rwX", place)

for text, architectures, complaint in [
        (good, ["80", "90"], ""), (good, ["80", "86"], "no code for sm_86"), ("", [], "no kernel at all"),
        (good + usage.format(86, 256, 0, 0), [], "sm_86: first takes REG 256"),
        (good + usage.format(86, 9, 49153, 0), [], "sm_86: first takes SHARED 49153"),
        (good + usage.format(86, 9, 0, 1000), [], "sm_86: second keeps 1000 bytes"),
        (good + usage.format(86, 9, 0, 0).split(" Function second")[0], [], "sm_86: no second")]:
    listing = os.path.join(place, "usage.txt")
    with open(listing, "w") as file:
        file.write(text)
    ended = run(sys.executable, os.path.join(repository, "ci/kernel_resources.py"), "--text", listing, *architectures)
    expect(ended.returncode == bool(complaint) and complaint in ended.stdout, f"kernel_resources: '{complaint}': {ended}")

# The power tests are due where a path that rates depend on has changed: beside origin/main, and on that branch itself since a day ago.
history = os.path.join(place, "history")
os.makedirs(history)
git = ["git", "-C", history, "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]


def commit(file, days_ago):
    path_of_file = os.path.join(history, file)
    os.makedirs(os.path.dirname(path_of_file), exist_ok=True)
    with open(path_of_file, "a") as changed:
        changed.write("changed\n")
    date = f"@{int(time.time()) - days_ago * 86400} +0000"
    run(*git, "add", "-A")
    run(*git, "commit", "-qm", file, env={**os.environ, "GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date})


def power_is_due():
    script = f". {repository}/ci/packages.sh; rates_may_have_changed"
    # A folder above the one with the history may be a checkout of its own.
    return run("bash", "-c", script, cwd=history, env={**os.environ, "GIT_CEILING_DIRECTORIES": place}).returncode == 0


expect(power_is_due(), "power tests: without a history they are due")
run(*git, "init", "-qb", "main")
commit("runner/base/stats/a.cpp", 3)
commit("docs/a.md", 0)
expect(not power_is_due(), "power tests: a page is changed and they are due")
run(*git, "update-ref", "refs/remotes/origin/main", "HEAD")
commit("runner/judge/b.cpp", 0)
expect(power_is_due(), "power tests: judge is changed on a branch and they are not due")
run(*git, "update-ref", "refs/remotes/origin/main", "HEAD")
expect(power_is_due(), "power tests: judge is changed today on the branch itself and they are not due")
commit("docs/b.md", 0)
expect(not power_is_due(), "power tests: a branch that changes a page has them due")

# A build's log with and without a warning.
log = os.path.join(place, "build.log")
for said, refused in [("x.cpp:1:2: warning: unused [-Wunused]", True), ("x.cu(3): warning #177-D: never used", True),
                      ("y.h:4: warning: absent [-Wmaybe-uninitialized]", False), ("Linking", False)]:
    with open(log, "w") as file:
        file.write(said + "\n")
    ended = run("bash", "-c", f"set -euo pipefail; . ci/packages.sh; refuse_warnings {log}", cwd=repository)
    expect(ended.returncode == refused and (said in ended.stderr) == refused, f"refuse_warnings: {said}: {ended}")

# The answer to a pull request, with a gh that keeps what it was asked for.
answers = os.path.join(place, "answers")
os.mkdir(answers)
with open(os.path.join(answers, "gh"), "w") as file:
    file.write("""#!/bin/sh
printf '%s\\n' "$*" >>"$0.asked"
for word; do case $word in body=@*) cp "${word#body=@}" "$0.body" ;; esac; done
case "$*" in
  */commits/*/pulls*) cat "$0.number" ;;
  *comments*--jq* | *--paginate*) cat "$0.comments" ;;
esac
""")
os.chmod(os.path.join(answers, "gh"), 0o755)
hostile = "holds\n~~~~\n# free text @somebody [a](b)\n::error::no\n" + 70000 * "x"
summary = os.path.join(answers, "summary.md")


def answer(code, number, comments, *of_summary):
    for name, text in [("asked", ""), ("body", ""), ("number", number), ("comments", comments)]:
        with open(os.path.join(answers, "gh." + name), "w") as file:
            file.write(text)
    ended = run("ci/jobs/answer", code, "0123abc", "https://example.org/1", *of_summary, cwd=repository,
                env={**os.environ, "PATH": answers + ":" + os.environ["PATH"], "GITHUB_REPOSITORY": "o/r"})
    expect(ended.returncode == 0, f"jobs/answer: {ended}")
    return [open(os.path.join(answers, "gh." + name)).read() for name in ["asked", "body"]]


with open(summary, "w") as file:
    file.write(hostile)
asked, body = answer("1", "17\n", "", summary)
expect("statuses/0123abc -f state=failure" in asked and "issues/17/comments -F body=@" in asked and "PATCH" not in asked,
       f"jobs/answer: a first comment: {asked}")
expect(body.count("~~~~") == 2 and body.endswith("\n~~~~\n") and len(body) < 61000 and "blocked: fails" in body,
       "jobs/answer: the summary leaves its fence")
asked, body = answer("0", "17\n", "5\n8\n", summary)
expect("-X PATCH repos/o/r/issues/comments/8 " in asked and "state=success" in asked, f"jobs/answer: a second comment: {asked}")
asked, body = answer("", "", "", summary)
expect("state=error" in asked and "comments" not in asked and body == "", f"jobs/answer: no pull request: {asked}")
os.symlink("/etc/passwd", os.path.join(answers, "link"))
asked, body = answer("4", "17\n", "", os.path.join(answers, "link"))
expect("root:" not in body and "not gated" in body, "jobs/answer: follows a link of the gate's folder")

# The same on GitLab, with a curl that keeps what it was asked for.
curl = os.path.join(answers, "curl")
with open(curl, "w") as file:
    file.write("""#!/bin/sh
printf '%s\\n' "$*" >>"$0.asked"
for word; do case $word in
  body@*) cp "${word#body@}" "$0.body" ;;
  /dev/fd/*) cat "$word" >>"$0.token" ;;
  */user) echo '{"id": 3}' ;;
  */notes?*page=1) cat "$0.notes" ;;
  */notes?*page=*) echo '[]' ;;
esac; done
""")
os.chmod(curl, 0o755)
gitlab = {"GITLAB_CI": "true", "CI_API_V4_URL": "https://gitlab/api/v4", "CI_MERGE_REQUEST_PROJECT_ID": "7", "CI_MERGE_REQUEST_IID": "9"}


def note(code, notes, *of_summary, token="secret"):
    for name, text in [("asked", ""), ("body", ""), ("token", ""), ("notes", json.dumps(notes))]:
        with open(f"{curl}.{name}", "w") as file:
            file.write(text)
    ended = run("ci/jobs/answer", code, "0123abc", "https://example.org/1", *of_summary, cwd=repository,
                env={**os.environ, **gitlab, "PATH": answers + ":" + os.environ["PATH"], "STEPGATE_TOKEN": token})
    return [ended] + [open(f"{curl}.{name}").read() for name in ["asked", "body", "token"]]


marker = "<!-- stepgate/gate -->"
others = [{"id": 4, "author": {"id": 3}, "body": "ours, of something else"}, {"id": 5, "author": {"id": 8}, "body": marker + " of somebody"}]
ended, asked, body, token = note("1", others, summary)
notes = "https://gitlab/api/v4/projects/7/merge_requests/9/notes"
expect(ended.returncode == 0 and asked.splitlines()[-1].endswith(" " + notes) and "PUT" not in asked, f"jobs/answer: a first note: {ended} {asked}")
expect("secret" not in asked and "PRIVATE-TOKEN: secret" in token, f"jobs/answer: the token is an argument: {asked}")
expect(body.count("~~~~") == 2 and body.endswith("\n~~~~\n") and len(body) < 61000 and "blocked: fails" in body,
       "jobs/answer: the summary leaves its fence in a note")
full = others + [{"id": 6, "author": {"id": 3}, "body": marker + "old"}] + 97 * others[:1]
ended, asked, body, token = note("0", full)
expect("-X PUT --data-urlencode body@" in asked and asked.endswith(f"{notes}/6\n") and "page=2" in asked and "passes" in body,
       f"jobs/answer: a second note: {ended} {asked}")
ended, asked, body, token = note("0", [], token="")
expect(ended.returncode == 2 and "no STEPGATE_TOKEN" in ended.stderr and asked == "", f"jobs/answer: no token: {ended} {asked}")
with open(curl, "w") as file:
    file.write("#!/bin/sh\necho '{\"message\": \"403 Forbidden\"}'\nexit 22\n")
ended = note("0", [])[0]
expect(ended.returncode != 0, f"jobs/answer: GitLab refuses, and nobody hears of it: {ended}")

# Folders of scenarios, by the GPUs that a machine says it has.
os.mkdir(os.path.join(place, "smi"))
smi = os.path.join(place, "smi/nvidia-smi")
for said, folders in [("exit 9", ["scenarios"]), ("echo NVIDIA L4", ["scenarios"]),
                      ("echo NVIDIA H200", ["scenarios", "scenarios/stored"]),
                      ("printf 'NVIDIA L4\\nNVIDIA L4\\n'", ["scenarios", "scenarios/ranks"])]:
    with open(smi, "w") as file:
        file.write(f"#!/bin/sh\n{said}\n")
    os.chmod(smi, 0o755)
    path = os.path.dirname(smi) + ":" + os.environ["PATH"]
    ended = run("ci/jobs/scenario_folders", ".", cwd=repository, env={**os.environ, "PATH": path})
    expect(ended.stdout.split() == folders, f"scenario_folders: {said}: {ended}")
shutil.rmtree(place)

print("\n".join(failures))
sys.exit(1 if failures else 0)
