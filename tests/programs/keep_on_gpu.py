# SPDX-License-Identifier: MIT
"""Asks `stepgate keep` on a GPU where the answer is known: candidates that are BASE itself, and one
whose step of 5 ms takes 1 % less, as the first candidate and behind 99 that were discarded. Prints
each answer, and fails where an identical one is kept, or the gain is not kept in time.

    python3 tests/programs/keep_on_gpu.py build/cuda/runner/stepgate --identical 40 --budget 12
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

# Ten kernels of 500 us by the device's clock.
STEP = '''claim = "a step of 5 ms"
model = { kind = "spin", kernels = 10, kernel_us = 500 }
[variant.step]
[expect]
no_waits = "step.host_waits_per_step == 0"
'''
FASTER = "--set model.kernel_us=495"
DISCARDED = 99


def write_candidate(name, stepgate, options=""):
    """A program of its own bytes that runs stepgate, its steps with further options."""
    with open(name, "w") as file:
        file.write("#!/bin/sh\n# {0}\nfolder=$2 verb=$3\nshift 3\n"
                   "exec '{1}' --baselines \"$folder\" $verb {2} \"$@\"\n".format(name, stepgate, options))
    os.chmod(name, 0o700)


class Ledger:
    def __init__(self, given, name):
        self.given, self.name = given, name

    def keep(self, head, budget):
        """The exit code and the answer."""
        call = [self.given.stepgate, "--baselines", self.given.baselines, "keep", "--base", "./base", "--head",
                "./" + head, "--ledger", self.name, "--budget", str(budget), "step.toml"]
        if self.given.device:
            call += ["--device", self.given.device]
        ended = subprocess.run(call, stdout=subprocess.PIPE, text=True)
        if ended.returncode not in (0, 1, 77):
            sys.exit("{} ended with {}".format(" ".join(call), ended.returncode))
        return ended.returncode, json.loads(ended.stdout)

    def until_decided(self, head, budget, most):
        """The same bytes again and again: the last exit code, and the seconds of all calls."""
        seconds = 0
        while True:
            code, answer = self.keep(head, budget)
            seconds += answer["seconds"]
            print("  {:>3} {:6.1f} s {}".format(code, answer["seconds"], json.dumps(answer)), flush=True)
            if code != 77 or seconds > 2 * most:
                return code, seconds

    def fill(self):
        """Writes 99 discarded candidates, which are the one that is there with other bytes."""
        with open(self.name) as file:
            record = json.loads(file.readline())
        with open(self.name, "w") as file:
            for number in range(1, DISCARDED + 1):
                record["number"] = number
                record["subject"]["head"] = "0x{:016x}".format(number)
                file.write(json.dumps(record, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stepgate")
    parser.add_argument("--baselines", default="baselines")
    parser.add_argument("--identical", type=int, default=40, help="candidates that are BASE itself (40)")
    parser.add_argument("--budget", type=float, default=12, help="the seconds of each (12)")
    parser.add_argument("--device")
    given = parser.parse_args()
    given.stepgate, given.baselines = os.path.abspath(given.stepgate), os.path.abspath(given.baselines)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("step.toml", "w") as file:
            file.write(STEP)
        write_candidate("base", given.stepgate)
        write_candidate("faster", given.stepgate, FASTER)
        codes = []
        for number in range(given.identical):
            name = "same{}".format(number)
            write_candidate(name, given.stepgate)
            code, answer = Ledger(given, "same.ledger").keep(name, given.budget)
            print("{:>3} {:6.1f} s {}".format(code, answer["seconds"], json.dumps(answer)), flush=True)
            codes.append(code)
        print("of {} identical candidates {} are kept, {} discarded, {} undecided".format(
            len(codes), codes.count(0), codes.count(1), codes.count(77)))
        wrong += codes.count(0)
        write_candidate("same", given.stepgate)
        for number, most in ((1, 60), (DISCARDED + 1, 210)):
            ledger = Ledger(given, "candidate{}.ledger".format(number))
            if number > 1:
                ledger.keep("same", given.budget)
                ledger.fill()
            code, seconds = ledger.until_decided("faster", 30, most)
            is_right = code == 0 and seconds <= most
            wrong += not is_right
            print("1 % less as candidate {}: ended with {} after {:.1f} s, {}".format(
                number, code, seconds, "as planned" if is_right else "WRONG: kept within {} s".format(most)))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
