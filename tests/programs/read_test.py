# SPDX-License-Identifier: MIT
"""`stepgate read` on traces whose counts are known by construction (read_traces.py). 

    python3 read_test.py STEPGATE SOURCE
"""
import gzip
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from read_traces import trace_of, write  # noqa: E402

STEPGATE = SCHEMA = BASELINES = ""
EVERYTHING = ["launch", "gemm", "launch.driver", "launch.nested", "autograd", "wait", "wait.device", "event_sync", "stream_wait_event", "copy.pageable",
              "copy.pinned", "copy.back", "copy.on_device", "copy.blocking", "malloc", "free", "pin", "fill", "graph", "capture", "collective", "loader_thread"]
COUNTS = {"waits": 4, "device_waits": 1, "blocking_copies": 3, "blocking_frees": 2, "pageable_copies": 2, "copies_to_device": 3, "copies_to_host": 1,
          "copies": 6, "copy_bytes": 1_048_576 + 524_288 + 4 + 4096 + 64, "device_allocs": 1, "device_frees": 1, "pinned_allocs": 1, "launches": 7,
          "graph_launches": 1, "graph_kernels": 3, "collectives": 1, "fills": 1, "polls": 0, "unknown_copies": 0}


class Read(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def trace(self, words, name="trace.json", **how):
        write(self.path(name), trace_of(words, **how), name.endswith(".gz"))
        return name

    def text(self, text, name="trace.json"):
        with open(self.path(name), "w") as file:
            file.write(text)
        return name

    def stepgate(self, *words, stdin=None):
        return subprocess.run([STEPGATE, *words], cwd=self.folder, input=stdin, capture_output=True, timeout=100)

    def read_within(self, mib, name):
        """The exit code of reading the file within so much memory."""
        return subprocess.run(["bash", "-c", f'ulimit -v {mib * 1024}; exec "$0" read "$1"', STEPGATE, name], cwd=self.folder, capture_output=True).returncode

    def read(self, *words, code=0, stdin=None):
        """The result as JSON, and what is printed."""
        done = self.stepgate("read", "--json", "r.json", *words, stdin=stdin)
        printed = done.stdout.decode() + done.stderr.decode()
        self.assertEqual(done.returncode, code, printed)
        if code == 2:
            return {}, printed
        with open(self.path("r.json")) as file:
            return json.loads(file.readline()), printed

    def counts(self, words, *options, **how):
        return self.read(self.trace(words, **how), *options)[0]["program"][0]["counts"]

    def verdict(self, words, assertion, code, *options, **how):
        result, printed = self.read(self.trace(words, **how), "--expect", assertion, *options, code=code)
        return result["expect"][0] if result else {}, printed

    # Counts.

    def test_every_call_is_counted_once(self):
        self.assertEqual(self.counts(EVERYTHING), COUNTS)

    def test_the_order_of_events_and_the_seed_change_no_count(self):
        for seed in (2, 3):
            self.assertEqual(self.counts(EVERYTHING, seed=seed), COUNTS)

    def test_a_stream_that_waits_for_an_event_does_not_hold_the_host(self):
        self.assertEqual(self.counts(["launch", "stream_wait_event*5", "wait.event_driver"])["waits"], 0)

    def test_a_wait_with_a_record_of_the_device_is_one_and_one_of_the_driver_is_seen(self):
        self.assertEqual(self.counts(["launch", "wait.synced"])["waits"], 1)
        self.assertEqual(self.counts(["launch", "wait.synced", "wait.driver"])["waits"], 2)

    def test_calls_of_the_driver_within_calls_are_their_implementation(self):
        verdict, _ = self.verdict(["launch.nested_twice", "wait.nested"], "launches_per_step == 1", 0, "--expect", "host_waits_per_step == 1")
        self.assertEqual(verdict["outcome"], "passes")

    def test_a_copy_of_the_driver_is_counted_by_its_work(self):
        counts = self.counts(["launch", "copy.driver"])
        self.assertEqual((counts["copies"], counts["pageable_copies"], counts["copy_bytes"]), (1, 1, 100))

    def test_a_call_of_every_tenth_step_is_told(self):
        result, printed = self.read(self.trace(["launch", "wait@10"], steps=20))
        self.assertEqual(result["program"][0]["counts"]["waits"], 0.1)
        self.assertIn("(every 10th)", printed)

    def test_waits_name_the_operation_and_the_users_function(self):
        result, printed = self.read(self.trace(["launch", "python"]))
        self.assertIn("aten::item of /home/me/train.py(88): log_loss", printed)
        self.assertEqual(result["program"][0]["places"][0]["range"], "aten::item of /home/me/train.py(88): log_loss")

    # Steps.

    def test_steps_are_those_of_the_profiler_the_optimizer_a_range_or_what_is_named(self):
        words = ["launch", "gemm", "wait"]
        for mark, options, steps in (("profiler", [], 10), ("optimizer", [], 9), ("range", [], 10), ("range", ["--step-range", "step"], 10),
                                     ("none", ["--step-kernel", "xmma_gemm"], 9), ("none", ["--step-call", "cudaStreamSynchronize"], 9)):
            result, _ = self.read(self.trace([*words, f"mark={mark}"]), *options)
            process = result["program"][0]
            self.assertEqual((process["steps"], process["counts"]["waits"], process["counts"]["launches"]), (steps, 1, 2), (mark, options))

    def test_steps_are_skipped_as_asked_for(self):
        result, _ = self.read(self.trace(["launch", "wait@5"]), "--skip-steps", "3", "--steps", "4")
        self.assertEqual((result["program"][0]["first_step"], result["program"][0]["counts"]["waits"]), (4, 0.25))
        _, printed = self.read(self.trace(["launch"]), "--steps", "20", code=77)
        self.assertIn("of which 10 are left of the 20 that are asked for", printed)

    def test_a_trace_without_steps_is_undecided_and_says_why(self):
        _, printed = self.verdict(["launch", "mark=none"], "host_waits_per_step <= 9", 77)
        self.assertIn("it has no steps that are known", printed)
        self.read(self.trace(["launch", "mark=none"]), code=77)

    # Zero is shown.

    def test_calls_without_work_are_refused(self):
        _, printed = self.read(self.trace(["launch", "wait", "no_work"]), code=2)
        self.assertIn("has calls that launch work, and no work of the device", printed)

    def test_a_program_that_launches_nothing_has_no_zero(self):
        verdict, _ = self.verdict(["wait"], "host_waits_per_step == 0", 77)
        self.assertIn("launched no work", verdict["reason"])

    def test_polls_are_not_in_a_trace(self):
        verdict, _ = self.verdict(["launch", "poll"], "polls_per_step == 0", 77)
        self.assertIn("not in a trace", verdict["reason"])

    def test_kernels_without_a_launch_leave_launches_undecided(self):
        verdict, _ = self.verdict(["launch", "graph.driver"], "launches_per_step <= 9", 77)
        self.assertIn("10 kernels have no launch in it", verdict["reason"])
        self.assertEqual(self.verdict(["launch", "before"], "launches_per_step == 1", 0)[0]["outcome"], "passes")

    def test_copies_of_unknown_ends_leave_pageable_ones_undecided(self):
        self.verdict(["launch", "copy.unknown"], "pageable_copies_per_step == 0", 77)

    def test_lost_impossible_and_overlapping_records_are_named(self):
        for word, words in (("lost", "3 launches have no work in the trace"), ("negative", "1 events have no time or a negative one"),
                            ("overlap", "1 pieces of work overlap"), ("before", "1 pieces of work were launched before the recording")):
            self.assertIn(words, self.read(self.trace(["launch", word]))[1])
            self.assertNotIn(words, self.read(self.trace(["launch"]))[1])

    def test_what_the_driver_hides_is_named_unless_its_waits_are_recorded(self):
        self.assertIn("not in a trace: waits", self.read(self.trace(["launch", "wait"]))[1])
        self.assertNotIn("not in a trace: waits", self.read(self.trace(["launch", "wait.synced"]))[1])

    # Assertions.

    def test_assertions_decide_the_exit_code(self):
        self.verdict(["launch", "wait"], "host_waits_per_step <= 1", 0)
        verdict, _ = self.verdict(["launch", "wait"], "host_waits_per_step <= 0.9", 1)
        self.assertIn("aten::item", verdict["reason"])
        _, printed = self.verdict(["launch"], "samples_per_s >= 1", 2)
        self.assertIn("read does not count samples_per_s", printed)

    # Times.

    def test_the_class_of_bound_is_that_of_what_the_step_does(self):
        for words, bound in ((["gemm*5"], "compute-bound"), (["long_kernel*5"], "memory-bound"), (["copy.pageable*3", "launch"], "copy-bound"),
                             (["long_kernel", "wait*50", "launch"], "sync-bound"), (["loader", "long_kernel"], "data-bound"), (["tiny*40"], "launch-bound"),
                             (["collective*5", "launch"], "communication-bound")):
            result, printed = self.read(self.trace(words))
            variant = result["mechanism"]["variants"][0]
            self.assertIn(bound, variant["diagnosis"], (words, printed))
            time = variant["time"]
            self.assertAlmostEqual(sum(value for name, value in time.items() if name != "step"), time["step"], delta=1e-9, msg=words)

    def test_the_traced_step_goes_from_the_first_kernel_of_a_step_to_that_of_the_next(self):
        result, _ = self.read(self.trace(["launch", "gemm", "wait"], seed=7))
        events = json.loads(trace_of(["launch", "gemm", "wait"], seed=7))["traceEvents"]
        first = sorted(event["ts"] for event in events if event.get("cat") == "kernel" and "vectorized" in event["name"])
        self.assertAlmostEqual(result["mechanism"]["variants"][0]["time"]["step"] * 1e6, (first[-1] - first[0]) / 9, delta=0.002)
        self.assertAlmostEqual(result["mechanism"]["variants"][0]["time"]["math"] * 1e6, 90, delta=0.001)

    # Two traces, and ranks.

    def test_two_traces_give_their_differences_and_assertions_of_both(self):
        now, base = self.trace(["launch*3", "wait*2"], "now.json"), self.trace(["launch*2", "wait"], "base.json")
        for files in ([now, base], [now, "--base", base]):
            result, printed = self.read(*files)
            self.assertRegex(printed, r"launches +2 +3 +\+1 \(\+50\.0 %\)")
            self.assertRegex(printed, r"waits +1 +2 +\+1 \(\+100\.0 %\)")
            self.assertEqual([side[0]["counts"]["launches"] for side in (result["program"], result["program_base"])], [3, 2])
        self.read(now, base, "--expect", "trace.launches_per_step <= base.launches_per_step", code=1)
        self.read(base, now, "--expect", "trace.launches_per_step <= base.launches_per_step", code=0)
        _, printed = self.read(now, now)
        self.assertNotIn("differs, a step", printed)

    def test_of_several_ranks_the_worst_decides_and_is_named(self):
        files = [self.trace(["launch", "collective", *["wait"] * rank], f"r{rank}.json", rank=rank, world_size=3) for rank in (2, 0, 1)]
        result, _ = self.read(*files, "--expect", "host_waits_per_step <= 1", code=1)
        self.assertIn("rank 2", result["expect"][0]["reason"])
        self.read(*files, "--expect", "host_waits_per_step <= 2", code=0)
        _, printed = self.read(files[0], files[1], self.trace(["launch"], "other.json"), code=2)
        self.assertIn("are not of different ranks of one job", printed)
        # The same rank twice is no job: the second trace is of before.
        self.assertIn("program_base", self.read(files[0], files[0])[0])
        self.read(*files, files[0], code=2)

    # The synthetic step.

    def scenario_of(self, words, code=0):
        _, printed = self.read(self.trace(words, steps=20), "--as-scenario", "s.toml", code=code)
        return printed

    def run_scenario(self):
        done = self.stepgate("--baselines", BASELINES, "run", "s.toml", "--device", "simulated:nvidia-h200", "--seed", "1")
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    def test_the_synthetic_step_has_the_counts_and_the_time_of_the_trace(self):
        for words in (["gemm*5", "copy.pinned*2", "wait"], ["tiny*40"], ["long_kernel*3", "copy.pageable"], ["gemm*10", "wait@10"], ["gemm*3", "wait.device*4"],
                      ["loader", "gemm*4", "copy.pinned"], ["loader", "gemm*4", "wait*2"], ["launch*100", "copy.pinned"], ["gemm*4", "event_sync*3", "launch*9"]):
            self.scenario_of(words)
            code, printed = self.run_scenario()
            self.assertEqual(code, 0, (words, printed))
            with open(self.path("s.toml")) as file:
                text = file.read()
            self.assertNotIn("no knob makes", text, words)
            for fault, other in (("_per_step == ", "_per_step == 7"), ("~= ", "~= 1")):
                with open(self.path("s.toml"), "w") as file:
                    file.write(text.replace(fault, other, 1))
                self.assertEqual(self.run_scenario()[0], 1, (words, fault))

    def test_a_count_that_no_knob_makes_is_named_and_not_asserted(self):
        self.scenario_of(["gemm*3", "malloc"])
        with open(self.path("s.toml")) as file:
            text = file.read()
        self.assertIn("#   device_allocs_per_step 1, here 0", text)
        self.assertNotIn("trace.device_allocs", text)
        self.assertEqual(self.run_scenario()[0], 0)

    def test_a_scenario_of_any_trace_can_be_read(self):
        text = trace_of(["gemm*4", "copy.pinned", "loader", "wait@3"], steps=6)
        for name, changes in (('a "q" \\ \n b.json', []), ("large.json", [('"bytes": 524288', '"bytes": 99999999999999')]),
                              ("slow.json", [('"dur": 90.000', '"dur": 99999999.000')]), ("odd.json", [("sm90_xmma", "\\u0000\\n\\\"]")])):
            for old, new in changes:
                text = text.replace(old, new)
            self.read(self.text(text, name), "--as-scenario", "s.toml")
            done = self.stepgate("check", "s.toml")
            self.assertEqual(done.returncode, 0, (name, done.stdout, done.stderr))

    def test_a_step_that_is_too_short_for_a_scenario_is_refused(self):
        self.assertIn("and a synthetic step has 3 to", self.scenario_of(["gemm"], code=2))
        self.assertIn("no scenario is made of", self.scenario_of(["gemm*4", "mark=none"], code=2))

    # Snapshots of the allocator.

    def snapshot(self, events, segments=(), name="snapshot.pickle", protocol=4):
        frames = [{"name": "main", "filename": "train.py", "line": 7}]  # shared, as PyTorch writes them
        trace = [{"action": action, **({"device_free": size} if action == "oom" else {"addr": 0x7F0000000000 + at}), "size": size, "stream": 0, "time_us": number,
                  "frames": frames, "share": 0.5} for number, (action, at, size) in enumerate(events)]
        with open(self.path(name), "wb") as file:
            pickle.dump({"segments": list(segments), "device_traces": [[], trace], "allocator_settings": {"expandable_segments": False, "x": None}}, file, protocol)
        return name

    def needs(self, name, *options):
        done = self.stepgate("read", name, *options)
        printed = done.stdout.decode() + done.stderr.decode()
        self.assertEqual(done.returncode, 0, printed)
        return {line.split()[0]: line.split("  ")[1:] for line in printed.splitlines() if line.startswith("  ") and line.split()[0] in
                ("caching", "expandable", "first_fit")}, printed

    def fits(self, name, *options):
        return {allocator: "does not fit" not in " ".join(words) for allocator, words in self.needs(name, *options)[0].items()}

    def test_a_snapshot_says_which_allocators_its_requests_fit_into(self):
        mib = 1 << 20
        # Blocks that grow: PyTorch's allocator keeps the segment of each, expandable segments grow with them.
        events = [(action, number * 1000 * mib, (100 + 20 * number) * mib) for number in range(5) for action in ("alloc", "free_completed")]
        name = self.snapshot(events)
        needs, printed = self.needs(name)
        self.assertEqual([part.strip() for part in needs["caching"] if part.strip()], ["caching", "180 MiB", "700 MiB"])
        self.assertEqual([part.strip() for part in needs["expandable"] if part.strip()], ["expandable", "180 MiB", "180 MiB"])
        self.assertNotIn("fits", printed)
        for protocol in (2, 3, 4, 5):
            self.snapshot(events, protocol=protocol)
            self.assertEqual(self.fits(name, "--cap", "200 MiB"), {"caching": True, "expandable": True, "first_fit": False}, protocol)
        self.assertEqual(self.fits(name, "--cap", "150 MiB"), {"caching": False, "expandable": False, "first_fit": False})

    def test_a_refused_request_and_blocks_from_before_the_history_count(self):
        mib = 1 << 20
        segment = {"address": 0x7F0000000000, "total_size": 40 * mib, "stream": 0, "blocks": [{"size": 40 * mib, "state": "active_allocated"}]}
        name = self.snapshot([("alloc", 100 * mib, 20 * mib), ("free_completed", 500 * mib, 30 * mib), ("oom", 0, 50 * mib)], [segment])
        needs, printed = self.needs(name)
        self.assertIn("2 of them for blocks from before the history; the program ran out of memory 1x", printed)
        self.assertEqual(set(self.fits(name)), {"caching", "expandable", "first_fit"})
        self.assertEqual(self.fits(name, "--cap", "200 MiB")["caching"], True)
        self.assertEqual(self.fits(name, "--cap", "100 MiB")["caching"], False)

    def test_a_pickle_with_code_or_damage_is_refused_and_nothing_of_it_is_run(self):
        class Code:
            def __reduce__(self):
                return (os.mkdir, (os.path.join(folder, "made"),))
        folder = self.folder
        with open(self.path("code.pickle"), "wb") as file:
            pickle.dump({"segments": [], "device_traces": [[Code()]]}, file, 4)
        with open(self.snapshot([("alloc", 0, 1 << 20)], name="whole.pickle") and self.path("whole.pickle"), "rb") as file:
            whole = file.read()
        many, event = {key: None for key in range(20_000)}, {"action": "alloc", "addr": 1, "size": 1, "stream": 0}
        blocks = [0] * 20_000
        for name, segments, events in (("sum", [{"total_size": 1 << 50}] * 2, [event]), ("negative", [{"total_size": -1}], [event]),
                                       ("huge", [], [{"action": "oom", "device_free": (1 << 63) - 1}]), ("many", [], [many] * 20_000),
                                       ("blocks", [{"blocks": blocks}] * 40_000, [event])):
            with open(self.path(f"{name}.pickle"), "wb") as file:
                pickle.dump({"segments": segments, "device_traces": [events]}, file, 4)
        for name, data in (("cut", whole[:-30]), ("empty", b"\x80\x04."), ("pop", b"\x80\x04u."), ("memo", b"\x80\x04h\x07."), ("none", pickle.dumps({}, 4)),
                           ("long", b"\x80\x04X\xff\xff\xff\xff"), ("marks", b"\x80\x04" + b"(" * 21_000_000)):
            with open(self.path(f"{name}.pickle"), "wb") as file:
                file.write(data)
        for name, words in (("code", "holds more than data, such as code"), ("cut", "ends half-way"), ("empty", "is a damaged pickle"),
                            ("pop", "is a damaged pickle"), ("memo", "is a damaged pickle"), ("none", "without a history"), ("long", "ends half-way"),
                            ("sum", "sizes that no device has"), ("negative", "sizes that no device has"), ("huge", "sizes that no device has"),
                            ("many", "refers to its values too often"), ("blocks", "refers to its values too often"), ("marks", "more than 20 million values")):
            done = self.stepgate("read", f"{name}.pickle")
            self.assertEqual(done.returncode, 2, (name, done.stdout))
            self.assertIn(words, done.stderr.decode(), name)
        self.assertFalse(os.path.exists(self.path("made")))

    def test_a_snapshot_has_no_steps_and_a_trace_no_cap(self):
        name = self.snapshot([("alloc", 0, 1 << 20)])
        self.assertEqual(self.stepgate("read", name, "--expect", "launches_per_step == 1").returncode, 2)
        self.assertEqual(self.stepgate("read", self.trace(["launch"]), "--cap", "1 GiB").returncode, 2)
        self.assertEqual(self.stepgate("read", name, "--cap", "much").returncode, 2)

    # Files.

    def test_compressed_traces_and_standard_input_are_read(self):
        self.trace(EVERYTHING, "t.json.gz")
        self.assertEqual(self.read("t.json.gz")[0]["program"][0]["counts"], COUNTS)
        for data in (trace_of(EVERYTHING).encode(), gzip.compress(trace_of(EVERYTHING).encode())):
            self.assertEqual(self.read("-", stdin=data)[0]["program"][0]["counts"], COUNTS)

    def test_damaged_files_are_refused_with_a_reason(self):
        whole = trace_of(["launch"])
        self.text(whole)
        with open(self.path("t.gz"), "wb") as file:
            file.write(gzip.compress(whole.encode())[:-400])
        os.mkdir(self.path("folder"))
        for name, words in ((self.text(whole[:-200], "cut.json"), "is no JSON at byte"), (self.text("", "empty.json"), "is no JSON at byte"),
                            (self.text("{}", "object.json"), "has no traceEvents"), (self.text('[{"a": 1}]', "array.json"), "has no traceEvents"),
                            (self.text('{"traceEvents": 7}', "seven.json"), "has no traceEvents"), ("none.json", "cannot be read"), ("folder", "is a folder"),
                            ("t.gz", "its compressed data are damaged"), (self.text("claim = 1", "x.toml"), "is no JSON at byte 1")):
            _, printed = self.read(name, code=2)
            self.assertIn(words, printed)
            self.assertIn(name, printed)

    def test_hostile_files_are_refused_within_bounds(self):
        for name, text, words in (("deep", '{"traceEvents": ' + "[" * 100_000 + "]" * 100_000 + "}", "is nested more than 64 deep"),
                                  ("deeper", '{"a": ' + '{"a": ' * 100_000 + "1" + "}" * 100_001, "is nested more than 64 deep"),
                                  ("long", '{"traceEvents": [{"name": "' + "a" * (20 << 20) + '"}]}', "has a text of more than 16 MiB"),
                                  ("number", '{"traceEvents": [' + "1" * (20 << 20) + "]}", "has a text of more than 16 MiB"),
                                  ("names", '{"traceEvents": [' + ",".join('{"ph":"X","cat":"kernel","ts":1,"dur":1,"name":"' + f"{i}" + "n" * 1000 + '"}'
                                                                          for i in range(70_000)) + "]}", "has more than 64 MiB of names")):
            _, printed = self.read(self.text(text, f"{name}.json"), code=2)
            self.assertIn(words, printed, name)
            self.assertEqual(self.read_within(300, f"{name}.json"), 2, name)

    def test_odd_values_of_a_hostile_trace_crash_nothing(self):
        line = '{"ph": "X", "cat": "kernel", "name": "k", "pid": %s, "tid": %s, "ts": %s, "dur": %s, "args": {"correlation": %s, "stream": %s, "device": %s}}'
        odd = ["1", "-1", "1e300", "18446744073709551615", "9223372036854775807", '"7"', "null", "true", "[1]", '{"a": 1}', "0.0001", "999999999999999.999"]
        events = [line % (a, b, b, a, b, a, b) for a in odd for b in odd]
        calls = [event.replace('"kernel"', f'"{category}"') for event in events for category in ("cuda_runtime", "user_annotation", "cuda_sync", "gpu_memcpy")]
        done = self.stepgate("read", self.text('{"traceEvents": [' + ",".join(events + calls) + "]}"))
        self.assertIn(done.returncode, (2, 77), done.stderr.decode())

    def test_names_of_a_trace_do_not_act_on_a_terminal_and_are_cut(self):
        text = trace_of(["gemm*4", "wait"])
        for name in ("\\u001b[31mred", "\\u009b31m", "a\\u0000b", "\u00e4" * 700):
            odd = text.replace("sm90_xmma_gemm", name).replace("aten::item", name)
            result, printed = self.read(self.text(odd))
            self.assertTrue(all(letter == "\n" or " " <= letter <= "~" for letter in printed), name)
            self.assertIn("?", printed)
            self.assertEqual(result["program"][0]["counts"]["waits"], 1)

    def test_times_are_whole_nanoseconds(self):
        text = trace_of(["gemm"], steps=2)
        self.assertIn("90.000", text)
        result, _ = self.read(self.text(text.replace('"dur": 90.000', '"dur": 90.001')))
        self.assertAlmostEqual(result["mechanism"]["variants"][0]["work"]["sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32"]["seconds"], 90.001e-6,
                               delta=1e-13)

    def test_a_large_trace_takes_bounded_memory(self):
        name = self.trace(["launch*20", "wait*5", "gemm*5"], "large.json", steps=100, repeat=20)
        self.assertGreater(os.path.getsize(self.path(name)), 25 << 20)
        self.assertEqual(self.read_within(150, name), 0)
        self.assertNotEqual(self.read_within(25, name), 0)

    def test_its_json_is_that_of_the_schema(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("no module jsonschema")
        with open(SCHEMA) as file:
            validator = jsonschema.Draft202012Validator(json.load(file))
        now, base = self.trace([*EVERYTHING, "poll"], "now.json"), self.trace(["launch", "mark=none"], "base.json")
        for files in ([now], [now, base], [now, now]):
            result, _ = self.read(*files)
            self.assertEqual([error.message for error in validator.iter_errors(result)], [])
        self.assertIn("polls_per_step", result["program"][0]["unknown"])

    def test_what_is_no_ordinary_file_is_refused_at_once(self):
        os.mkfifo(self.path("pipe"))
        for name in ("pipe", "/dev/zero", "/dev/full"):
            self.assertIn("is not an ordinary file; read a pipe as `stepgate read -`", self.read(name, code=2)[1])

    # Other verbs.

    def test_other_verbs_name_the_one_that_reads_traces(self):
        plain, packed = self.trace(["launch"]), self.trace(["launch"], "t.json.gz")
        self.text(trace_of(["launch"]), "odd_name")
        for verb in ("run", "check", "list", "plan", "mutate", "accept", "history", "worker", "attach"):
            for name in (plain, packed, "odd_name"):
                if verb == "attach" and name == "odd_name":
                    continue
                done = self.stepgate(verb, name)
                self.assertEqual(done.returncode, 2, (verb, done.stdout, done.stderr))
                self.assertIn(f"stepgate read {name}", done.stderr.decode() + done.stdout.decode(), verb)

    def test_outputs_that_cannot_be_written_hide_no_outcome(self):
        name = self.trace(["launch*5", "wait"])
        for output in ("--json", "--junit", "--summary", "--report", "--as-scenario"):
            for limit, code in ((0, 1), (1, 2)):
                done = self.stepgate("read", name, "--expect", f"host_waits_per_step <= {limit}", output, "/dev/full")
                self.assertEqual(done.returncode, code, (output, done.stderr))
                self.assertIn("/dev/full: cannot be written: No space left on device", done.stderr.decode())
        # A step for which there is no scenario.
        done = self.stepgate("read", self.trace(["launch", "wait"]), "--expect", "host_waits_per_step == 0", "--as-scenario", "s.toml")
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_outputs_are_not_written_over_inputs(self):
        name = self.trace(["launch"])
        done = self.stepgate("read", name, "--json", name)
        self.assertEqual(done.returncode, 2)
        self.assertIn("would be written over what is read", done.stderr.decode())


if __name__ == "__main__":
    STEPGATE, SOURCE = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    SCHEMA, BASELINES = os.path.join(SOURCE, "docs", "json_schema.json"), os.path.join(SOURCE, "baselines")
    unittest.main()
