# SPDX-License-Identifier: MIT
"""For tests only: a training loop of steps of 10 ms. Arguments: how it behaves, and how many steps
it makes (10,000)."""
import os
import signal
import socket
import subprocess
import sys
import threading
import time

how = sys.argv[1] if len(sys.argv) > 1 else ""
steps = int(sys.argv[2]) if len(sys.argv) > 2 and how not in ("lies", "leaves") else 10000
STEP = 0.010

if how == "replaces_clock_first":  # before torch, and by that the hook, is imported
    real = time.perf_counter_ns
    time.perf_counter_ns = lambda: int(real() / 1.2)
if os.environ.get("FAKE_PID_FILE"):
    with open(os.environ["FAKE_PID_FILE"], "w") as file:
        file.write(str(os.getpid()))

if how == "floods":
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["STEPGATE_HOLD"])
    connection.sendall(b"x" * (1 << 20))
    time.sleep(1000)
if how == "lies":  # speaks for the hook
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["STEPGATE_HOLD"])
    connection.sendall(sys.argv[2].encode() + b"\n")
    time.sleep(1000)
if how == "leaves":  # something else in the place of a trace
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["STEPGATE_HOLD"])
    connection.sendall(b'{"program": "p", "device": "", "steps": "s", "device_bytes": 0}\n')
    for rank in range(2):
        trace = "{}.rank{}.json".format(os.environ["STEPGATE_HOLD"], rank)
        {"link": lambda: os.symlink(trace, trace), "folder": lambda: os.makedirs(trace + "/a"),
         "pipe": lambda: os.mkfifo(trace)}[sys.argv[2]]()
    connection.sendall(b'{"traced": 2}\n')
    time.sleep(1000)
if how == "ranks":  # a launcher that closes descriptors; rank 1 is first
    ranks = [subprocess.Popen([sys.executable, __file__, "queue"],
                              env=dict(os.environ, FAKE_RANK=rank, LOCAL_WORLD_SIZE="2")) for rank in "10"]
    sys.exit(max(rank.wait() for rank in ranks))

import torch
from torch.optim.optimizer import AdamW

RATES = {"slow_clock": 0.1, "slower_clock": 1 / 1.2, "fast_clock": 10}
if how in RATES:  # the one that the hook took
    held = sys.modules["sitecustomize"].stepgate_steps._ended
    taken = held._clock
    held._clock = lambda: int(taken() * RATES[how])
if "FAKE_RANK" in os.environ:  # as a process that is spawned and then told its rank
    os.environ["RANK"] = os.environ["FAKE_RANK"]
    time.sleep(0.2 if os.environ["RANK"] == "0" else 0)
if how == "no_optimizer":
    time.sleep(1000 if steps else 0)
    sys.exit(7)
if how == "ignores_signals":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if how == "says_its_end":
    signal.signal(signal.SIGTERM, lambda *_: (open(os.environ["FAKE_STEPS_FILE"], "w").close(), os._exit(0)))
if how == "loads":  # a thread, and a process that left the session; both write on and on
    def load(name):
        while True:
            time.sleep(0.002)
            with open(os.environ["FAKE_STEPS_FILE"] + name, "a") as file:
                file.write("x")

    threading.Thread(target=load, args=("thread",), daemon=True).start()
    if os.fork() == 0:
        os.setsid()
        load("process")
if how == "replaces_clock":
    time.perf_counter_ns = time.perf_counter = lambda: 0
optimizer, second = AdamW(), AdamW()
for step in range(steps):
    if "FAKE_STEPS_FILE" in os.environ:
        with open(os.environ["FAKE_STEPS_FILE"] + os.environ.get("RANK", "0"), "w") as file:
            file.write(str(step))
    if how == "queue":
        torch.cuda.enqueue(STEP)
        time.sleep(STEP / 2)
    else:
        time.sleep(STEP)
    optimizer.step()
    if how == "renews" and step % 4 == 3:
        optimizer = AdamW()
    if how == "two_optimizers":
        time.sleep(STEP)
        second.step()
    if how == "forks" and step == 0:
        if os.fork() == 0:  # as a worker of a DataLoader; it must not answer
            for _ in range(1000):
                time.sleep(STEP / 10)
                optimizer.step()
            os._exit(0)
    if how == "hangs" and step == 2:
        time.sleep(1000)
