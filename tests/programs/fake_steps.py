# SPDX-License-Identifier: MIT
"""For tests only: a loop without PyTorch, whose steps are named by stepgate.step. Arguments: the fake
library, the milliseconds of a step and how many there are."""
import ctypes
import sys
import time

import stepgate

cuda = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
cuda.cuInit(0)
queued = 0


def wait():
    global queued
    time.sleep(queued)
    queued = 0


@stepgate.step(wait=wait)
def train_step(seconds):
    """Queues work, as a device does that the host does not wait for."""
    global queued
    cuda.fake_call(b"cudaLaunchKernel_v7000", (ctypes.c_uint64 * 9)(0xABC), 0)
    queued += seconds


for _ in range(int(sys.argv[3])):
    train_step(float(sys.argv[2]) / 1000)
