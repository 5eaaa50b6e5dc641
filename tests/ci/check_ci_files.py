# SPDX-License-Identifier: MIT
# check_ci_files.py FOLDER [--without-shellcheck]: what the files of CI systems below FOLDER/ci must have in common, whatever the systems' own
# schemas say: every exit code has a meaning, a stranger's change decides nothing about how it is judged, what runs it has
# nothing to steal, a GPU has one job at a time, and reports are kept when a job fails. Prints what is wrong.
import os
import re
import subprocess
import sys
import yaml

folder = sys.argv[1]
jobs = ["gate", "nightly", "refresh", "weekly"]
wrong = []


def expect(holds, what):
    if not holds:
        wrong.append(what)


def read(file):
    try:
        return open(os.path.join(folder, "ci", file)).read()
    except OSError as error:
        wrong.append(str(error))
        return ""


def parsed(text):
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # ten times as fast


def handles_codes(text, file):
    """Each code of docs/ci.md has a branch, and so has any other."""
    for code in ["0", "1", "77", "4", "3", "2"]:
        expect(re.search(rf"^\s*(case {code}:|{code}\))", text, re.M), f"{file}: no branch for exit code {code}")
    expect(re.search(r"^\s*(default:|\*\))", text, re.M), f"{file}: no branch for any other exit code")


def names_what_there_is(text, file):
    for job in set(re.findall(r"ci/jobs/(\w+)", text)):
        path = os.path.join(folder, "ci/jobs", job)
        expect(os.access(path, os.X_OK), f"{file}: there is no program ci/jobs/{job}")


def judged_by_base(script, base, file):
    """Of the change only a program: whatever decides starts with base's folder."""
    for line in script.splitlines():
        for before in re.findall(r"(\S*)ci/jobs/", line):
            expect(before.lstrip("'\"(").startswith(base + "/"), f"{file}: the change's own script runs: {line.strip()}")


def built_apart(text, file):
    """The change's CMake files can write to a copy of its prefix alone."""
    for line in text.splitlines():
        if re.search(r"ci/jobs/build change", line):
            expect("trusted/ci/jobs/confined change/prefix trusted/ci/jobs/build" in line, f"{file}: the change is built where it can reach base: {line.strip()}")


def downloads_nowhere_else(script, file):
    """The agent follows links, which the change's checkout may have."""
    removed = re.findall(r"^\s*rm -rf ([\w ]+)", script.split("artifact download")[0], re.M)
    for folder in re.findall(r'artifact download "(\w+)/', script):
        expect(any(folder in words.split() for words in removed), f"{file}: the checkout may have a link at {folder}, where something is downloaded")


def shell_is_clean(script, file):
    if "--without-shellcheck" in sys.argv:
        return
    script = re.sub(r"\$\{\{.*?\}\}", "expression", script)
    found = subprocess.run(["shellcheck", "-S", "warning", "-s", "bash", "-"], input=script, text=True, capture_output=True)
    expect(found.returncode == 0, f"{file}: shellcheck:\n{found.stdout}{found.stderr}")


# Files for repositories without sources of stepgate, and what fetches a release for each.
OWN = {"github/own.yml": "jobs/fetch", "github/kernels.yml": "jobs/fetch", "buildkite/own.yml": "jobs/fetch", "gitlab/own.yml": "gitlab/own.yml", "jenkins/Jenkinsfile.own": "jenkins/Jenkinsfile.own"}
for file, fetching in OWN.items():
    text = read(fetching)
    checked, unpacked = text.find("sha256sum"), text.find("tar -x")
    expect(-1 < checked < unpacked and "-c -" in text[checked:unpacked], f"{fetching}: a release is unpacked that nobody checked")
for file in ["github/action/action.yml", "gitlab/own.yml", "jenkins/Jenkinsfile.own", "buildkite/stepgate-buildkite-plugin/hooks/command"]:
    text = read(file)
    names_what_there_is(text, file)
    expect(re.search(r'share/stepgate/ci/jobs/own" ', text), f"{file}: nothing starts ci/jobs/own")
    expect("STEPGATE_LEDGER" in text, f"{file}: no ledger of earlier runs is kept")
for step in (parsed(read("github/action/action.yml")) or {}).get("runs", {}).get("steps", []):
    expect("${{" not in step["run"], f"github/action/action.yml: text of others becomes a script: {step['run']}")
    shell_is_clean(step["run"], "github/action/action.yml")
