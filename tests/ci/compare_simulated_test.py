# SPDX-License-Identifier: MIT
# compare_simulated_test.py REPOSITORY STEPGATE FOLDER: ci/compare_simulated.py says how far a simulated run is from a measured
# one, and sees each of the faults planted here. The measured run is a simulated one whose file was changed to say otherwise.
import json
import os
import shutil
import subprocess
import sys

repository, stepgate, place = sys.argv[1:]
shutil.rmtree(place, ignore_errors=True)
os.makedirs(place)
failures = []


def expect(what, finished, code, *words):
    text = finished.stdout + finished.stderr
    missing = [word for word in words if word not in text]
    if finished.returncode != code or missing:
        failures.append(f"{what}: ends with {finished.returncode} instead of {code}, lacks {missing}:\n{text}")


def compare(measured, simulated, *options):
    return subprocess.run([sys.executable, os.path.join(repository, "ci/compare_simulated.py"), *options, measured, simulated],
                          capture_output=True, text=True, cwd=place)


scenario = os.path.join(repository, "scenarios/ranks/straggler_rank.toml")
run = subprocess.run([stepgate, "--baselines", os.path.join(repository, "baselines"), "run", scenario, "--device", "simulated", "--seed", "1",
                      "--json", "simulated.json"], capture_output=True, text=True, cwd=place)
if run.returncode != 0:
    sys.exit(f"the run ended with {run.returncode}:\n{run.stdout}{run.stderr}")
with open(os.path.join(place, "simulated.json"), encoding="utf-8") as file:
    simulated = [json.loads(line) for line in file]


def measured(name, change=lambda report: None, kind="cuda"):
    reports = json.loads(json.dumps(simulated))
    for report in reports:
        if "device" in report:
            report["device"]["kind"] = kind
            change(report)
    with open(os.path.join(place, name), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(report) + "\n" for report in reports)
    return name


def times(factor):
    def change(report):
        report["variants"][1]["step_seconds_mean"] *= factor
    return change


expect("the same times", compare(measured("same.json"), "simulated.json"), 0, "straggler_rank.baseline", "+0.0 %", "2 of 2 steps within 8 %")
expect("7 % too fast", compare(measured("near.json", times(1.07)), "simulated.json"), 0, "-6.5 %")
expect("10 % too fast", compare(measured("far.json", times(1.1)), "simulated.json"), 1, "-9.1 %", "1 of 2 steps", "not straggler_rank.fix")
expect("10 % too slow", compare(measured("slow.json", times(0.9)), "simulated.json"), 1, "+11.1 %")
expect("another limit", compare("near.json", "simulated.json", "--within", "5"), 1)
expect("one that was skipped", compare(measured("skipped.json", lambda report: report.update(variants=[], fingerprint="0" * 16)), "simulated.json"),
       2, "no variant was run in both")
expect("the wrong order", compare("simulated.json", "same.json"), 2, "comes first")
expect("two simulated runs", compare(measured("both.json", kind="simulated"), "simulated.json"), 2, "is not measured")
expect("other scenarios", compare(measured("other.json", lambda report: report.update(fingerprint="0")), "simulated.json"), 2, "another scenario")
expect("nothing in common", compare(measured("none.json", lambda report: report.update(scenario="x")), "simulated.json"), 2, "no variant")
expect("no such file", compare("nowhere.json", "simulated.json"), 2, "is no file")
expect("nothing traced", compare(measured("untraced.json", lambda report: report.update(mechanism=None)), "simulated.json"), 0, "-")
sys.exit("\n".join(failures) or 0)
