# SPDX-License-Identifier: MIT
"""What being attached costs a step of 44 launches: callbacks switched off and on in one process.

    stepgate attach --step-call none -- python3 attach_cost.py

Prints the ratio of a step's time with callbacks to that without, of each of ten switches and the
median. Ends with 1 where the median is above 1.05.
"""
import ctypes
import os
import statistics
import sys
import time

import torch
from torch import nn

SWITCHES = 10
STEPS = 300


def main():
    library = ctypes.CDLL(os.environ["STEPGATE_ATTACH_LIBRARY"])
    width, batch = 256, 64
    layers = [part for _ in range(4) for part in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(width, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(batch, width, device="cuda")
    labels = torch.randint(0, 10, (batch,), device="cuda")

    def seconds():
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(STEPS):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(data), labels).backward()
            optimizer.step()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    seconds()
    ratios = []
    for switch in range(SWITCHES):
        times = {}
        for on in ((0, 1, 1, 0) if switch % 2 else (1, 0, 0, 1)):
            library.stepgate_attach_watch(on)
            times[on] = times.get(on, 0) + seconds()
        ratios.append(times[1] / times[0])
    median = statistics.median(ratios)
    print("ratios:", " ".join(f"{ratio:.3f}" for ratio in ratios), f"median: {median:.3f}")
    return 1 if median > 1.05 else 0


if __name__ == "__main__":
    sys.exit(main())
