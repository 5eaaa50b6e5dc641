# SPDX-License-Identifier: MIT
"""A training loop on random data whose counts are known by construction, with torch.profiler or without.

    python3 profiled.py [--trace OUT.json[.gz]] [--sync-events] [--stack] [NAME=N...]

NAME=N does a thing N times in every step, once loss.backward() is queued: THINGS has them all. Two are no such thing:
every=N reads the loss in every Nth step too, and hook=N reads gradients in the backward pass, on the thread of
autograd. KNOWN has what each adds to a step, in every version of PyTorch; read_against_attach.py compares.
"""
import argparse
import threading

WIDTH, BATCH = 256, 64
WAIT, WARMUP, ACTIVE = 10, 5, 20
SIZE = 4 * BATCH * WIDTH

READ = {"waits": 1, "copies_to_host": 1, "copies": 1}
KNOWN = {
    "item": {**READ, "copy_bytes": 4},
    "hook": {**READ, "copy_bytes": 4},
    "thread": {**READ, "copy_bytes": 4},
    "cpu": {**READ, "copy_bytes": 4, "pageable_copies": 1, "blocking_copies": 1},
    "mask": READ,
    "finite": READ,
    "scaler": {**READ, "copies": 3},  # its scale and its flag are copied within the device
    "pageable": {"waits": 1, "copies_to_device": 1, "copies": 1, "pageable_copies": 1, "copy_bytes": SIZE},
    "scalar": {"waits": 1, "copies_to_device": 1, "copies": 1, "pageable_copies": 1, "blocking_copies": 1, "copy_bytes": 4},
    "pinned": {"copies_to_device": 1, "copies": 1, "copy_bytes": SIZE},
    "late": {"waits": 1, "copies_to_host": 1, "copies": 1, "pageable_copies": 0, "copy_bytes": 4},
    "wait": {"waits": 1, "device_waits": 1},
    "event": {"waits": 1},
    "clone": {"copies": 1, "copy_bytes": SIZE},
    "small": {"launches": 1},
    "cast": {"launches": 1, "waits": 0},
    "compiled": {"launches": 1, "waits": 0},
    "side": {"launches": 1, "waits": 0},
    "graph": {"launches": 1, "graph_launches": 1, "graph_kernels": 5},
    "second": {"waits": 0},
    "lstm": {"copies_to_host": 0},
    "sparse": {"copies_to_device": 0},
    "recompute": {"waits": 0, "copies": 0},
    "poll": {},
    "empty_cache": {},
}


def read_gradient(gradient):
    gradient.item()


