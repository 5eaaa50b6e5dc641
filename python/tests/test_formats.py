# SPDX-License-Identifier: MIT
"""Exports of a run that is made up, read back as the tools that they are for read them."""
import csv
import io
import json
import os
import statistics
import struct
import unittest

from made_up import ROUNDS, scenario_line
from stepgate import formats, runs


def measured(clocks=True, change=lambda line: None):
    line = scenario_line(clocks=clocks)
    change(line)
    return [runs.measured_of(line)]


def rows(files):
    (content,) = files.values()
    return list(csv.reader(io.StringIO(content.decode())))


class Csv(unittest.TestCase):
    def test_has_a_row_for_every_segment_in_the_order_of_the_run(self):
        all_rows = rows(formats.csv_segments(measured(), "s.csv"))
        self.assertEqual(len(all_rows), 1 + 4 * ROUNDS)
        second = scenario_line()["measurement"]["rounds"][0][1]
        row = dict(zip(all_rows[0], all_rows[2]))
        self.assertEqual((row["device"], row["scenario"], row["variant"], row["batch_size"]), ("simulated made up", "made_up", "fix", "64"))
        self.assertEqual((row["round"], row["place"]), ("0", "1"))
        self.assertEqual(row["elapsed_ns"], str(second["elapsed_ns"]))
        self.assertEqual({len(row) for row in all_rows}, {11})

    def test_has_a_row_for_every_single_step_which_names_a_simulation(self):
        all_rows = rows(formats.csv_steps(measured(), "t.csv"))
        self.assertEqual(len(all_rows), 1 + 4 * ROUNDS * 10)
        first = scenario_line()["measurement"]["rounds"][0][0]
        row = dict(zip(all_rows[0], all_rows[1]))
        self.assertEqual((row["step"], row["time_ns"]), (str(first["first_step"] + 1), str(first["step_times_ns"][0])))
        self.assertEqual({row[0] for row in all_rows[1:]}, {"simulated made up"})

    def test_numbers_no_steps_that_ran_by_turns(self):
        by_turns = measured(change=lambda line: line["measurement"].update(interleaved=True))
        self.assertEqual({row[5] for row in rows(formats.csv_steps(by_turns, "t.csv"))[1:]}, {""})

    def test_leaves_empty_what_is_not_known_and_quotes_names(self):
        text = formats.csv_segments(measured(clocks=False, change=lambda line: line["device"].update(name='a "GPU", sort of')), "s")["s"].decode()
        self.assertIn('\n"simulated a ""GPU"", sort of",made_up,', text)
        self.assertTrue(text.endswith(",\n"), "there is no clock")


class GoogleBenchmark(unittest.TestCase):
    def test_has_a_repetition_for_every_round_and_variant(self):
        root = json.loads(formats.google_benchmark(measured(), "b.json")["b.json"])
        self.assertEqual(len(root["benchmarks"]), 2 * ROUNDS)
        run = root["benchmarks"][ROUNDS + 2]  # of the second variant
        self.assertEqual((run["name"], run["repetition_index"], run["repetitions"], run["iterations"]), ("made_up/fix", 2, ROUNDS, 20))
        self.assertAlmostEqual(run["real_time"], 800_000, delta=20_000)
        self.assertAlmostEqual(run["cpu_time"] / run["real_time"], 0.25, places=3)
        self.assertAlmostEqual(run["items_per_second"] * run["real_time"], 64e9, delta=1)
        self.assertEqual(root["context"]["device"], "simulated made up")

    def test_names_a_device_that_measured_as_it_is(self):
        real = measured(change=lambda line: line["device"].update(kind="cuda"))
        self.assertEqual(json.loads(formats.google_benchmark(real, "b")["b"])["context"]["device"], "made up")


