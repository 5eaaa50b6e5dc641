# SPDX-License-Identifier: MIT
"""A small network on random data, with one of the mistakes that pytorch_512.toml and pytorch_4096.toml compare.

    python3 train.py [--wait step|item] [--copy pageable|pinned|ahead] [--anew] [--size 512] [--hidden 1024]
"""
import argparse
import time

import torch
from torch import nn

LAYERS, SCRATCH = 4, 8
HOST_SECONDS = 100e-6  # what a framework does between two steps


def batches(copy, shape, device):
    """Yields a batch that was copied to the device: pageable, pinned, or pinned and a step ahead on a stream of its own."""
    host = torch.randn(shape)
    if copy != "pageable":
        host = host.pin_memory()
    buffers = [torch.empty(shape, device=device) for _ in range(2)]
    if copy != "ahead":
        while True:
            yield buffers[0].copy_(host, non_blocking=True)
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    copied, used = ([torch.cuda.Event() for _ in buffers] for _ in range(2))

    def copy_into(number):
        with torch.cuda.stream(side):
            side.wait_event(used[number])
            buffers[number].copy_(host, non_blocking=True)
            copied[number].record()

    copy_into(0)
    number = 0
    while True:
        copy_into(1 - number)
        main.wait_event(copied[number])
        yield buffers[number]
        used[number].record()
        number = 1 - number


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wait", choices=("step", "item"))
    parser.add_argument("--copy", choices=("pageable", "pinned", "ahead"), default="pinned")
    parser.add_argument("--anew", action="store_true", help="allocates its scratch tensors in every step")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--hidden", type=int, default=1024)
    given = parser.parse_args()

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device, shape = torch.device("cuda"), (given.size, given.hidden)
    layers = [part for _ in range(LAYERS) for part in (nn.Linear(given.hidden, given.hidden), nn.ReLU())]
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    scratch = [torch.empty(shape, device=device) for _ in range(SCRATCH)]
    source = batches(given.copy, shape, device)
    while True:
        batch = next(source)
        for number in range(SCRATCH):
            if given.anew:
                scratch[number] = torch.empty(shape, device=device)
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if given.wait == "step":
            torch.cuda.synchronize()
        if given.wait == "item":
            loss.item()
        end = time.perf_counter() + HOST_SECONDS
        while time.perf_counter() < end:
            pass


if __name__ == "__main__":
    main()
