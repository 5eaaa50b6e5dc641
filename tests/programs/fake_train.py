# SPDX-License-Identifier: MIT
"""For tests only: a training loop whose CUDA is faked. Arguments: the fake library, and if given
the milliseconds of a step, every how many steps it waits, and how many there are."""
import ctypes
import sys
import time

from torch.optim.optimizer import AdamW

cuda = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
cuda.cuInit(0)


def call(name, *words):
    cuda.fake_call(name.encode(), (ctypes.c_uint64 * len(words))(*words), 0)


WAIT = b"cudaStreamSynchronize_v3020"


def train(optimizer, waits, seconds):
    call("cudaLaunchKernel_v7000", 0xABC, 0, 0, 0, 0, 0, 0, 0, 0)
    if waits:
        cuda.fake_call(WAIT, (ctypes.c_uint64 * 1)(0), 0)  # the wait
    time.sleep(seconds)  # not a loop, which other work of a busy machine would lengthen
    optimizer.step()


milliseconds, every, steps = (list(map(float, sys.argv[2:])) + [0, 1, 40][len(sys.argv) - 2:])
optimizer = AdamW()
for step in range(int(steps)):
    train(optimizer, step % every == 0, milliseconds / 1000)
