#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records what PyTorch's caching allocator does with a random sequence of requests.

    ci/record_allocator.py FILE [--events N] [--seed N] [--expandable] [--round N] [--split-max MIB] [--garbage SHARE]

Needs a GPU and any PyTorch from 2.2 on. FILE is what runner/plan/allocators/testing/recording.h describes: put it into
runner/plan/allocators/recorded/ and replay_test compares stepgate's allocator with it, event by event.

A block that another stream uses is freed when that stream is done, and when that is must not depend on how fast this
machine is. So only one stream, the late one, ever uses blocks of others, and it sleeps whenever one of them is freed:
it is known to be busy until it is waited for. A sleep that might have ended by itself is waited for in good time.
"""
import argparse
import json
import os
import random
import sys
import time

POOLED = ["allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
          "inactive_split_bytes", "requested_bytes"]
SINGLE = ["oversize_allocations", "oversize_segments"]
COUNTS = ["num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free"]
NUMBERS = ["current", "peak", "allocated", "freed"]
NAMES = ([f"{stat}.{pool}.{number}" for stat in POOLED for pool in ("all", "small_pool", "large_pool")
          for number in NUMBERS] + [f"{stat}.{number}" for stat in SINGLE for number in NUMBERS] + COUNTS)
USES = {"active_allocated": "live", "active_pending_free": "pending", "active_awaiting_free": "pending",
        "inactive": "free"}
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
LATE = 2  # of the streams
SLEEP_CYCLES = 2_000_000_000  # about a second


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--expandable", action="store_true", help="expandable_segments")
    parser.add_argument("--round", type=int, default=0, metavar="N", help="roundup_power2_divisions")
    parser.add_argument("--split-max", type=int, default=None, metavar="MIB", help="max_split_size_mb, above 20")
    parser.add_argument("--garbage", type=float, default=0.0, metavar="SHARE", help="garbage_collection_threshold")
    return parser.parse_args()


def allocator_settings(args):
    settings = []
    if args.expandable:
        settings.append("expandable_segments:True")
    if args.round:
        settings.append(f"roundup_power2_divisions:{args.round}")
    if args.split_max is not None:
        settings.append(f"max_split_size_mb:{args.split_max}")
    if args.garbage:
        settings.append(f"garbage_collection_threshold:{args.garbage}")
    return ",".join(settings)


class Recorder:
    def __init__(self, torch, args, seed, out):
        self.torch = torch
        self.out = out
        self.random = random.Random(seed)
        self.streams = [torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
        self.index_of = {stream.cuda_stream: index for index, stream in enumerate(self.streams)}
        self.device_bytes = torch.cuda.mem_get_info()[1]
        self.held = {}  # block -> (tensor, stream, used by the late stream)
        self.next_block = 0
        self.statistics = {}
        self.segments = {}
        self.late_since = None  # when the sleep of the late stream began
        self.sleep_seconds = self.measure_sleep()
        self.shapes = [self.any_size() for _ in range(12)]  # sizes that come again, as those of a step do
        stats = torch.cuda.memory_stats()
        self.names = [name for name in NAMES if name in stats]
        if stats["reserved_bytes.all.current"] != 0:
            sys.exit("the allocator holds memory before the first event; start this in a process of its own")
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.reset_accumulated_memory_stats()
        self.write({
            "stepgate_allocator_recording": 1, "pytorch": torch.__version__,
            "device": torch.cuda.get_device_name(), "seed": seed, "device_bytes": self.device_bytes,
            "rules": {"expandable": args.expandable, "round_divisions": args.round,
                      "split_max_bytes": None if args.split_max is None else args.split_max * MIB,
                      "garbage_collection_threshold": args.garbage},
            "statistics": self.names})

    def measure_sleep(self):
        with self.torch.cuda.stream(self.streams[LATE]):
            self.torch.cuda._sleep(1000)
            self.torch.cuda.synchronize()
            begin = time.monotonic()
            self.torch.cuda._sleep(SLEEP_CYCLES)
            self.torch.cuda.synchronize()
        return time.monotonic() - begin

    def any_size(self):
        kind = self.random.random()
        if kind < 0.4:
            return int(2 ** self.random.uniform(0, 20))
        if kind < 0.7:
            return self.random.randint(MIB, 10 * MIB)
        if kind < 0.9:
            return self.random.randint(10 * MIB, 80 * MIB)
        return self.random.randint(1, 200) * MIB

    def write(self, line):
        self.out.write(json.dumps(line, separators=(",", ":")) + "\n")

    # The event, and what the allocator is now, as far as it changed.
    def record(self, event):
        stats = self.torch.cuda.memory_stats()
        changed = []
        for place, name in enumerate(self.names):
            if stats[name] != self.statistics.get(name, 0):
                changed.append([place, stats[name]])
                self.statistics[name] = stats[name]
        segments = {segment["address"]: self.segment(segment) for segment in self.torch.cuda.memory_snapshot()}
        event["changed"] = changed
        event["segments"] = [segment for address, segment in segments.items()
                             if self.segments.get(address) != segment]
        event["gone"] = [address for address in self.segments if address not in segments]
        self.segments = segments
        self.write(event)

    def segment(self, segment):
        blocks = []
        for block in segment["blocks"]:
            use = USES[block["state"]]
            blocks.append([block["size"], use, 0 if use == "free" else block["requested_size"]])
        return {"address": segment["address"], "bytes": segment["total_size"],
                "stream": self.index_of[segment["stream"]], "pool": segment["segment_type"],
                "expandable": bool(segment.get("is_expandable", False)), "blocks": blocks}

    def finish_late(self):
        self.streams[LATE].synchronize()
        self.late_since = None
        self.record({"do": "finish", "stream": LATE})

    def make_late(self):
        if self.late_since is None:
            with self.torch.cuda.stream(self.streams[LATE]):
                self.torch.cuda._sleep(SLEEP_CYCLES)
            self.late_since = time.monotonic()

    def allocate(self):
        size = self.random.choice(self.shapes) if self.random.random() < 0.6 else self.any_size()
        stream = self.random.choices(range(len(self.streams)), weights=[6, 3, 1])[0]
        block = self.next_block
        self.next_block += 1
        event = {"do": "allocate", "block": block, "bytes": size, "stream": stream, "refused": False}
        try:
            with self.torch.cuda.stream(self.streams[stream]):
                tensor = self.torch.empty(size, dtype=self.torch.uint8, device="cuda")
            self.held[block] = [tensor, stream, False]
        except self.torch.cuda.OutOfMemoryError:
            event["refused"] = True
        self.record(event)

    def free(self):
        block = self.random.choice(list(self.held))
        if self.held[block][2]:
            self.make_late()
        del self.held[block]
        self.record({"do": "free", "block": block})

    def use(self):
        own = [block for block, (_, stream, _) in self.held.items() if stream != LATE]
        if not own:
            return
        block = self.random.choice(own)
        self.held[block][0].record_stream(self.streams[LATE])
        self.held[block][2] = True
        self.record({"do": "record_stream", "block": block, "stream": LATE})

    def cap(self):
        fraction = self.random.choice([0.5, 1, 1.5, 3]) * GIB / self.device_bytes
        self.torch.cuda.set_per_process_memory_fraction(fraction)
        self.record({"do": "cap", "bytes": int(fraction * self.device_bytes)})

    def empty_cache(self):
        self.torch.cuda.empty_cache()
        self.record({"do": "empty_cache"})

    def step(self):
        if self.late_since is not None and time.monotonic() - self.late_since > 0.4 * self.sleep_seconds:
            self.finish_late()
        waits_before = self.possible_waits()
        self.act()
        if self.late_since is not None and self.streams[LATE].query():
            # Giving memory back and taking it wait for the device. That is after the allocator asked how far the
            # streams are, so for the allocator the stream is done from the next event on.
            if self.possible_waits() == waits_before:
                sys.exit("the late stream was done by itself during an event; try again on a quieter machine")
            self.late_since = None
            self.record({"do": "finish", "stream": LATE})

    def possible_waits(self):
        return [self.statistics.get(name, 0) for name in ("num_sync_all_streams", "num_device_free", "num_device_alloc")]

    def act(self):
        draw = self.random.random()
        # Phases that grow and phases that shrink, so that the cap is met and left again.
        growing = (self.next_block // 60) % 2 == 0
        if draw < 0.010:
            self.empty_cache()
        elif draw < 0.018:
            self.cap()
        elif draw < 0.030 and self.late_since is not None:
            self.finish_late()
        elif draw < 0.110:
            self.use()
        elif self.held and draw > (0.65 if growing else 0.50):
            self.free()
        else:
            self.allocate()

    def run(self, events):
        for _ in range(events):
            self.step()
        for block in list(self.held):
            if self.held[block][2]:
                self.make_late()
            del self.held[block]
            self.record({"do": "free", "block": block})
        if self.late_since is not None:
            self.finish_late()
        self.empty_cache()


def main():
    args = arguments()
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 31)
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = allocator_settings(args)  # before PyTorch is loaded
    try:
        import torch
    except ImportError as missing:
        sys.exit(f"PyTorch cannot be loaded ({missing}): its allocator is what is recorded here")
    if not torch.cuda.is_available():
        sys.exit("no GPU that PyTorch can use: the allocator's answers come from one")
    with open(args.file, "w", encoding="utf-8") as out:
        recorder = Recorder(torch, args, seed, out)
        recorder.run(args.events)
    stats = recorder.statistics
    print(f"{args.file}: PyTorch {torch.__version__}, seed {seed}, {recorder.next_block} requests, "
          f"{stats.get('num_ooms', 0)} refused, {stats.get('num_alloc_retries', 0)} retries, "
          f"{stats.get('num_device_alloc', 0)} device allocations")


if __name__ == "__main__":
    main()