shell_is_clean(read("buildkite/stepgate-buildkite-plugin/hooks/command"), "buildkite/stepgate-buildkite-plugin/hooks/command")

for name in sorted(os.listdir(os.path.join(folder, "ci/jobs"))):
    shell_is_clean(read("jobs/" + name), "jobs/" + name)
for name in ["gate", "nightly"]:
    expect('--report "$out/report.html"' in read("jobs/" + name), f"jobs/{name}: no page for people")

for file in ["github/nightly.yml", "gitlab/stepgate.yml", "buildkite/nightly.yml", "jenkins/Jenkinsfile.nightly"]:
    expect(re.search(r"\bci/jobs/sanitizers \S", read(file)), f"{file}: nothing starts ci/jobs/sanitizers")
kept = {"github/gate.yml": ["path: ${{ runner.temp }}/ledger\n"] * 2, "buildkite/gate.yml": ["stepgate-ledger/$$BUILDKITE_PULL_REQUEST"],
        "gitlab/stepgate.yml": ["paths: [ledger-$CI_COMMIT_SHA]\n", 'take "$STEPGATE_LEDGER" "ledger-$CI_COMMIT_SHA"', "paths: [ledger-nightly]\n", "$STEPGATE_LEDGER/.\" ledger-nightly"],
        "jenkins/Jenkinsfile.gate": ["stepgate-ledger/$CHANGE_ID"]}
for file, words in kept.items():
    for one in words:
        expect(read(file).count(one) >= words.count(one), f"{file}: no ledger of earlier runs is kept: {one}")
# A ledger in a checkout is one that a change may bring along.
outside = r'"?(\$?\$HOME/|\$\{\{ runner\.temp \}\}/|/)'
for name in ["gate", "nightly"]:
    text = read("jobs/" + name)
    expect('--ledger "$ledger"' in text and 'ledger_outside "$ledger" "$' in text, f"jobs/{name}: the ledger may lie in the checkout")
    for file in [f"github/{name}.yml", "gitlab/stepgate.yml", f"buildkite/{name}.yml", f"jenkins/Jenkinsfile.{name}"]:
        text = read(file)
        calls = re.findall(rf"ci/jobs/{name} (\S+(?: [^\s&|']+)*)", text)
        expect(calls, f"{file}: nothing starts ci/jobs/{name}")
        for call in calls:
            words = call.split()
            ledger = words[4 if name == "gate" else 3] if len(words) > (4 if name == "gate" else 3) else ""
            is_variable = re.fullmatch(r'"\$?\$STEPGATE_LEDGER"', ledger)
            expect(is_variable or re.match(outside, ledger), f"{file}: the ledger lies in the checkout: {call}")
        for value in re.findall(r"STEPGATE_LEDGER(?:=|: )(\S.*)", text):
            expect(re.match(outside, value), f"{file}: the ledger lies in the checkout: {value}")
expect("ci/kernel_resources.py" in read("jobs/nightly"), "jobs/nightly: nobody looks at what kernels take")

