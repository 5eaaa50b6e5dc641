# SPDX-License-Identifier: MIT
"""For tests: runs that are made up, and the package as a user calls it."""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

from stepgate.lines import RUN_SCHEMA

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REPOSITORY = os.path.dirname(PACKAGE)
PROGRAM = os.environ.get("STEPGATE_PROGRAM")  # ctest sets it
STEP_NS = {"baseline": 1_000_000, "fix": 800_000}
CLOCKS = {"baseline": 2e9, "fix": 1.5e9}
ROUNDS = 6


def segment(variant, draw, clocks):
    times = [int(STEP_NS[variant] * (1 + draw.gauss(0, 0.01))) for _ in range(10)]
    return {"variant": variant, "first_step": 20, "steps": len(times), "elapsed_ns": sum(times), "host_busy_ns": sum(times) // 4,
            "sm_clock_hz": CLOCKS[variant] if clocks else None, "step_times_ns": times}


def run_of(scenarios, seed="0000000000000001"):
    return {"seed": seed, "scenarios": scenarios}


def scenario_line(name="made_up", clocks=True, **changes):
    """A scenario with 6 rounds: a segment of each variant, then one in the mirrored order."""
    draw = random.Random(4)
    orders = [["baseline", "fix", "fix", "baseline"], ["fix", "baseline", "baseline", "fix"]]
    rounds = [[segment(variant, draw, clocks) for variant in orders[number % 2]] for number in range(ROUNDS)]
    return {"schema": RUN_SCHEMA, "run": run_of(1), "scenario": name, "outcome": "passes", "skipped_because": "", "failed": None,
            "device": {"kind": "simulated", "name": "made up", "driver": "1.2"},
            "measurement": {"interleaved": False, "variants": [{"name": name, "batch_size": 64} for name in STEP_NS], "rounds": rounds}, **changes}


def without_rounds(name, **changes):
    line = scenario_line(name, **changes)
    line["measurement"]["rounds"] = []
    return line


def run_of_several(*lines):
    """The lines as those of one run, and that of the suite behind them."""
    return [{**line, "run": run_of(len(lines))} for line in (*lines, {"schema": RUN_SCHEMA, "suite": {}})]


class InAFolder(unittest.TestCase):
    """Each test has a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, *lines):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.writelines((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        return name

    def read(self, name, mode="r"):
        with open(self.path(name), mode) as file:
            return file.read()

    def started(self, *words):
        return subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "PYTHONPATH": PACKAGE})

    def package(self, *words):
        return self.started(sys.executable, "-m", "stepgate", *words)

    def stepgate(self, *words):
        if PROGRAM is None:
            self.skipTest("STEPGATE_PROGRAM does not name the program")
        return self.started(PROGRAM, "--baselines", os.path.join(REPOSITORY, "tests/baselines"), *words)

    def expect_refused(self, finished, *words):
        self.assertEqual(finished.returncode, 2, finished)
        self.assertEqual(finished.stdout, "")
        self.assertEqual(finished.stderr.count("\n"), 1, finished.stderr)
        for word in words:
            self.assertIn(word, finished.stderr)
