# SPDX-License-Identifier: MIT
"""Attaches to known_counts.cu on the GPU: every count is that of its source.

    python3 known_counts_test.py STEPGATE PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile

WANTED = {"waits": 2, "device_waits": 0, "blocking_copies": 2, "blocking_frees": 0,
          "pageable_copies": 1, "copies_to_device": 3, "copies_to_host": 0, "copies": 3,
          "copy_bytes": 4096 + 4096 + 8192, "device_allocs": 1, "device_frees": 1,
          "pinned_allocs": 0, "launches": 8, "graph_launches": 1, "graph_kernels": 3, "fills": 1,
          "polls": 0, "unknown_copies": 0}

with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "r.json")
    run = subprocess.run([sys.argv[1], "attach", "--step-call", "cudaGraphLaunch", "--json", file,
                          "--", sys.argv[2]], capture_output=True, text=True)
    print(run.stdout, run.stderr)
    with open(file) as text:
        counts = json.load(text)["program"][0]["counts"]
wrong = {key: (counts[key], want) for key, want in WANTED.items() if counts[key] != want}
print("wrong:", wrong)
sys.exit(1 if wrong or run.returncode != 0 else 0)
