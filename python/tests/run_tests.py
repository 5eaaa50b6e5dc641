# SPDX-License-Identifier: MIT
"""run_tests.py [FOLDER]: runs all tests of the folder, by default this one. Exit 1 where one fails or there is none, and 77 where one is
skipped, because what it needs is not installed, which CI does not excuse. Distributions have all that the tests need."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def exit_code(result, ci):
    if result.testsRun == 0 or not result.wasSuccessful():
        return 1
    return 0 if not result.skipped else 77 if ci in ("", "false", "0") else 1


def main(folder=HERE):
    sys.path.insert(0, os.path.dirname(HERE))  # the package
    result = unittest.TextTestRunner().run(unittest.defaultTestLoader.discover(folder))
    for test, why in result.skipped:
        print(f"{test} is skipped: {why}", file=sys.stderr)
    return exit_code(result, os.environ.get("CI", ""))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
