# SPDX-License-Identifier: MIT
"""Trains a small network on random data, with three mistakes (docs/three_mistakes.md)."""
import os

import torch
from torch import nn

STEPS, PARTS, BATCH, WIDTH, CLASSES = 60, 4, 64, 256, 10


def main():
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES))
    model.to(device)
    if "WORLD_SIZE" in os.environ:
        torch.distributed.init_process_group("nccl")
        model = nn.parallel.DistributedDataParallel(model, device_ids=[device.index])
    optimizer = torch.optim.AdamW(model.parameters())
    parts = [(torch.randn(BATCH, WIDTH), torch.randint(CLASSES, (BATCH,)))
             for _ in range(PARTS)]
    for step in range(STEPS):
        optimizer.zero_grad()
        for part, (samples, labels) in enumerate(parts):
            samples = samples.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            loss = nn.functional.cross_entropy(model(samples), labels) / PARTS
            loss.backward()
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
