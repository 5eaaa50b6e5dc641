# SPDX-License-Identifier: MIT
"""Gates a PyTorch loop on a real GPU: identical programs, an added .item(), a step that takes 5 %
longer, and on two GPUs a rank under torchrun that does. Prints verdict, exit code and wall seconds
of each, and fails where one is not as planted.

    python3 tests/programs/gate_on_gpu.py build/cuda/runner/stepgate --identical 20 --at-once 4
    python3 tests/programs/gate_on_gpu.py build/cuda/runner/stepgate --identical 0 --ranks 3
"""
import argparse
import concurrent.futures
import json
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
# Each rank trains on a GPU of its own; only rank 1 has more to do in HEAD. Its time goes by reads and
# writes of device memory: two GPUs differ by several percent in products of matrices, which their
# power limits, and a step is as long as that of the slower one.
RANKS = '''import os
import torch
import torch.distributed

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
torch.distributed.init_process_group("nccl")
torch.manual_seed(0)
device = torch.device("cuda")
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).to(device)
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = torch.randn(256, 512, device=device), torch.randn(256, 1, device=device)
weights = torch.randn((DEPTH if rank == 1 else BASE) * 15_360, device=device)
for step in range(1_000_000):
    for _ in range(100):  # about 20 ms on an H200
        weights.neg_()
    optimizer.zero_grad(set_to_none=True)
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
'''
SCENARIO = '''claim = "a training loop does not become slower"
program = {{ command = {command}, timeout_s = 120 }}
[variant.train]
[expect]
waits = "train.host_waits_per_step <= 2"
'''
BASE_DEPTH = 5120


ONE_PROCESS = [sys.executable, "train.py"]
TWO_RANKS = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]


def train(depth=BASE_DEPTH, here="pass", text=TRAIN):
    return (text.replace("BASE", str(BASE_DEPTH)).replace("DEPTH", str(depth))
            .replace("pass  # HERE", here))


class Case:
    """A gate, and the exit codes, words and most wall seconds that are planted."""

    def __init__(self, name, head, options, codes, most=None, words=(), base=train(), command=ONE_PROCESS):
        self.name, self.head, self.options, self.codes = name, head, options, codes
        self.most, self.words, self.base, self.command = most, words, base, command

    def run(self, stepgate):
        """Its exit code, wall seconds and lines."""
        with tempfile.TemporaryDirectory() as folder:
            for side, text in (("base", self.base), ("head", self.head)):
                os.mkdir(os.path.join(folder, side))
                with open(os.path.join(folder, side, "train.py"), "w") as file:
                    file.write(text)
            with open(os.path.join(folder, "gate.toml"), "w") as file:
                file.write(SCENARIO.format(command=json.dumps(self.command)))
            begin = time.monotonic()
            gate = subprocess.run([stepgate, "gate", "--program", "gate.toml", "--base", "base",
                                   "--head", "head"] + self.options, cwd=folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            return gate.returncode, time.monotonic() - begin, gate.stdout.rstrip().splitlines()

    def is_right(self, code, seconds, lines):
        return (code in self.codes and (self.most is None or seconds <= self.most)
                and all(word in "\n".join(lines) for word in self.words))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stepgate")
    parser.add_argument("--identical", type=int, default=3, help="gates of identical programs (3)")
    parser.add_argument("--ranks", type=int, default=0, help="gates of two ranks on two GPUs, of each kind (0)")
    parser.add_argument("--at-once", type=int, default=1, help="gates that run at the same time (1)")
    parser.add_argument("--budget", help="the gates' --budget")
    parser.add_argument("--only", help="cases whose names contain this")
    given = parser.parse_args()
    stepgate = os.path.abspath(given.stepgate)
    budget = ["--budget", given.budget] if given.budget else []
    cases = [Case("identical {}".format(seed), train(), ["--seed", str(seed)] + budget, {0, 77})
             for seed in range(1, given.identical + 1)]
    cases += [Case("counts of identical", train(), ["--only", "counts"], {0}, 60),
              Case("an added .item()", train(here="loss.item()"), ["--only", "counts"], {1}, 60),
              Case("a step 5 % longer", train(depth=BASE_DEPTH * 105 // 100), ["--only", "time"], {1}, 90)]
    both = {"base": train(text=RANKS), "command": TWO_RANKS}
    for seed in range(1, given.ranks + 1):
        options = ["--seed", str(seed)] + budget
        cases += [Case("two ranks, identical {}".format(seed), train(text=RANKS), options, {0, 77}, **both),
                  Case("two ranks, one 5 % longer {}".format(seed),
                       train(depth=BASE_DEPTH * 105 // 100, text=RANKS), options, {1}, words=["rank 1"], **both)]
    cases = [case for case in cases if not given.only or given.only in case.name]
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(given.at_once) as pool:
        for case, (code, seconds, lines) in zip(cases, pool.map(lambda case: case.run(stepgate), cases)):
            is_right = case.is_right(code, seconds, lines)
            wrong += not is_right
            print("{:<27} exit code {:>2}  {:6.1f} s  {}  {}".format(
                case.name, code, seconds, "as planted" if is_right else "NOT AS PLANTED",
                lines[-1] if lines else ""), flush=True)
            if not is_right or code:
                print("    " + "\n    ".join(lines), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
