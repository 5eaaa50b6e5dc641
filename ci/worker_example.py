#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A worker for `stepgate gate`, complete: times two loops of its own. WORKER.md beside it has the protocol.

    stepgate gate --only time --base-command "python3 ci/worker_example.py" --head-command "python3 ci/worker_example.py --slower 10" --margin 5%
"""
import argparse
import hashlib
import json
import sys
import time

options = argparse.ArgumentParser()
options.add_argument("--slower", type=float, default=0, help="percent more work in every step")
REPEATS = round(1000 * (1 + options.parse_args().slower / 100))
BLOCK = bytes(4096)
NUMBERS = [(7919 * i) % 104729 for i in range(200)]


def hash_blocks():
    for _ in range(REPEATS // 10):
        hashlib.sha256(BLOCK).digest()


def sort_numbers():
    for _ in range(REPEATS // 20):
        sorted(NUMBERS)


WORKS = {"hash_blocks": hash_blocks, "sort_numbers": sort_numbers}


def run(step, steps, wash_out):
    for _ in range(wash_out):
        step()
    begin = time.perf_counter_ns()
    for _ in range(steps):
        step()
    return {"steps": steps, "elapsed_ns": time.perf_counter_ns() - begin}


loaded = None
for line in sys.stdin:
    request = json.loads(line)
    what = request["do"]
    if what == "hello":
        answer = {"protocol": 1, "program": "worker_example", "version": "1.0",
                  "device": "this machine's CPU", "works": list(WORKS)}
    elif what == "load" and request["work"] in WORKS:
        loaded = WORKS[request["work"]]
        answer = {"loaded": True}
    elif what == "run" and loaded:
        answer = run(loaded, request["steps"], request["wash_out"])
    elif what == "unload":
        loaded = None
        answer = {"unloaded": True}
    elif what == "quit":
        break
    else:
        answer = {"error": f"cannot {what} now"}
    print(json.dumps(answer), flush=True)
