# SPDX-License-Identifier: MIT
"""`python3 -m stepgate export` from outside: what it reads and refuses, and google/benchmark's script on what it writes of real runs."""
import csv
import io
import json
import os
import struct
import sys
import unittest

from made_up import InAFolder, run_of, run_of_several, scenario_line, without_rounds
from stepgate.lines import RUN_SCHEMA, Refused, as_described
from stepgate.runs import read_run

COMPARE = "/usr/share/benchmark/compare.py"
PYTHON = "/usr/bin/python3"  # the one for which the packages install scipy
HOLDING = """claim = "half the kernels take half the time"
model = { kind = "spin", kernels = 20 }
[variant.baseline]
[variant.fix]
model.kernels = 10
[expect]
line = "fix.samples_per_s >= 1.5 * baseline.samples_per_s"
"""


class Export(InAFolder):
    def export(self, file, name="csv", *more):
        return self.package("export", "--format", name, file, *more)

    def test_writes_the_scenarios_of_a_run_and_says_which_it_leaves_out(self):
        self.write("run.json", *run_of_several(scenario_line("first"), scenario_line("undecided", outcome="undecided"),
                                               without_rounds("skipped", outcome="skipped", skipped_because="needs 2 GPUs"),
                                               without_rounds("by_plan", device=None), without_rounds("lost", failed="cudaError 700")))
        finished = self.export("run.json")
        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertEqual({row[1] for row in csv.reader(io.StringIO(finished.stdout))}, {"scenario", "first", "undecided"})
        for words in ("'skipped' was skipped: needs 2 GPUs;", "'by_plan' was decided by its plans alone;", "'lost' failed: cudaError 700;"):
            self.assertIn(words, finished.stderr)
        self.assertEqual(finished.stderr.count("\n"), 3)

    def test_refuses_a_run_without_samples(self):
        self.write("run.json", without_rounds("skipped", outcome="skipped", skipped_because="needs 2 GPUs"))
        for name in ("csv", "csv-steps", "google-benchmark", "nvbench"):
            self.expect_refused(self.export("run.json", name, "-o", "out"),
                                "run.json: no scenario has samples: 'skipped' was skipped: needs 2 GPUs; run it where ")
            self.assertFalse(os.path.exists(self.path("out")))
        self.write("gate.json", without_rounds("a"))
        self.expect_refused(self.export("gate.json"), "'a' has no rounds in the file; ", "without STEPGATE_JSON_ROUNDS=none")

    def test_refuses_what_another_program_wrote(self):
        for schema in (RUN_SCHEMA + 1, "stepgate.history/2", None, True):
            self.write("run.json", scenario_line(), scenario_line(schema=schema))
            self.expect_refused(self.export("run.json"), f"run.json:2: has schema {json.dumps(schema)}, and this package reads {RUN_SCHEMA}; take ")
        self.write("run.json", "[1]")
        self.expect_refused(self.export("run.json"), "run.json:1: has schema null")

    def test_refuses_a_run_that_did_not_end(self):
        text = "".join(json.dumps(line) + "\n" for line in run_of_several(scenario_line("first"), scenario_line("second")))
        second = text.index("\n") + 1
        for end in [*range(1, second - 1, 499), *range(second + 1, len(text) - 1, 499)]:  # within a line
            with open(self.path("run.json"), "w", encoding="utf-8") as file:
                file.write(text[:end])
            with self.assertRaisesRegex(Refused, r"run\.json:[123]: is not JSON \(.*; write it again with `stepgate run --json FILE`"):
                read_run(self.path("run.json"))
        self.expect_refused(self.export("run.json"), "run.json:3: is not JSON (")
        first, second, suite = run_of_several(scenario_line("first"), scenario_line("second"))
        for lines, count, of_suite in (((first,), 1, "no"), ((first, suite), 1, "a"), ((first, second), 2, "no"), ((suite,), 0, "a"),
                                       ((first, second, suite) * 2, 4, "a"), ((suite, first, second), 2, "a")):
            self.write("run.json", *lines)
            self.expect_refused(self.export("run.json"), f"run.json: has {count} of the 2 scenarios of its run and {of_suite} line of the suite, ")
        self.write("run.json")
        self.expect_refused(self.export("run.json"), "run.json: is empty; ")

    def test_takes_a_run_of_an_older_program_for_whole_where_the_line_of_the_suite_says_so(self):
        lines = [{**line, "run": {}} for line in run_of_several(scenario_line("first"), scenario_line("second"))]
        self.write("run.json", *lines)
        self.assertEqual(self.export("run.json").returncode, 0)
        for cut in (1, 2):
            self.write("run.json", *lines[:cut])
            self.expect_refused(self.export("run.json"), "run.json: does not say how many scenarios its run has, so it may have been cut off; ")

    def test_refuses_several_runs_in_one_file(self):
        self.write("run.json", scenario_line("first"), scenario_line("first", run=run_of(1, seed="0000000000000002")))
        self.expect_refused(self.export("run.json"), "run.json:2: is of another run than the line before; give each run a file of its own")

    def test_refuses_lines_that_were_changed(self):
        def changed(where, key, value=None):
            line = scenario_line()
            where(line)[key] = value
            if value is None:
                del where(line)[key]
            return line

        def whole(line):
            return line

        def first(line):
            return line["measurement"]["rounds"][0][0]

        for line, words in ((changed(first, "variant"), "has no 'variant'"),
                            (changed(first, "variant", "fux"), "has a wrong value ('fux' is not in list)"),
                            (changed(whole, "measurement"), "has no 'measurement'"),
                            (changed(whole, "measurement", []), "has a wrong value ("),
                            (changed(whole, "run"), "has no 'run'")):
            self.write("run.json", line)
            self.expect_refused(self.export("run.json"), f"run.json:1: {words}", "; it was changed since stepgate wrote it, so run stepgate again")
        no_steps = scenario_line()
        for segments in no_steps["measurement"]["rounds"]:
            segments[:] = [{**segment, "steps": 0, "step_times_ns": []} for segment in segments]
        self.write("run.json", no_steps)
        for name in ("google-benchmark", "nvbench"):
            self.expect_refused(self.export("run.json", name, "-o", "out"), "run.json: has a wrong value (division by zero)")

    def test_refuses_values_that_cannot_be_read_or_written(self):
        deep = "[" * 100_000 + "]" * 100_000
        text = json.dumps(scenario_line())
        elapsed = text[text.index('"elapsed_ns"'):text.index(', "host_busy_ns"')]

        def planted(old, new):
            self.assertIn(old, text)
            return text.replace(old, new)

        unread = [planted(elapsed, f'"elapsed_ns": {number}') for number in ("1e999", "NaN", "9" * 9999)]
        for line in (deep, planted('"made up"', deep), *unread):
            self.write("run.json", line)
            self.expect_refused(self.export("run.json"), "run.json:1: is not JSON (")
        self.write("run.json", planted(f'{{"schema": {RUN_SCHEMA}', '{"schema": [[2]]'))
        self.expect_refused(self.export("run.json"), "run.json:1: has schema of another kind")
        for name, line in (("google-benchmark", planted(elapsed, '"elapsed_ns": ' + "9" * 400)),
                           ("google-benchmark", planted('"batch_size": 64', '"batch_size": 1e308')),
                           ("nvbench", planted('"step_times_ns": [', '"step_times_ns": [1e300, ')),
                           ("nvbench", planted('"sm_clock_hz": 2000000000.0', '"sm_clock_hz": "2"')), ("csv", planted("made_up", "\\ud800"))):
            self.write("run.json", line)
            self.expect_refused(self.export("run.json", name, "-o", "out"), "run.json: has a wrong value (", "; it was changed since stepgate wrote it")
        self.assertEqual(os.listdir(self.folder), ["run.json"])

    def test_refuses_every_kind_of_wrong_value(self):
        for error in (OverflowError("large"), RecursionError("deep"), struct.error("no float"), UnicodeEncodeError("utf-8", "x", 0, 1, "no")):
            with self.assertRaisesRegex(Refused, "^here: has a wrong value "), as_described("here"):
                raise error

    def test_refuses_standard_output_and_input_that_cannot_be_used(self):
        self.write("run.json", scenario_line())
        for redirected, words in (("run.json >/dev/full", "standard output: cannot be written: No space left on device; "),
                                  ("run.json >&-", "standard output: cannot be written: Bad file descriptor; "),
                                  ("- <&-", "-: cannot be read: Bad file descriptor; ")):
            self.expect_refused(self.started("sh", "-c", f'"$0" -m stepgate export --format csv {redirected}', sys.executable), words)
        before = self.read("run.json")
        self.expect_refused(self.started("sh", "-c", '"$0" -m stepgate export --format csv - -o run.json <run.json', sys.executable),
                            "-o run.json would be written over what is read; ")
        self.assertEqual(self.read("run.json"), before)

    def test_writes_no_file_beside_one_that_it_refuses(self):
        self.write("run.json", scenario_line())
        os.mkdir(self.path("folder"))
        self.expect_refused(self.export("run.json", "nvbench", "-o", "run.json"), "-o run.json would be written over what is read; ")
        for output in ("folder", "folder/", "new/", "", "."):
            self.expect_refused(self.export("run.json", "nvbench", "-o", output), "cannot be written: it is no name of a file; name a file")
        self.assertEqual(sorted(os.listdir(self.folder)), ["folder", "run.json"])
        self.assertEqual(os.listdir(self.path("folder")), [])

    def test_refuses_files_that_it_cannot_read_or_write(self):
        self.write("run.json", scenario_line())
        self.expect_refused(self.export("rum.json"), "rum.json: cannot be read: No such file or directory; name a file that `stepgate run ")
        self.expect_refused(self.export("run.json", "csv", "-o", "run.json/x"), "run.json/x: cannot be written: ")
        before = self.read("run.json")
        os.link(self.path("run.json"), self.path("linked.json"))
        self.expect_refused(self.export("run.json", "csv", "-o", "linked.json"), "-o linked.json would be written over what is read; ")
        self.assertEqual(self.read("run.json"), before)
        self.expect_refused(self.export("run.json", "nvbench"), "--format nvbench writes several files, and standard output is not that; ")
        unknown = self.export("run.json", "nvbnch")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("invalid choice: 'nvbnch' (choose from ", unknown.stderr)

    def test_writes_every_format_and_the_files_beside_it(self):
        self.write("run.json", scenario_line())
        for name, files in (("nvbench", ("out/n.json", "out/n.json-bin/0.bin", "out/n.json-freqs-bin/1.bin")), ("csv", ("s.csv",)),
                            ("csv-steps", ("t.csv",)), ("google-benchmark", ("b.json",))):
            finished = self.export("run.json", name, "-o", files[0])
            self.assertEqual((finished.returncode, finished.stdout, finished.stderr), (0, "", ""))
            for file in files:
                self.assertGreater(os.path.getsize(self.path(file)), 0, file)

    def test_reads_standard_input(self):
        self.write("run.json", scenario_line())
        through = self.started("sh", "-c", 'cat run.json | "$0" -m stepgate export --format csv -', PYTHON)
        self.assertEqual(through.returncode, 0, through.stderr)
        self.assertEqual(through.stdout, self.export("run.json").stdout)


