# SPDX-License-Identifier: MIT
"""ci/test makes two builds and leaves tests out of each that the other one runs: together they must run all.

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
OPTION = "STEPGATE_TESTS_ELSEWHERE"


@functools.cache
def tests_of(elsewhere, sanitizers=""):
    """The names of the tests of a build that is configured only."""
    build = PLACE / ("build." + re.sub("[;,]", "_", f"{elsewhere}.{sanitizers}"))
    options = [f"-D{OPTION}={elsewhere}", f"-DSTEPGATE_SANITIZE={sanitizers}"]
    subprocess.run(["cmake", "-S", CHECKOUT, "-B", build, "-DSTEPGATE_CUDA=OFF", "-DSTEPGATE_TEST_HALVES=ON", *options],
                   check=True, capture_output=True)
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    return {test["name"] for test in json.loads(listed.stdout)["tests"]}


def left_out(script):
    """What neither the sanitized build nor one as released runs, of a text of ci/test: a set for each way to be released."""
    builds = re.findall(r"configure_and_build (host-asan|cuda|host) all(.*?)\n(?!  *-D)", script, re.DOTALL)
    assert {name for name, _ in builds} == {"host-asan", "cuda", "host"}, builds
    elsewhere = {name: ";".join(re.findall(OPTION + r'="?([a-z;]*)', words)) for name, words in builds}
    sanitized = tests_of(elsewhere["host-asan"], "address,undefined")
    return {name: tests_of("") - sanitized - tests_of(elsewhere[name]) for name in ("cuda", "host")}


def main():
    script = (CHECKOUT / "ci/test").read_text()
    faults = [f"no build of ci/test with one as '{name}' runs {test}" for name, missing in left_out(script).items() for test in sorted(missing)]
    planted = {
        "the sanitized build leaves out what the other one does": script.replace(f'{OPTION}="programs;', f'{OPTION}="libraries;'),
        "the released build leaves out both": script.replace(f"{OPTION}=libraries", f'{OPTION}="libraries;programs"'),
        "both leave out numbers": script.replace(f"{OPTION}=libraries", f'{OPTION}="libraries;numbers"'),
    }
    for fault, text in planted.items():
        assert text != script, fault
        if not all(left_out(text).values()):
            faults.append(f"not found: {fault}")
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