# GitHub
for name in ["build", "own", "kernels", "release"] + jobs:
    file = f"github/{name}.yml"
    text = read(file)
    names_what_there_is(text, file)
    workflow = parsed(text) or {}
    triggers = workflow.get(True) or {}  # YAML 1.1 reads `on` as true
    expect("pull_request_target" not in triggers, f"{file}: pull_request_target runs with secrets")
    untrusted = "pull_request" in triggers
    expect("permissions" in workflow and "write" not in str(workflow["permissions"]), f"{file}: a token that may write")
    expect("secrets." not in text, f"{file}: no job needs a secret")
    for key, job in (workflow.get("jobs") or {}).items():
        place = f"{file}, job {key}"
        expect("timeout-minutes" in job, f"{place}: no timeout")
        gpu = "gpu" in job["runs-on"]
        writes = "write" in str(job.get("permissions", ""))
        expect(name != "release" or not writes or "ci/jobs/" not in str(job) and "checkout" not in str(job), f"{place}: a token that writes where sources run")
        if untrusted:
            of_its_own = job.get("if") == "github.event.pull_request.head.repo.full_name == github.repository"
            expect("self-hosted" not in job["runs-on"] or name in ("own", "kernels") and of_its_own, f"{place}: whoever proposes a change runs on our machine")
            expect(not writes and "github.token" not in str(job), f"{place}: whoever proposes a change gets a token")
        if gpu:
            expect(not writes and "GH_TOKEN" not in str(job), f"{place}: a token that writes where programs run")
            expect("concurrency" in job or "concurrency" in workflow, f"{place}: no concurrency")
            kept = [s for s in job["steps"] if "upload-artifact" in s.get("uses", "")]
            expect(kept and all(s.get("if") == "always()" for s in kept), f"{place}: a failed job keeps no report")
            expect(any((s.get("with") or {}).get("path") == "out" for s in kept), f"{place}: report.html is not kept")
        for step in job["steps"]:
            if "actions/checkout" in step.get("uses", "") and writes and name == "gate":
                expect(step.get("with", {}).get("ref") == "${{ github.sha }}", f"{place}: a token that writes beside what others wrote")
            if "actions/checkout" in step.get("uses", "") and not writes:
                expect(step.get("with", {}).get("persist-credentials") is False, f"{place}: the token stays on disk")
            script = step.get("run", "")
            expect("${{" not in script, f"{place}: text of others becomes a script: {script}")
            shell_is_clean(script, place)
            if name == "gate":
                judged_by_base(script, "own", place)
                for line in script.splitlines():
                    expect("ci/jobs/confined" not in line or " exec " in line or line.endswith(" &"), f"{place}: a container hears of no end: {line}")
                if gpu and "head/bin/stepgate " in script:
                    expect("own/ci/jobs/confined out " in script, f"{place}: the change runs unconfined")
            if gpu and name == "gate" and "download-artifact" in step.get("uses", ""):
                expect(step["with"]["path"] == "downloaded" and "own/ci/jobs/take downloaded head" in text,
                       f"{place}: what the change's build left is more than files")
    if name not in ("build", "own", "kernels", "release"):
        answers = "own/ci/jobs/answer " in text
        handles_codes(read("jobs/answer") if answers else text, "jobs/answer" if answers else file)
        expect(name == "gate" or "schedule" in triggers, f"{file}: nothing starts it")
gate = parsed(read("github/gate.yml")) or {}
expect("workflow_run" in (gate.get(True) or {}), "github/gate.yml: the change brings its own gate")
checkouts = [s["with"] for s in ((gate.get("jobs") or {}).get("gate") or {}).get("steps", []) if "actions/checkout" in s.get("uses", "")]
refs = {"own": "${{ github.sha }}", "base": "${{ needs.who.outputs.base }}"}
expect({c.get("path"): c.get("ref") for c in checkouts} == refs, f"github/gate.yml: what is checked out is not the workflow's and base's own: {checkouts}")
expect("environment" in ((gate.get("jobs") or {}).get("gate") or {}), "github/gate.yml: nobody is asked about forks")

# GitLab
file = "gitlab/stepgate.yml"
text = read(file)
names_what_there_is(text, file)
handles_codes(text, file)
pipeline = parsed(text) or {}


def merged(job):
    if "extends" not in job:
        return job
    base = merged(pipeline[job["extends"]])
    both = {key: {**base[key], **value} for key, value in job.items() if isinstance(value, dict) and isinstance(base.get(key), dict)}
    return {**base, **job, **both}


def minutes(text):
    number, unit = re.fullmatch(r"(\d+)\s*(m|h)\w*", str(text)).groups()
    return int(number) * {"m": 1, "h": 60}[unit]


# Otherwise a script that takes too long leaves no time for after_script, artifacts and the cache.
for name, job in pipeline.items():
    job = merged(job) if isinstance(job, dict) and not name.startswith(".") else {}
    if (job.get("artifacts") or {}).get("when") == "always":
        given = [(job.get("variables") or {}).get(f"RUNNER_{part}_TIMEOUT") for part in ["SCRIPT", "AFTER_SCRIPT"]]
        expect("timeout" in job and None not in given and sum(map(minutes, given)) < minutes(job["timeout"]),
               f"{file}, {name}: no time is left when the script has used its own: {given} of {job.get('timeout')}")


def kept_and_alone(job, place):
    expect(job.get("tags") == ["gpu"] and "resource_group" in job, f"{place}: two jobs at once on a GPU")
    expect(job.get("allow_failure") == {"exit_codes": [77]}, f"{place}: only 77 may be orange")
    artifacts = job.get("artifacts") or {}
    expect(artifacts.get("when") == "always" and "junit" in artifacts.get("reports", {}), f"{place}: no report when it fails")
    expect(artifacts.get("paths") == ["out"], f"{place}: report.html is not kept")
    expect("timeout" in job, f"{place}: no timeout")


