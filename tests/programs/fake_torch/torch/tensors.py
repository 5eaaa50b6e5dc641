# SPDX-License-Identifier: MIT
"""For tests only: as much of PyTorch as examples/train.py uses. Each operation makes the CUDA calls
that PyTorch makes, of the fake library that FAKE_CUDA names."""
import ctypes
import os

PAGEABLE, PINNED, DEVICE = 0x1000, 0x7000, 0x9000
TO_DEVICE, TO_HOST = 1, 2
KERNEL, ALL_REDUCE = 0xABC, 0xCCC
_library = None


def call(name, *words):
    global _library
    if _library is None:
        _library = ctypes.CDLL(os.environ["FAKE_CUDA"], mode=ctypes.RTLD_GLOBAL)
        _library.cuInit(0)
    _library.fake_call(name.encode(), (ctypes.c_uint64 * len(words))(*words), 0)


def launch():
    call("cudaLaunchKernel_v7000", KERNEL, 0, 0, 0, 0, 0, 0, 0, 0)


class device:
    def __init__(self, kind, index=0):
        self.kind, self.index = kind, index


class Tensor:
    def __init__(self, place=PAGEABLE, after_backward=None):
        self.place, self.after_backward = place, after_backward

    def to(self, to, non_blocking=False):
        call("cudaMemcpyAsync_v3020", DEVICE, self.place, 4096, TO_DEVICE, 0)
        if not non_blocking:
            call("cudaStreamSynchronize_v3020", 0)
        return Tensor(DEVICE)

    def pin_memory(self):
        return Tensor(PINNED)

    def __truediv__(self, number):
        launch()
        return Tensor(DEVICE, self.after_backward)

    def backward(self):
        launch()
        if self.after_backward:
            self.after_backward()

    def item(self):
        call("cudaMemcpyAsync_v3020", PINNED, self.place, 4, TO_HOST, 0)
        call("cudaStreamSynchronize_v3020", 0)
        return 0.0


def randn(*_):
    return Tensor()


def randint(*_):
    return Tensor()
