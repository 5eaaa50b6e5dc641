#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether kernels became slower since the last time on the same device and driver.

    ci/compare_benchmarks.py RESULTS KEPT

RESULTS is what Google Benchmark wrote by --benchmark_out, with at least three repetitions, KEPT a file of earlier times
that this program updates. A benchmark is slower where its median is above the last one by more than both nights' spreads,
from the quickest repetition to the slowest. Once is a warning; twice in a row ends with 1, and so does every later time
until it is as quick again or KEPT is removed. A benchmark that is slower keeps its earlier times. Ends with 1 too where a
benchmark reports an error, and with 2 where a file is not what it should be.
"""
import collections
import json
import os
import statistics
import sys

NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
FEWEST = 3


def times_of(results):
    """{benchmark: [nanoseconds of each repetition]}, and what went wrong"""
    times, wrong = collections.defaultdict(list), []
    for one in results["benchmarks"]:
        if one.get("error_occurred"):
            wrong.append(f"{one['name']}: {one.get('error_message', 'an error without words')}")
        elif one["run_type"] == "iteration":
            times[one.get("run_name", one["name"])].append(one["real_time"] * NANOSECONDS[one["time_unit"]])
    return times, wrong


def compare(times, kept):
    """The new content of the kept file, and its lines: warnings and those that fail."""
    warnings, failures, new = [], [], {}
    for name, now in times.items():
        last = kept.get(name)
        if last is None:
            new[name] = {"times": now, "slower": 0}
            continue
        before = statistics.median(last["times"])
        more = statistics.median(now) - before
        spread = max(max(side) - min(side) for side in (now, last["times"]))
        if more <= spread:
            new[name] = {"times": now, "slower": 0}
            continue
        nights = last["slower"] + 1
        new[name] = {"times": last["times"], "slower": nights}
        line = f"{name}: {before + more:.4g} ns, {more / before:+.1%} on the last {before:.4g} ns; the spread is {spread / before:.1%}"
        (failures if nights > 1 else warnings).append(line + (f"; slower {nights} times in a row" if nights > 1 else ""))
    for name in kept.keys() - times.keys():
        warnings.append(f"{name}: not measured, but the last time it was")
    return new, warnings, failures


def main(results_file, kept_file):
    try:
        with open(results_file, encoding="utf-8") as file:
            times, wrong = times_of(json.load(file))
        few = [name for name, measured in times.items() if len(measured) < FEWEST]
        if few or not times and not wrong:
            raise ValueError(f"{few[0]} has fewer than {FEWEST} repetitions" if few else "no benchmark in it")
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"{results_file}: {error!r}; write it by --benchmark_repetitions={FEWEST} --benchmark_out={results_file}")
        return 2
    kept = {}
    try:
        if os.path.exists(kept_file):
            with open(kept_file, encoding="utf-8") as file:
                kept = json.load(file)
        new, warnings, failures = compare(times, kept)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"{kept_file}: {error!r}; remove it to begin anew")
        return 2
    with open(kept_file + ".new", "w", encoding="utf-8") as file:
        json.dump(new, file)
    os.replace(kept_file + ".new", kept_file)
    for line in warnings:
        print("warning:", line)
    for line in failures + wrong:
        print("fails:", line)
    print(f"{len(times)} benchmarks, {len(times.keys() & kept.keys())} compared with the last time, "
          f"{len(warnings)} warnings, {len(failures) + len(wrong)} fail")
    if failures:
        print(f"remove {kept_file} where the new times are meant")
    return 1 if failures or wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
