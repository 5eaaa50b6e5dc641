# SPDX-License-Identifier: MIT
"""A training loop on random data whose counts are known by construction, with torch.profiler or without.

    python3 profiled.py [--trace OUT.json[.gz]] [--sync-events] [--stack] [NAME=N...]

NAME=N does a thing N times in every step: item (reads the loss), pageable (copies a batch of pageable memory), pinned (copies one of
pinned memory), wait (waits for the device), event (waits for an event), clone (copies on the device), empty_cache, small (launches
a kernel), poll (asks a stream), every=N (reads the loss in every Nth step too), graph (replays a graph of 5 kernels).
KNOWN has what each adds to a step; read_against_attach.py compares.
"""
import argparse

WIDTH, BATCH = 256, 64
WAIT, WARMUP, ACTIVE = 10, 5, 20
SIZE = 4 * BATCH * WIDTH

# Each thing adds this to the counts of a step, in every version of PyTorch.
KNOWN = {
    "item": {"waits": 1, "copies_to_host": 1, "copies": 1, "copy_bytes": 4},
    "pageable": {"waits": 1, "copies_to_device": 1, "copies": 1, "pageable_copies": 1, "copy_bytes": SIZE},
    "pinned": {"copies_to_device": 1, "copies": 1, "copy_bytes": SIZE},
    "wait": {"waits": 1, "device_waits": 1},
    "event": {"waits": 1},
    "clone": {"copies": 1, "copy_bytes": SIZE},
    "small": {"launches": 1},
    "graph": {"launches": 1, "graph_launches": 1, "graph_kernels": 5},
    "poll": {},
    "empty_cache": {},
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace")
    parser.add_argument("--sync-events", action="store_true")
    parser.add_argument("--stack", action="store_true")
    parser.add_argument("things", nargs="*")
    given = parser.parse_args()
    times = {name: int(number) for name, number in (thing.split("=") for thing in given.things)}

    import torch
    from torch import nn
    torch.manual_seed(1)
    device = torch.device("cuda")
    layers = [part for _ in range(4) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(BATCH, WIDTH, device=device)
    pageable, pinned = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH).pin_memory()
    small = torch.zeros(8, device=device)
    target = torch.empty_like(batch)
    event = torch.cuda.Event()
    graph = torch.cuda.CUDAGraph()
    replayed = torch.zeros(1024, device=device)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        replayed.add_(1)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(5):
            replayed.add_(1)

    def step(number):
        for _ in range(times.get("pageable", 0)):
            pageable.to(device)
        for _ in range(times.get("pinned", 0)):
            target.copy_(pinned, non_blocking=True)
        for _ in range(times.get("clone", 0)):
            target.copy_(batch)
        for _ in range(times.get("small", 0)):
            small.add_(1)
        for _ in range(times.get("graph", 0)):
            graph.replay()
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for _ in range(times.get("item", 0)):
            loss.item()
        if times.get("every", 0) and number % times["every"] == 0:
            loss.item()
        for _ in range(times.get("wait", 0)):
            torch.cuda.synchronize()
        for _ in range(times.get("event", 0)):
            event.record()
            event.synchronize()
        for _ in range(times.get("poll", 0)):
            torch.cuda.current_stream().query()
        for _ in range(times.get("empty_cache", 0)):
            torch.cuda.empty_cache()
        optimizer.step()

    if not given.trace:
        for number in range(WAIT + WARMUP + ACTIVE + 5):
            step(number)
        torch.cuda.synchronize()
        return
    from torch.profiler import ProfilerActivity, profile, schedule
    more = {}
    if given.sync_events:
        more["experimental_config"] = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=given.stack,
                 schedule=schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1),
                 on_trace_ready=lambda profiler: profiler.export_chrome_trace(given.trace), **more) as profiler:
        for number in range(WAIT + WARMUP + ACTIVE + 5):
            step(number)
            profiler.step()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
