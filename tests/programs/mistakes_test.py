# SPDX-License-Identifier: MIT
"""Attaches to every pair of mistakes.py on the GPU and compares the counts with what the loops do.

    python3 mistakes_test.py STEPGATE [NAME...]

Ends with 77 where there is no PyTorch or no GPU.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
AT_ONCE = 6


def attached(stepgate, name, which):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "r.json")
        command = [stepgate, "attach", "--json", file, "--quiet", "--timeout", "240", "--",
                   sys.executable, os.path.join(HERE, "mistakes.py"), name, which]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if not os.path.exists(file):
            return None, run.stdout + run.stderr
        with open(file) as text:
            processes = json.load(text)["program"]
    for process in processes:
        if process["counts"] is not None:
            return process, run.stdout
    return None, run.stdout + run.stderr


def wrong_counts(wanted, counts, good):
    wrong = []
    for key, want in wanted.items():
        have = counts[key]
        fits = (have > 0 if want == ">0" else have > good[key] if want == ">good"
                else abs(have - want) < 1e-9)
        if not fits:
            wrong.append(f"{key} is {have:g}, and {want} is right")
    return wrong


def faults_of(name, pair, mistakes):
    good_counts, bad_counts, line = mistakes.COUNTS[name]
    (good, good_words), (bad, bad_words) = pair
    if good is None or bad is None:
        return [(good_words if good is None else bad_words)[-2000:]]
    faults = wrong_counts(good_counts, good["counts"], None)
    faults += ["bad: " + fault for fault in wrong_counts(bad_counts, bad["counts"], good["counts"])]
    if line:
        with open(os.path.join(HERE, "mistakes.py")) as text:
            source = text.read().splitlines()
        places = [source[place["line"]["line"] - 1] for place in bad["places"]
                  if place["line"] and place["line"]["file"].endswith("mistakes.py")]
        if not any(line in place for place in places):
            faults.append(f"bad: no place is '{line}', but {places}")
    return faults


def main():
    try:
        import torch
    except ImportError:
        print("there is no PyTorch")
        return 77
    if not torch.cuda.is_available():
        print("PyTorch has no GPU")
        return 77
    import mistakes

    stepgate, names = sys.argv[1], sys.argv[2:] or list(mistakes.COUNTS)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {(name, which): pool.submit(attached, stepgate, name, which)
                for name in names for which in ("good", "bad")}
        for name in names:
            pair = runs[name, "good"].result(), runs[name, "bad"].result()
            faults = faults_of(name, pair, mistakes)
            failed += bool(faults)
            print(f"{name}: {'; '.join(faults) if faults else 'counted exactly'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
