# SPDX-License-Identifier: MIT
"""Training loops with one published mistake each, and the same loops without it.

    python3 mistakes.py NAME good|bad

Each loop has 40 steps on random data. COUNTS has what a step of either must count, by construction;
mistakes_test.py compares.
"""
import sys

import torch
from torch import nn

STEPS = 40
WIDTH = 256
BATCH = 64

# Name: counts of a step of the good loop, of the bad one, and the text of the line at fault (None
# where the fault is no call that waits or allocates).
COUNTS = {
    "wait": ({"waits": 0}, {"waits": 1, "device_waits": 1}, "torch.cuda.synchronize()"),
    "log": ({"waits": 0.1}, {"waits": 1}, "loss.item()"),
    "print": ({"waits": 0}, {"waits": ">0"}, "print(loss"),
    "pageable": ({"pageable_copies": 0, "copies_to_device": 1},
                 {"pageable_copies": 1, "copies_to_device": 1}, "source.to(device"),
    "pin_memory": ({"pageable_copies": 0}, {"pageable_copies": ">0"}, "batch.to(device"),
    "empty_cache": ({"device_allocs": 0, "device_frees": 0},
                    {"device_allocs": ">0", "device_frees": ">0"}, "torch.cuda.empty_cache()"),
    "allocation": ({"device_allocs": 0}, {"device_allocs": 1}, "torch.empty(held_bytes"),
    "per_tensor_optimizer": ({"waits": 0}, {"launches": ">good"}, None),
    "zeroed_gradients": ({"waits": 0}, {"launches": ">good"}, None),
    "many_copies": ({"copies_to_device": 1}, {"copies_to_device": 16}, None),
    "graph_break": ({"waits": 0}, {"waits": 1}, "if hidden.sum()"),
}


def model_of(name, bad):
    if name == "graph_break":
        class Branching(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.last = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 10)

            def forward(self, batch):
                hidden = self.first(batch)
                if bad:
                    if hidden.sum() > 1e30:
                        hidden = hidden * 2
                return self.last(hidden)

        return torch.compile(Branching().cuda())
    layers = [part for _ in range(4) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(WIDTH, 10)).cuda()


def batches_of(name, bad, device):
    """Yields batches on the device, as the mistake has them."""
    source = torch.randn(BATCH, WIDTH)
    if name == "pageable" and not bad:
        source = source.pin_memory()
    if name == "pin_memory":
        data = torch.utils.data.TensorDataset(torch.randn(BATCH * (STEPS + 1), WIDTH))
        loader = torch.utils.data.DataLoader(data, batch_size=BATCH, pin_memory=not bad)
        for (batch,) in loader:
            yield batch.to(device, non_blocking=True)
    pinned = source.pin_memory()
    there = torch.empty(BATCH, WIDTH, device=device)
    while True:
        if name == "pageable":
            yield source.to(device, non_blocking=True)
        elif name == "many_copies":
            parts = 16 if bad else 1
            for part, target in zip(pinned.chunk(parts), there.chunk(parts)):
                target.copy_(part, non_blocking=True)
            yield there
        else:
            yield there


def train(name, bad):
    device = torch.device("cuda")
    model = model_of(name, bad)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3,
                                 foreach=not (name == "per_tensor_optimizer" and bad))
    labels = torch.randint(0, 10, (BATCH,), device=device)
    held, held_bytes = [], 32 << 20
    batches = batches_of(name, bad, device)
    for step in range(STEPS):
        batch = next(batches)
        optimizer.zero_grad(set_to_none=not (name == "zeroed_gradients" and bad))
        loss = nn.functional.cross_entropy(model(batch), labels)
        loss.backward()
        if name == "wait" and bad:
            torch.cuda.synchronize()
        if name == "log" and (bad or step % 10 == 0):
            loss.item()
        if name == "print" and bad:
            print(loss, file=sys.stderr)
        if name == "empty_cache" and bad:
            torch.cuda.empty_cache()
        if name == "allocation" and bad:
            held.append(torch.empty(held_bytes, dtype=torch.uint8, device=device))
        optimizer.step()
    torch.cuda.synchronize()


if __name__ == "__main__":
    torch.manual_seed(0)
    train(sys.argv[1], sys.argv[2] == "bad")
