# SPDX-License-Identifier: MIT
"""For tests only: a training loop whose CUDA is faked. Argument: the fake library."""
import ctypes
import sys

from torch.optim.optimizer import AdamW

cuda = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
cuda.cuInit(0)


def call(name, *words):
    cuda.fake_call(name.encode(), (ctypes.c_uint64 * len(words))(*words), 0)


WAIT = b"cudaStreamSynchronize_v3020"


def train(optimizer):
    call("cudaLaunchKernel_v7000", 0xABC, 0, 0, 0, 0, 0, 0, 0, 0)
    cuda.fake_call(WAIT, (ctypes.c_uint64 * 1)(0), 0)  # the wait
    optimizer.step()


optimizer = AdamW()
for step in range(40):
    train(optimizer)
