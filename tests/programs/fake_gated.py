# SPDX-License-Identifier: MIT
"""For tests only: a training loop whose CUDA and PyTorch are faked, as one side of a gate. Tests
write it with another line in the place of HERE or of a number."""
import ctypes
import os
import time

import torch
from torch.optim.optimizer import AdamW

cuda = ctypes.CDLL(os.environ["FAKE_CUDA"], mode=ctypes.RTLD_GLOBAL)
cuda.cuInit(0)


def call(name, *words):
    cuda.fake_call(name, (ctypes.c_uint64 * len(words))(*words), 0)


def launch():
    call(b"cudaLaunchKernel_v7000", 0xABC, 0, 0, 0, 0, 0, 0, 0, 0)


def wait():
    call(b"cudaStreamSynchronize_v3020", 0)


def train(step):
    launch()
    wait()
    torch.cuda.enqueue(0.005)
    pass  # HERE


optimizer = AdamW()
for step in range(100000):
    train(step)
    optimizer.step()