class OfTheProgram(InAFolder):
    """Runs of the program that was built, in the hands of google/benchmark's unmodified script."""

    def setUp(self):
        super().setUp()
        self.write("holding.toml", HOLDING)

    def run_and_export(self, file, seed, name="google-benchmark"):
        run = self.stepgate("run", "holding.toml", "--device", "simulated:round-numbers", "--seed", seed, "--json", "run.json")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        exported = self.package("export", "--format", name, "run.json", "-o", file)
        self.assertEqual(exported.returncode, 0, exported.stderr)

    def compare(self, *words):
        if not os.path.exists(COMPARE):  # ci/test installs what is missing
            self.skipTest("libbenchmark-tools is not installed")
        if self.started(PYTHON, "-c", "import numpy, scipy.stats").returncode != 0:
            self.skipTest("python3-scipy is not installed")
        compared = self.started(PYTHON, COMPARE, "--no-color", *words)
        self.assertEqual(compared.returncode, 0, compared.stderr)
        return compared.stdout

    def test_lets_google_benchmark_compare_two_runs(self):
        self.run_and_export("before.json", "1")
        self.run_and_export("after.json", "2")
        told = self.compare("benchmarks", "before.json", "after.json")
        for words in ("holding/baseline ", "holding/fix ", "holding/baseline_pvalue", "holding/fix_pvalue", "U Test, Repetitions: "):
            self.assertIn(words, told)

    def test_lets_google_benchmark_compare_two_variants_of_one_run(self):
        self.run_and_export("run-1.json", "1")
        told = self.compare("filters", "run-1.json", "holding/baseline", "holding/fix")
        self.assertIn("[holding/baseline vs. holding/fix]", told)
        self.assertRegex(told, r"-0\.(49|50)")

    def test_refuses_each_beginning_of_a_run_of_two(self):
        self.write("another.toml", HOLDING)
        run = self.stepgate("run", "holding.toml", "another.toml", "--device", "simulated:round-numbers", "--seed", "1", "--json", "run.json")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        lines = self.read("run.json").splitlines()
        self.assertEqual([json.loads(line)["run"]["scenarios"] for line in lines], [2, 2, 2])
        self.assertEqual(len(read_run(self.path("run.json"))[0]), 2)
        for whole in (1, 2):
            self.write("cut.json", *lines[:whole])
            self.expect_refused(self.package("export", "--format", "csv", "cut.json"), f"cut.json: has {whole} of the 2 scenarios of its run")

    def test_names_a_simulation_in_every_format(self):
        for name in ("csv", "csv-steps", "google-benchmark", "nvbench"):
            self.run_and_export("out", "1", name)
            self.assertIn("simulated ", self.read("out"), name)


if __name__ == "__main__":
    unittest.main()
