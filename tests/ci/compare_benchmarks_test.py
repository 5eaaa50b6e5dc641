# SPDX-License-Identifier: MIT
"""compare_benchmarks_test.py REPOSITORY FOLDER: nights of played benchmarks, and what ci/compare_benchmarks.py says of each."""
import json
import os
import shutil
import subprocess
import sys

repository, place = sys.argv[1:]
shutil.rmtree(place, ignore_errors=True)
os.makedirs(place)
results, kept = os.path.join(place, "results.json"), os.path.join(place, "kept.json")


def write(text):
    with open(results, "w", encoding="utf-8") as file:
        file.write(text)


def repetition(name, time, **more):
    return {"name": name, "run_name": name, "run_type": "iteration", "real_time": time, "time_unit": "us"} | more


def night(kernels, code, *words, more=()):
    benchmarks = [repetition(name, time) for name, times in kernels.items() for time in times]
    benchmarks += [repetition(name + "_median", 999, run_type="aggregate") for name in kernels]  # is no repetition
    write(json.dumps({"context": {}, "benchmarks": benchmarks + list(more)}))
    says(code, *words)


def says(code, *words):
    ended = subprocess.run([sys.executable, os.path.join(repository, "ci/compare_benchmarks.py"), results, kept], capture_output=True, text=True, check=False)
    assert ended.returncode == code and all(word in ended.stdout for word in words), (code, words, ended)
    assert not ended.stderr, ended.stderr


usual = {"copy": [10, 10.1, 10.2], "gemm": [50, 50, 51]}
night(usual, 0, "2 benchmarks, 0 compared", "0 warnings, 0 fail")
night({**usual, "copy": [10.1, 10.2, 10.3]}, 0, "2 compared", "0 warnings")  # by less than the spread
night({**usual, "copy": [12, 12.1, 12.2]}, 0, "warning: copy: 1.21e+04 ns, +18.6% on the last 1.02e+04 ns", "1 warnings, 0 fail")
night(usual, 0, "0 warnings")  # one night is forgotten
night({**usual, "copy": [12, 12.1, 12.2]}, 0, "1 warnings")
night({**usual, "copy": [12, 12.1, 12.2]}, 1, "fails: copy", "slower 2 times in a row", "remove " + kept)
night({**usual, "copy": [12, 12.1, 12.2]}, 1, "slower 3 times in a row")  # does not get used to it
night({**usual, "copy": [8, 12, 16]}, 0, "0 warnings")  # a noisy night decides nothing
night({"gemm": [50, 50, 51]}, 0, "warning: copy: not measured")
night(usual, 0, "2 benchmarks, 1 compared")
night(usual, 1, "fails: add: differs from its reference", more=[{"name": "add", "error_occurred": True, "error_message": "differs from its reference"}])
night({"gemm": [50]}, 2, "fewer than 3 repetitions")
night({}, 2, "no benchmark in it")
write("{")
says(2, "--benchmark_repetitions=3")
night(usual, 0)
with open(kept, "w", encoding="utf-8") as file:
    file.write("[]")
night(usual, 2, "remove it to begin anew")
