# SPDX-License-Identifier: MIT
"""A test that is skipped is not taken for one that passed."""
import os
import sys
import unittest

from made_up import PACKAGE, InAFolder

PLANTED = """import unittest
class Planted(unittest.TestCase):
    def test_passes(self):
        pass
    def test_may_be_skipped(self):
        {}
"""


class RunTests(InAFolder):
    def run_with(self, ci):
        return self.started("env", f"CI={ci}", sys.executable, os.path.join(PACKAGE, "tests/run_tests.py"), self.folder)

    def test_tells_skipped_tests_from_those_that_pass_and_fail_and_ci_excuses_none(self):
        for body, elsewhere, in_ci in (("pass", 0, 0), ("self.skipTest('no reader')", 77, 1), ("self.fail()", 1, 1)):
            self.write("test_planted.py", PLANTED.format(body))
            for ci, code in (("", elsewhere), ("false", elsewhere), ("true", in_ci), ("1", in_ci)):
                finished = self.run_with(ci)
                self.assertEqual(finished.returncode, code, (body, ci, finished.stderr))
                self.assertEqual(") is skipped: no reader\n" in finished.stderr, "skip" in body, finished.stderr)

    def test_fails_where_there_are_no_tests(self):
        self.assertEqual(self.run_with("").returncode, 1)


if __name__ == "__main__":
    unittest.main()