class Loop:
    def __init__(self, torch, times):
        nn = torch.nn
        self.torch, self.times = torch, times
        self.device = device = torch.device("cuda")
        layers = [part for _ in range(4) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
        self.model = nn.Sequential(*layers, nn.Linear(WIDTH, 1)).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.batch = torch.randn(BATCH, WIDTH, device=device)
        self.host, self.pinned = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH).pin_memory()
        self.small = torch.zeros(8, device=device)
        self.target = torch.empty_like(self.batch)
        self.event, self.late = torch.cuda.Event(), torch.zeros(1).pin_memory()
        self.mask = torch.arange(BATCH, device=device) % 2 == 0
        self.scaler = torch.amp.GradScaler("cuda", init_scale=1.0, growth_interval=10**6)
        self.side = torch.cuda.Stream()
        self.graph = torch.cuda.CUDAGraph()
        replayed = torch.zeros(1024, device=device)
        with torch.cuda.stream(self.side):
            replayed.add_(1)
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph):
            for _ in range(5):
                replayed.add_(1)
        other = nn.Linear(WIDTH, 1).cuda()
        other.weight.grad, other.bias.grad = torch.ones_like(other.weight), torch.ones_like(other.bias)
        self.second = torch.optim.SGD(other.parameters(), lr=1e-3)
        self.lstm = nn.LSTM(WIDTH, 64).cuda()
        self.embedding = nn.Embedding(1000, 16, sparse=True).cuda()
        self.tokens = torch.randint(0, 1000, (BATCH,), device=device)
        self.compiled = torch.compile(lambda x: x * 2 + 1) if "compiled" in times else None

    def do_late(self, loss):
        self.event.synchronize()
        self.late.copy_(loss.detach().view(1), non_blocking=True)
        self.event.record()

    def do_event(self, _):
        self.event.record()
        self.event.synchronize()

    def do_thread(self, loss):
        reader = threading.Thread(target=lambda: (loss.detach() * 2).item())
        reader.start()
        reader.join()

    def do_scaler(self, loss):
        self.scaler.scale(loss.detach())
        self.scaler.step(self.second)
        self.scaler.update()

    def do_side(self, _):
        self.side.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(self.side):
            self.small.add_(1)
        self.torch.cuda.current_stream().wait_stream(self.side)

    def do_sparse(self, _):
        self.embedding.weight.grad = None
        self.embedding(self.tokens).sum().backward()
        self.embedding.weight.grad.coalesce()

    def do_recompute(self, _):
        from torch.utils.checkpoint import checkpoint
        checkpoint(self.model, self.batch, use_reentrant=False).sum().backward()

    THINGS = {
        "item": lambda self, loss: loss.item(),
        "cpu": lambda self, loss: loss.cpu(),
        "thread": do_thread,
        "mask": lambda self, loss: self.batch[self.mask],
        "finite": lambda self, loss: bool(self.torch.isfinite(loss)),
        "scaler": do_scaler,
        "pageable": lambda self, loss: self.host.to(self.device),
        "scalar": lambda self, loss: self.torch.tensor(3.0, device=self.device),
        "pinned": lambda self, loss: self.target.copy_(self.pinned, non_blocking=True),
        "late": do_late,
        "wait": lambda self, loss: self.torch.cuda.synchronize(),
        "event": do_event,
        "clone": lambda self, loss: self.target.copy_(self.batch),
        "small": lambda self, loss: self.small.add_(1),
        "cast": lambda self, loss: self.batch.double(),
        "compiled": lambda self, loss: self.compiled(self.batch),
        "side": do_side,
        "graph": lambda self, loss: self.graph.replay(),
        "second": lambda self, loss: self.second.step(),
        "lstm": lambda self, loss: self.lstm(self.batch.view(8, 8, WIDTH)),
        "sparse": do_sparse,
        "recompute": do_recompute,
        "poll": lambda self, loss: self.torch.cuda.current_stream().query(),
        "empty_cache": lambda self, loss: self.torch.cuda.empty_cache(),
    }

    def step(self, number):
        loss = self.model(self.batch).square().mean()
        for _ in range(self.times.get("hook", 0)):
            loss.register_hook(read_gradient)
        self.optimizer.zero_grad()
        loss.backward()
        for name, thing in self.THINGS.items():
            for _ in range(self.times.get(name, 0)):
                thing(self, loss)
        if self.times.get("every", 0) and number % self.times["every"] == 0:
            loss.item()
        self.optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace")
    parser.add_argument("--sync-events", action="store_true")
    parser.add_argument("--stack", action="store_true")
    parser.add_argument("things", nargs="*")
    given = parser.parse_args()
    times = {name: int(number) for name, number in (thing.split("=") for thing in given.things)}
    unknown = set(times) - set(Loop.THINGS) - {"every", "hook"}
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: nothing that a step does")

    import torch
    torch.manual_seed(1)
    loop = Loop(torch, times)
    numbers = range(WAIT + WARMUP + ACTIVE + 5)
    if not given.trace:
        for number in numbers:
            loop.step(number)
        torch.cuda.synchronize()
        return
    from torch.profiler import ProfilerActivity, profile, schedule
    more = {}
    if given.sync_events:
        more["experimental_config"] = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=given.stack,
                 schedule=schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1),
                 on_trace_ready=lambda profiler: profiler.export_chrome_trace(given.trace), **more) as profiler:
        for number in numbers:
            loop.step(number)
            profiler.step()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