class Nvbench(unittest.TestCase):
    """As nvbench_compare.py reads it: a summary by its tag, and of its data the one of a name, which is of the type that it asks for."""

    def exported(self, *arguments, **changes):
        self.files = formats.nvbench(measured(*arguments, **changes), "out/n.json")
        self.root = json.loads(self.files["out/n.json"])
        return self.root["benchmarks"][0]["states"]

    def field(self, state, tag, name, kind):
        for data in (data for summary in state["summaries"] if summary["tag"] == tag for data in summary["data"] if data["name"] == name):
            self.assertEqual(data["type"], kind, tag)
            return data["value"]
        self.fail(f"there is no '{name}' of {tag}")

    def value(self, state, tag):
        return float(self.field(state, tag, "value", "float64"))

    def floats(self, state, tag):
        content = self.files[os.path.join("out", self.field(state, tag, "filename", "string"))]
        count = int(self.field(state, tag, "size", "int64"))
        return struct.unpack(f"<{count}f", content)

    def times(self, state):
        return self.floats(state, "nv/json/bin:nv/cold/sample_times")

    def test_has_what_the_readers_look_up(self):
        state = self.exported()[1]
        self.assertEqual(self.root["meta"]["version"]["json"]["string"], "1.0.0")
        self.assertEqual(self.root["devices"], [{"id": 0, "name": "simulated made up"}])
        bench = self.root["benchmarks"][0]
        self.assertEqual((bench["name"], bench["devices"], bench["axes"][0]["type"], len(bench["states"])), ("made_up", [0], "string", 2))
        self.assertEqual((state["name"], state["device"], state["is_skipped"]), ("Device=0 Variant=fix", 0, False))
        self.assertEqual((state["axis_values"][0]["name"], state["axis_values"][0]["value"]), (bench["axes"][0]["name"], "fix"))

    def test_has_samples_beside_it_that_agree_with_the_summaries(self):
        for state in self.exported():
            times = sorted(self.times(state))
            self.assertEqual(len(times), 2 * ROUNDS * 10)
            self.assertEqual(self.field(state, "nv/cold/sample_size", "value", "int64"), str(len(times)))
            of = {tag: self.value(state, "nv/cold/time/gpu/" + tag)
                  for tag in ("min", "max", "mean", "q1", "median", "q3", "iqr/absolute", "iqr/relative", "stdev/absolute", "stdev/relative")}
            self.assertAlmostEqual(of["mean"], statistics.fmean(times), delta=1e-9)
            self.assertAlmostEqual(of["stdev/absolute"], statistics.stdev(times), delta=1e-9)
            self.assertAlmostEqual(of["stdev/relative"], of["stdev/absolute"] / of["mean"])
            self.assertAlmostEqual(of["min"], times[0], delta=1e-9)
            self.assertAlmostEqual(of["max"], times[-1], delta=1e-9)
            # The readers refuse an interval in another order.
            self.assertEqual(sorted((of["min"], of["q1"], of["median"], of["q3"])), [of["min"], of["q1"], of["median"], of["q3"]])
            self.assertAlmostEqual(of["q1"], times[(25 * 119 + 50) // 100], delta=1e-9)
            self.assertAlmostEqual(of["iqr/absolute"], of["q3"] - of["q1"])
            self.assertAlmostEqual(of["iqr/relative"], (of["q3"] - of["q1"]) / of["median"])
        self.assertEqual(len(self.files), 5)  # times and frequencies of two variants, and the JSON

    def test_has_a_clock_for_every_sample_or_for_none(self):
        fix = self.exported()[1]
        self.assertEqual(self.floats(fix, "nv/json/freqs-bin:nv/cold/sample_freqs"), (1.5e9,) * len(self.times(fix)))
        self.assertEqual(self.value(fix, "nv/cold/sm_clock_rate/mean"), 1.5e9)
        self.exported(change=lambda line: line["measurement"]["rounds"][1][0].update(sm_clock_hz=None))
        self.assertEqual(len(self.files), 4, "one of the variants lost its clock")

    def test_takes_segments_where_single_steps_are_not_timed(self):
        def untimed(line):
            for segment in sum(line["measurement"]["rounds"], []):
                segment["step_times_ns"] = []

        times = self.times(self.exported(change=untimed)[0])
        self.assertEqual(len(times), 2 * ROUNDS)
        for time in times:
            self.assertAlmostEqual(time, 1e-3, delta=1e-4)

    def test_has_each_device_of_a_run_once(self):
        two = measured() + measured(change=lambda line: line["device"].update(name="another")) + measured()
        root = json.loads(formats.nvbench(two, "n")["n"])
        self.assertEqual([device["name"] for device in root["devices"]], ["simulated another", "simulated made up"])
        self.assertEqual([bench["devices"] for bench in root["benchmarks"]], [[1], [0], [1]])
        self.assertEqual(root["benchmarks"][1]["states"][0]["device"], 0)