own = (parsed(read("gitlab/own.yml")) or {}).get(".stepgate") or {}
kept_and_alone(own, "gitlab/own.yml")
shell_is_clean("\n".join(own.get("script", [])), "gitlab/own.yml")
for name in jobs:
    job = merged(pipeline.get("stepgate-" + name) or {})
    place = f"{file}, stepgate-{name}"
    kept_and_alone(job, place)
    expect("after_script" in job, f"{place}: nobody says what the code means")
gate = pipeline.get("stepgate-gate") or {}
for name in ["stepgate-gate", "stepgate-build-base"]:
    for line in (pipeline.get(name) or {}).get("script", []):
        judged_by_base(line, "trusted", f"{file}, {name}")
expect(any("setpriv --reuid" in line and "env -i" in line for line in gate.get("script", [])),
       f"{file}, stepgate-gate: the change sees the job's token")
judged = [line for line in gate.get("script", []) if "ci/jobs/gate" in line]
expect(judged and all(line.endswith(' trusted left "$STEPGATE_LEDGER"') for line in judged), f"{file}, stepgate-gate: the change writes where reports are read")
after = "".join(merged(gate).get("after_script", []))
expect(-1 < after.find("kill -KILL -1") < after.find("trusted/ci/jobs/take left out"), f"{file}, stepgate-gate: what is taken may still change")
expect((gate.get("variables") or {}).get("GIT_STRATEGY") == "none", f"{file}: the change's files lie where it is judged")
expect((pipeline.get("stepgate-build-head") or {}).get("artifacts", {}).get("paths") == ["head"],
       f"{file}, stepgate-build-head: the change hands over more than a program")

answer = pipeline.get("stepgate-answer") or {}
script = "".join(answer.get("script", []))
expect((answer.get("variables") or {}).get("GIT_STRATEGY") == "none" and "head" not in script and "build-head" not in str(answer.get("needs")),
       f"{file}, stepgate-answer: a token that writes beside what the change left")
expect("trusted/ci/jobs/answer " in script and all(rule.get("when") == "always" for rule in answer.get("rules") or [{}]),
       f"{file}, stepgate-answer: nobody hears of a gate that fails")
expect((answer.get("environment") or {}).get("name") == "stepgate-answer", f"{file}, stepgate-answer: the token is every job's")

# Buildkite
for name in jobs + ["own"]:
    file = f"buildkite/{name}.yml"
    text = read(file)
    names_what_there_is(text, file)
    steps = (parsed(text) or {}).get("steps", [])
    on_gpu = [s for s in steps if (s.get("agents") or {}).get("queue") == "gpu"]
    expect(on_gpu, f"{file}: no step on a GPU")
    for step in on_gpu:
        expect(step.get("concurrency") == 1 and step.get("concurrency_group"), f"{file}: two jobs at once on a GPU")
        expect(step.get("soft_fail") == [{"exit_status": 77}], f"{file}: only 77 may be orange")
        expect(step.get("artifact_paths") == ["out/**/*"], f"{file}: report.html is not kept")
        expect(step.get("artifact_paths") and step.get("timeout_in_minutes"), f"{file}: no report or no timeout")
    for step in steps:
        command = step.get("command", "")
        command = command if isinstance(command, str) else "\n".join(command)
        shell_is_clean(command.replace("$$", "$"), file)
        if name == "gate":
            judged_by_base(command, "trusted", file)
            built_apart(command, file)
            downloads_nowhere_else(command, file)
expect("fork == true" in read("buildkite/gate.yml"), "buildkite/gate.yml: nobody is asked about forks")

# Jenkins
for name in jobs + ["own"]:
    file = f"jenkins/Jenkinsfile.{name}"
    text = read(file)
    names_what_there_is(text, file)
    handles_codes(text, file)
    for words in ["lock(resource: 'gpu')", "returnStatus: true", "timeout(", "junit testResults", "archiveArtifacts artifacts: 'out/**'"]:
        expect(words in text, f"{file}: no {words}")
    expect(text.count("{") == text.count("}") and text.count("(") == text.count(")"), f"{file}: unbalanced")
    if name == "gate":
        built_apart(text, file)
        judged_by_base("\n".join(re.findall(r"'([^'\n]*ci/jobs[^'\n]*)'", text)), "trusted", file)
        expect("skipDefaultCheckout()" in text, f"{file}: the change's files lie where it is judged")

print("\n".join(wrong))
sys.exit(1 if wrong else 0)
