# SPDX-License-Identifier: MIT
"""ci/test makes two builds that share the tests: together they must run all, and none twice.

    every_test_runs_test.py <checkout> <place>

Configures the checkout as ci/test does, without building it, and asks ctest which tests there are. Then with faults in ci/test that
must be found.
"""

import functools
import json
import pathlib
import re
import subprocess
import sys

CHECKOUT, PLACE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
OPTION = "STEPGATE_TESTS_OF"


@functools.cache
def tests_of(which):
    """The names of the tests of a build that is configured only."""
    build = PLACE / f"build.{which}"
    subprocess.run(["cmake", "-S", CHECKOUT, "-B", build, "-DSTEPGATE_CUDA=OFF", "-DSTEPGATE_TEST_HALVES=ON", f"-D{OPTION}={which}"],
                   check=True, capture_output=True)
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    return {test["name"] for test in json.loads(listed.stdout)["tests"]}


def faults_of(script):
    """What no build of a text of ci/test runs, and what two of them do."""
    builds = re.findall(OPTION + r"=(\w+)", script)
    run = [test for which in builds for test in tests_of(which)]
    return [f"no build of ci/test runs {test}" for test in sorted(tests_of("everything") - set(run))] + [
        f"two builds of ci/test run {test}" for test in sorted({test for test in run if run.count(test) > 1})]


def main():
    script = (CHECKOUT / "ci/test").read_text()
    faults = faults_of(script)
    for planted in ("rest=readers", "readers=rest", "readers=everything"):
        now, then = planted.split("=")
        text = script.replace(f"{OPTION}={now}", f"{OPTION}={then}")
        if not faults_of(text):
            faults.append(f"not found: {OPTION}={then} in the place of {now}")
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
