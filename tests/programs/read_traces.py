# SPDX-License-Identifier: MIT
"""Traces as torch.profiler writes them, of steps whose counts are known by construction.

    read_traces.py OUT.json [--gzip] [--seed N] [--steps N] [--repeat N] [WORD...]

Each word adds one thing to every step, as "wait" or "copy.pageable", or changes the trace as a whole, as "no_work"; the words
are the functions below that have them for names. Times are microseconds with three decimals, events are in random order, and
names have the suffixes that Kineto leaves. --repeat writes the events so many times over, at later times, for large files.
"""
import argparse
import gzip
import json
import random

THREAD, PROCESS, DEVICE = 4711, 4711, 0
LOADER_THREAD, AUTOGRAD_THREAD = 4712, 4713


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.now = 5_412_345_678_901_000 + self.random.randrange(1_000_000)  # nanoseconds
        self.device = self.now
        self.correlation = 1000
        self.external = 0
        self.events = []

    def event(self, category, name, begin, length, process, thread, args):
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": begin, "dur": length, "args": args})

    def idle(self, nanoseconds):
        self.now += nanoseconds

    def call(self, name, length=3000, category="cuda_runtime", thread=THREAD, correlation=None):
        if correlation is None:
            self.correlation += 1
            correlation = self.correlation
        begin = self.now
        self.event(category, name, begin, length, PROCESS, thread, {"External id": self.external, "cbid": 211, "correlation": correlation})
        self.now += length + self.random.randrange(200, 900)
        return correlation

    def work(self, category, name, length, correlation, stream=7, graph=0, **args):
        begin = max(self.device, self.now + 2000)
        self.device = begin + length
        self.event(category, name, begin, length, DEVICE, stream,
                   {"External id": self.external, "device": DEVICE, "context": 1, "stream": stream, "correlation": correlation,
                    "graph node id": graph, **args})
        return begin

    def kernel(self, name, length, correlation, **args):
        self.work("kernel", name, length, correlation, queued=0, **{"registers per thread": 32, "shared memory": 0, "blocks per SM": 0.5,
                  "grid": [132, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 40, **args})

    def wait_for_device(self):
        """A call of the host that ends when the device is done."""
        return max(2000, self.device - self.now)


def launch(t):
    t.kernel("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int, float)", 5000, t.call("cudaLaunchKernel_v7000"))


def gemm(t):
    t.kernel("sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32", 90_000, t.call("cudaLaunchKernelExC"))


def long_kernel(t):
    t.kernel("void at::native::reduce_kernel<512, 1>(int)", 400_000, t.call("cudaLaunchKernel"))


def tiny(t):
    t.kernel("void at::native::fill_kernel<1>(int)", 700, t.call("cudaLaunchKernel"))


def launch_driver(t):
    """As Triton launches."""
    t.kernel("triton_poi_fused_add_0", 4000, t.call("cuLaunchKernel", category="cuda_driver"))


def launch_nested_twice(t):
    """The same where the driver's call has a number of its own, which its kernel has too."""
    t.call("cudaLaunchKernelExC_v11060", 6000)
    t.now -= 6000
    correlation = t.call("cuLaunchKernelEx", 2000, category="cuda_driver")
    t.now += 4000
    t.kernel("nvjet_hsh_128x256_64x4", 20_000, correlation)


def wait_nested(t):
    """A wait whose record of the device's side has a number that no call has."""
    t.call("cudaStreamSynchronize", 9000)
    t.correlation += 1
    t.event("cuda_sync", "Stream Sync", t.now - 8000, 1000, DEVICE, 1_000_007, {"correlation": t.correlation})


def launch_nested(t):
    """A call of the runtime, and that of the driver inside it."""
    correlation = t.call("cudaLaunchKernelExC_v11060", 6000)
    t.now -= 6000
    t.call("cuLaunchKernelEx", 2000, category="cuda_driver", correlation=correlation)
    t.now += 4000
    t.kernel("nvjet_hsh_128x256_64x4", 20_000, correlation)


def autograd(t):
    t.kernel("void gemmk1_kernel<int, float>(int)", 5000, t.call("cudaLaunchKernel", thread=AUTOGRAD_THREAD))


def wait(t):
    t.external += 1
    outer = t.now
    t.idle(500)
    inner = t.now
    t.idle(500)
    t.call("cudaStreamSynchronize", t.wait_for_device())
    t.event("cpu_op", "aten::_local_scalar_dense", inner, t.now - inner, PROCESS, THREAD, {"External id": t.external})
    t.idle(500)
    t.event("cpu_op", "aten::item", outer, t.now - outer, PROCESS, THREAD, {"External id": t.external})
    t.idle(500)


def wait_synced(t):
    """With enable_cuda_sync_events: a record of the device's side as well."""
    correlation = t.call("cudaStreamSynchronize_v3020", t.wait_for_device())
    t.event("cuda_sync", "Stream Sync", t.now - 1500, 1000, DEVICE, 1_000_007, {"correlation": correlation, "cuda_sync_kind": "Stream Sync"})


def wait_driver(t):
    """A wait through the driver: its record of the device's side is all that there is."""
    t.correlation += 1
    t.event("cuda_sync", "Stream Sync", t.now, 1000, DEVICE, 1_000_007, {"correlation": t.correlation, "cuda_sync_kind": "Stream Sync"})
    t.idle(1500)


def wait_event_driver(t):
    """A stream that waits for another one through the driver: a record without a call, and no wait of the host."""
    t.correlation += 1
    t.event("cuda_sync", "Stream Wait Event", t.now, 0, DEVICE, 13, {"correlation": t.correlation, "wait_on_stream": 7})


def wait_device(t):
    t.call("cudaDeviceSynchronize", t.wait_for_device())


def stream_wait_event(t):
    """No wait of the host."""
    correlation = t.call("cudaStreamWaitEvent")
    t.event("cuda_sync", "Stream Wait Event", t.now - 1500, 0, DEVICE, 13, {"correlation": correlation, "wait_on_stream": 7})


def event_sync(t):
    t.call("cudaEventSynchronize", t.wait_for_device())


def poll(t):
    t.call("cudaEventQuery_ptsz")


def copy(t, name, size, call="cudaMemcpyAsync"):
    t.work("gpu_memcpy", name, max(1500, size // 20), t.call(call), bytes=size, **{"memory bandwidth (GB/s)": 20.0})


def copy_pageable(t):
    copy(t, "Memcpy HtoD (Pageable -> Device)", 1_048_576)


def copy_pinned(t):
    copy(t, "Memcpy HtoD (Pinned -> Device)", 524_288, "cudaMemcpyAsync_ptsz")


def copy_back(t):
    copy(t, "Memcpy DtoH (Device -> Pageable)", 4)
    t.call("cudaStreamSynchronize", t.wait_for_device())


def copy_on_device(t):
    copy(t, "Memcpy DtoD (Device -> Device)", 4096)


def copy_blocking(t):
    copy(t, "Memcpy HtoD (Pinned -> Device)", 64, "cudaMemcpy")


def copy_driver(t):
    """A copy through the driver: work without a call."""
    t.correlation += 1
    t.work("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 2000, t.correlation, bytes=100)


def copy_unknown(t):
    copy(t, "Memcpy HtoD (Unknown -> Device)", 8)


def malloc(t):
    t.call("cudaMalloc")


def free(t):
    t.call("cudaFree", 20_000)


def pin(t):
    t.call("cudaHostAlloc", 30_000)


def fill(t):
    t.work("gpu_memset", "Memset (Device)", 1200, t.call("cudaMemsetAsync"), bytes=256)


def graph(t):
    """Three kernels and a copy in one graph."""
    correlation = t.call("cudaGraphLaunch_v10000")
    for node in range(3):
        t.work("kernel", "void elementwise_kernel<2>(int)", 3000, correlation, graph=100 + node, grid=[1, 1, 1], block=[32, 1, 1])
    t.work("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 1500, correlation, graph=104, bytes=16)


def graph_driver(t):
    """A graph that the driver launches: kernels without a launch."""
    t.correlation += 1
    t.work("kernel", "void elementwise_kernel<2>(int)", 3000, t.correlation, graph=100)


def capture(t):
    t.call("cudaStreamBeginCapture")
    t.call("cudaLaunchKernel")
    t.call("cudaMemcpyAsync")
    t.call("cudaStreamEndCapture")


def collective(t):
    t.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 50_000, t.call("cudaLaunchKernelExC"),
             **{"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "Float"})


def loader(t):
    t.event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", t.now, 500_000, PROCESS, THREAD, {})
    t.idle(500_000)


def loader_thread(t):
    """A thread that launches nothing."""
    t.call("cudaHostAlloc", thread=LOADER_THREAD)
    t.call("cudaEventSynchronize", thread=LOADER_THREAD)


def python(t):
    """Functions of Python around a wait, as with_stack=True records them."""
    begin = t.now
    t.idle(100)
    library = t.now
    wait(t)
    t.event("python_function", "torch/_tensor.py(30): item", library, t.now - library, PROCESS, THREAD, {"Python id": 2})
    t.event("python_function", "/home/me/train.py(88): log_loss", begin, t.now - begin, PROCESS, THREAD, {"Python id": 1})


STEP_WORDS = {name.replace("_", ".", 1) if name.startswith(("copy_", "launch_", "wait_", "graph_")) else name: function for name, function in
              [(f.__name__, f) for f in (launch, gemm, long_kernel, tiny, launch_driver, launch_nested, launch_nested_twice, wait_nested, autograd, wait, wait_synced, wait_driver, wait_event_driver, wait_device,
               stream_wait_event, event_sync, poll, copy_pageable, copy_pinned, copy_back, copy_on_device, copy_blocking, copy_driver, copy_unknown,
               malloc, free, pin, fill, graph, graph_driver, capture, collective, loader, loader_thread, python)]}


def trace_of(words, seed=1, steps=10, rank=None, world_size=None, repeat=1):
    """The trace as a text. Words of the form "thing@10" are done in every tenth step alone, "thing*3" thrice."""
    t = Writer(seed)
    mark = next((word.split("=")[1] for word in words if word.startswith("mark=")), "profiler")
    for number in range(steps * repeat):
        begin = t.now
        t.idle(1000)
        for word in words:
            word, _, every = word.partition("@")
            word, _, times = word.partition("*")
            if word in STEP_WORDS and number % int(every or 1) == 0:
                for _ in range(int(times or 1)):
                    STEP_WORDS[word](t)
        optimizer = t.now
        if mark in ("optimizer", "profiler"):
            t.idle(2000)
            t.event("user_annotation", "Optimizer.step#SGD.step", optimizer, t.now - optimizer, PROCESS, THREAD, {})
        t.idle(1000)
        if mark == "profiler":
            t.event("user_annotation", f"ProfilerStep#{number + 3}", begin, t.now - begin, PROCESS, THREAD, {})
            t.event("gpu_user_annotation", f"ProfilerStep#{number + 3}", begin - 1, t.now - begin + 2, DEVICE, 7, {})
        elif mark == "range":
            t.event("user_annotation", "step", begin, t.now - begin, PROCESS, THREAD, {})
        t.idle(3000)
    events = t.events
    if "no_work" in words:
        events = [event for event in events if event["pid"] != DEVICE or event["cat"] == "cuda_sync"]
    if "lost" in words:  # the records of the last kernels
        kernels = sorted((event for event in events if event["cat"] == "kernel"), key=lambda event: event["ts"])[-3:]
        events = [event for event in events if event not in kernels]
    if "before" in words:  # a kernel that was launched before the recording
        events.append({"ph": "X", "cat": "kernel", "name": "old", "pid": 0, "tid": 7, "ts": events[0]["ts"] - 5000, "dur": 100, "args": {"correlation": 5, "stream": 7, "device": 0}})
    if "negative" in words:
        events.append({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": events[0]["ts"], "dur": -5000, "args": {"correlation": 999999, "stream": 7, "device": 0}})
    if "overlap" in words:
        first = next(event for event in events if event["cat"] == "kernel")
        events.append({**first, "ts": first["ts"] + 1, "args": {**first["args"]}})
    t.random.shuffle(events)
    lines = []
    for event in events:
        line = json.dumps({**event, "ts": "TS", "dur": "DUR"})
        for mark, value in (("TS", event["ts"]), ("DUR", event["dur"])):
            sign = "-" if value < 0 else ""
            line = line.replace(f'"{mark}"', f"{sign}{abs(value) // 1000}.{abs(value) % 1000:03d}")
        lines.append(line)
    head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150754820096, "computeMajor": 9, "computeMinor": 0}],
            "cupti_version": 26, "cuda_runtime_version": 13000, "cuda_driver_version": 13000}
    if rank is not None:
        head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world_size, "pg_count": 1, "pg_config": [{"pg_name": "0", "ranks": [0, 1]}],
                                   "nccl_version": "2.28.9"}
    head |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": 1759478304000000000}
    text = json.dumps(head, indent=2)[:-2] + ',\n  "traceEvents": [\n'
    text += '  {"name": "process_name", "ph": "M", "ts": 5412345678901.000, "pid": 4711, "tid": 0, "args": {"name": "python3"}},\n  '
    text += ",\n  ".join(lines)
    text += ',\n  {"ph": "s", "id": 1001, "pid": 4711, "tid": 4711, "ts": 5412345678901.000, "cat": "ac2g", "name": "ac2g"}\n'
    return text + '  ],\n  "traceName": "trace.json"\n}\n'


def write(path, text, compress):
    data = text.encode()
    with open(path, "wb") as file:
        file.write(gzip.compress(data, 1, mtime=0) if compress else data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--gzip", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--world-size", type=int)
    given = parser.parse_args()
    write(given.out, trace_of(given.words, given.seed, given.steps, given.rank, given.world_size, given.repeat), given.gzip)


if __name__ == "__main__":
    main()
