# SPDX-License-Identifier: MIT
"""Snapshots of memory, and the pickles that they are."""
import os
import pickle
import pickletools
import sys
import unittest

from made_up import REPOSITORY, InAFolder
from stepgate.memory_snapshot import snapshot_of

MIB = 1 << 20
# As unpickle() in torch/utils/viz/MemoryViz.js of PyTorch knows them; it reads protocols 2 to 4.
READ_BY_THE_VIEWER = {
    "PROTO", "APPEND", "APPENDS", "LIST", "TUPLE", "NEWFALSE", "NEWTRUE", "NONE", "BINGET", "BININT", "BININT1", "BININT2", "EMPTY_DICT",
    "EMPTY_LIST", "FRAME", "LONG1", "LONG_BINGET", "MARK", "MEMOIZE", "BINPUT", "LONG_BINPUT", "SETITEMS", "SETITEM", "DICT",
    "SHORT_BINUNICODE", "BINUNICODE", "STOP", "EMPTY_TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "BINFLOAT"}


def event(action, **more):
    return {"action": action, "address": 0, "bytes": 0, "stream": 0, "buffer": -1, "operation": -1, "step": 0, "free_bytes": 0, **more}


def memory(variant="baseline"):
    return {"schema": "stepgate.memory/1", "scenario": "churn", "variant": variant, "buffers": ["logits", "kept"],
            "operations": [{"name": "allocate logits", "phase": "forward"}],
            "events": [event("take_segment", address=4096, bytes=2 * MIB),
                       event("allocate", address=5632, bytes=900, buffer=1),
                       event("release", address=5632, bytes=900, buffer=1),
                       event("allocate", address=4096, bytes=1000, buffer=0, operation=0, step=17),
                       event("refuse", bytes=5000, buffer=0, operation=0, free_bytes=77)],
            "segments": [{"address": 4096, "bytes": 2 * MIB, "stream": 0, "pool": "small", "kind": "fixed", "capture_pool": None,
                          "blocks": [{"address": 4096, "bytes": 1024, "requested_bytes": 1000, "use": "live"},
                                     {"address": 5120, "bytes": 512, "requested_bytes": 500, "use": "pending"},
                                     {"address": 5632, "bytes": 2 * MIB - 1536, "requested_bytes": 0, "use": "free"}]}]}


def names(frames):
    return [frame["name"] for frame in frames]


class Snapshot(unittest.TestCase):
    def test_names_the_operation_of_an_allocation_and_what_a_refusal_had_left(self):
        (trace,) = snapshot_of(memory())["device_traces"]
        self.assertEqual([one["action"] for one in trace], ["segment_alloc", "alloc", "free_requested", "free_completed", "alloc", "oom"])
        self.assertEqual([one["time_us"] for one in trace], [0, 2, 4, 5, 6, 8])
        self.assertEqual([names(one["frames"]) for one in trace[:2]], [[], ["kept", "before the first step"]])
        self.assertEqual(trace[4]["frames"], [{"name": "logits", "filename": "buffer", "line": 0},
                                              {"name": "allocate logits", "filename": "forward", "line": 0},
                                              {"name": "step 17", "filename": "churn, baseline", "line": 0}])
        self.assertEqual((trace[4]["addr"], trace[4]["size"], trace[4]["stream"]), (4096, 1000, 0))
        self.assertEqual((trace[5]["device_free"], trace[5]["size"], "addr" in trace[5]), (77, 5000, False))

    def test_has_the_blocks_of_each_segment_with_who_holds_them(self):
        (segment,) = snapshot_of(memory())["segments"]
        self.assertEqual((segment["total_size"], segment["allocated_size"], segment["active_size"], segment["requested_size"]),
                         (2 * MIB, 1024, 1536, 1500))
        self.assertEqual((segment["segment_type"], segment["segment_pool_id"], segment["is_expandable"]), ("small", (0, 0), False))
        self.assertEqual([block["state"] for block in segment["blocks"]], ["active_allocated", "active_pending_free", "inactive"])
        self.assertEqual([names(block["frames"]) for block in segment["blocks"]], [["logits", "allocate logits", "step 17"], [], []])


class MemorySnapshot(InAFolder):
    def snapshot(self, file="m.json", output="m.pickle"):
        return self.package("memory-snapshot", file, "-o", output)

    def test_has_a_file_of_its_own_for_every_variant(self):
        self.write("m.json", memory(), memory("fix"))
        for output in ("out/m.pickle", "out/m"):
            finished = self.snapshot(output=output)
            self.assertEqual(finished.returncode, 0, finished.stderr)
            self.assertEqual(finished.stdout, "out/m.churn.baseline.pickle\nout/m.churn.fix.pickle\n")
        self.assertEqual(pickle.loads(self.read("out/m.churn.fix.pickle", "rb")), snapshot_of(memory("fix")))

    def test_is_of_nothing_that_the_viewer_does_not_read(self):
        large = memory()
        large["events"] += [event("allocate", address=address, bytes=1 << 40, buffer=0) for address in range(1 << 45, (1 << 45) + 3000)]
        self.write("m.json", large)
        self.assertEqual(self.snapshot().returncode, 0)
        found = [(code.name, argument) for code, argument, _ in pickletools.genops(self.read("m.churn.baseline.pickle", "rb"))]
        self.assertEqual(found[0], ("PROTO", 4))
        self.assertEqual({name for name, _ in found} - READ_BY_THE_VIEWER, set())

    def test_refuses_what_is_not_of_the_plan(self):
        self.write("m.json", memory(), {**memory("fix"), "schema": 2})
        self.expect_refused(self.snapshot(), 'm.json:2: has schema 2, and this package reads "stepgate.memory/1"; take ')
        self.write("m.json", '{"schema": "stepgate.memory/1", "scen')
        self.expect_refused(self.snapshot(), "m.json:1: is not JSON (", "; write it again with `stepgate plan --memory --json FILE`")
        for events, words in (([event("lose")], "has no 'lose'"), ([event("allocate", buffer=2)], "has a wrong value (list index out of range)")):
            self.write("m.json", {**memory(), "events": events})
            self.expect_refused(self.snapshot(), f"m.json:1: {words}; it was changed since stepgate wrote it")
        self.assertEqual(os.listdir(self.folder), ["m.json"])

    def test_refuses_lines_of_one_file_and_names_of_none(self):
        self.write("m.json", memory(), memory("fix"), memory())
        self.expect_refused(self.snapshot(), "m.json:3: m.churn.baseline.pickle would be written twice, for this line and one before it; ")
        self.write("m.json", {**memory("b"), "scenario": "a.b"}, {**memory("b.b"), "scenario": "a"})
        self.expect_refused(self.snapshot(), "m.json:2: m.a.b.b.pickle would be written twice, ")
        for name in ("a/b", "../a", "a\0", "\ud800", 7, None):
            for of in ("scenario", "variant"):
                self.write("m.json", memory(), {**memory(), of: name})
                self.expect_refused(self.snapshot(), f"m.json:2: {ascii(name)} names a scenario or variant and cannot be part of a file's name; ")
        self.assertEqual(os.listdir(self.folder), ["m.json"])

    def test_refuses_folders_and_a_standard_output_that_is_full(self):
        self.write("m.json", memory())
        self.expect_refused(self.snapshot(output="out/"), "out/: cannot be written: it is no name of a file; ")
        self.assertEqual(os.listdir(self.folder), ["m.json"])
        full = self.started("sh", "-c", '"$0" -m stepgate memory-snapshot m.json -o m >/dev/full', sys.executable)
        self.expect_refused(full, "standard output: cannot be written: No space left on device; ")

    def test_shows_what_the_allocator_of_a_real_plan_does(self):
        planned = self.stepgate("plan", os.path.join(REPOSITORY, "scenarios/shape_churn_under_cap.toml"), "--memory", "--json", "m.json")
        self.assertEqual(planned.returncode, 0, planned.stderr)
        finished = self.snapshot()
        self.assertEqual(finished.returncode, 0, finished.stderr)
        for file in finished.stdout.split():
            snapshot = pickle.loads(self.read(file, "rb"))
            (trace,) = snapshot["device_traces"]
            reserved = sum(one["size"] * {"segment_alloc": 1, "segment_free": -1}.get(one["action"], 0) for one in trace)
            held = sum(one["action"] == "alloc" for one in trace) - sum(one["action"] == "free_requested" for one in trace)
            blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
            self.assertEqual(reserved, sum(segment["total_size"] for segment in snapshot["segments"]), file)
            self.assertEqual(held, sum(block["state"] == "active_allocated" for block in blocks), file)
            self.assertTrue(all(block["frames"] for block in blocks if block["state"] == "active_allocated"), file)


if __name__ == "__main__":
    unittest.main()
