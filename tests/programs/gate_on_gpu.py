# SPDX-License-Identifier: MIT
"""Gates a PyTorch loop on a real GPU: identical programs, an added .item(), a step that takes 5 %
longer. Prints verdict, exit code and wall seconds of each, and fails where one is not as planted.

    python3 tests/programs/gate_on_gpu.py build/cuda/runner/stepgate --identical 20
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

TRAIN = '''import torch

torch.manual_seed(0)
device = torch.device("cuda")
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = torch.randn(256, 512, device=device), torch.randn(256, 1, device=device)
a = torch.randn(5120, DEPTH, device=device, dtype=torch.bfloat16)
b = torch.randn(DEPTH, 5120, device=device, dtype=torch.bfloat16)
c = torch.empty(5120, 5120, device=device, dtype=torch.bfloat16)
running = torch.zeros((), device=device)
for step in range(1_000_000):
    for _ in range(50):  # about 20 ms on an H200
        torch.mm(a, b, out=c)
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    running = running + loss.detach()
    pass  # HERE
'''
SCENARIO = '''claim = "a training loop does not become slower"
program = {{ command = ["{python}", "train.py"], timeout_s = 120 }}
[variant.train]
[expect]
waits = "train.host_waits_per_step <= 2"
'''
BASE_DEPTH = 5120


def train(depth=BASE_DEPTH, here="pass"):
    return TRAIN.replace("DEPTH", str(depth)).replace("pass  # HERE", here)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stepgate")
    parser.add_argument("--identical", type=int, default=3, help="gates of identical programs (3)")
    parser.add_argument("--only", help="cases whose names contain this")
    given = parser.parse_args()
    stepgate = os.path.abspath(given.stepgate)
    # Name, HEAD's program, options, exit codes as planted, most wall seconds.
    cases = [("identical {}".format(seed), train(), ["--seed", str(seed)], {0, 77}, None)
             for seed in range(1, given.identical + 1)]
    cases += [("counts of identical", train(), ["--only", "counts"], {0}, 60),
              ("an added .item()", train(here="loss.item()"), ["--only", "counts"], {1}, 60),
              ("a step 5 % longer", train(depth=BASE_DEPTH * 105 // 100), ["--only", "time"], {1}, 90)]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for side in ("base", "head"):
            os.mkdir(os.path.join(folder, side))
        with open(os.path.join(folder, "gate.toml"), "w") as file:
            file.write(SCENARIO.format(python=sys.executable))
        with open(os.path.join(folder, "base", "train.py"), "w") as file:
            file.write(train())
        for name, head, options, expected, most in cases:
            if given.only and given.only not in name:
                continue
            with open(os.path.join(folder, "head", "train.py"), "w") as file:
                file.write(head)
            begin = time.monotonic()
            gate = subprocess.run([stepgate, "gate", "--program", "gate.toml", "--base", "base",
                                   "--head", "head"] + options, cwd=folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            seconds = time.monotonic() - begin
            lines = gate.stdout.rstrip().splitlines()
            is_right = gate.returncode in expected and (most is None or seconds <= most)
            wrong += not is_right
            print("{:<22} exit code {:>2}  {:6.1f} s  {}  {}".format(
                name, gate.returncode, seconds, "as planted" if is_right else "NOT AS PLANTED",
                lines[-1] if lines else ""), flush=True)
            if not is_right or gate.returncode:
                print("    " + "\n    ".join(lines), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
