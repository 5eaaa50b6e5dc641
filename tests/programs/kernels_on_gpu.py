# SPDX-License-Identifier: MIT
"""Gates libraries of kernels on a real GPU where the answer is known. A layer_norm whose first block
waits for a number of clock cycles is gated against itself and against one that waits for 2 % more,
which makes its step about 0.3 % slower: with an assertion that names kernel_us(layer_norm), and
without. One that makes the step itself 2 % slower must be refused without it too. Prints exit code,
wall seconds and the lines about the kernel of each gate, and fails where one is not as planted.

    python3 tests/programs/kernels_on_gpu.py build/cuda/runner/stepgate --identical 10
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

SOURCES = pathlib.Path(__file__).resolve().parents[2]
# More than a launch on an H200 takes: about 80 us at 1.9 GHz.
CYCLES = 150_000
SHARE_OF_STEP = 0.15  # of layer_norm's launches that wait so
BEGINNING = "  const long long row = blockIdx.x;\n"
WAIT = "  if (row == 0)\n    for (const long long begin = clock64(); clock64() - begin < {};) {{}}\n"


def build(name, cycles):
    """A library whose launches take so many cycles; its name makes its bytes its own."""
    text = (SOURCES / "examples/kernels/layer_norm.cu").read_text()
    if text.count(BEGINNING) != 1:
        sys.exit("layer_norm.cu does not begin a row as it did")
    with open(name + ".cu", "w") as file:
        file.write(text.replace(BEGINNING, BEGINNING + WAIT.format(cycles)))
        file.write('STEPGATE_EXPORT const char built_as[] = "{}";\n'.format(name))
    subprocess.run(["nvcc", "-O3", "-shared", "-Xcompiler", "-fPIC", "-arch=native", "-I", SOURCES / "include",
                    name + ".cu", "-o", name + ".so"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stepgate")
    parser.add_argument("--baselines", default="baselines")
    parser.add_argument("--identical", type=int, default=10, help="gates of identical kernels (10)")
    parser.add_argument("--slower", type=int, default=3, help="gates of slower ones (3)")
    parser.add_argument("--margin", default="1%")
    given = parser.parse_args()
    stepgate, baselines = os.path.abspath(given.stepgate), os.path.abspath(given.baselines)
    step = re.sub(r"(?m)^no_slower = .*\n", "", (SOURCES / "examples/kernels/step.toml").read_text())
    step = step.replace("build/libmine.so", "base.so")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, cycles in (("base", CYCLES), ("same", CYCLES), ("slower", CYCLES * 102 // 100),
                             ("slow_step", int(CYCLES * (1 + 0.02 / SHARE_OF_STEP)))):
            build(name, cycles)
        with open("asked.toml", "w") as file:
            file.write(step + 'norm = "mine.kernel_us(layer_norm) <= 9 ms"\n')
        with open("unasked.toml", "w") as file:
            file.write(step)
        cases = [("same", "asked", {0, 77})] * given.identical
        cases += [("slower", "asked", {1})] * given.slower + [("slower", "unasked", {0}), ("slow_step", "unasked", {1})]
        for seed, (head, scenario, codes) in enumerate(cases, 1):
            begin = time.monotonic()
            gate = subprocess.run([stepgate, "--baselines", baselines, "gate", "--base-kernels", "base.so", "--head-kernels",
                                   head + ".so", "--margin", given.margin, "--seed", str(seed), "-v", scenario + ".toml"],
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            is_right = gate.returncode in codes
            wrong += not is_right
            print("{:<9} {:<7} exit code {:>2}  {:6.1f} s  {}".format(
                head, scenario, gate.returncode, time.monotonic() - begin, "as planted" if is_right else "NOT AS PLANTED"))
            lines = gate.stdout.splitlines()
            told = [line for line in lines if re.search("layer_norm [+-]|step [+-]|^(comparison|kernels) ", line)]
            print("    " + "\n    ".join(told if is_right else lines), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
