# SPDX-License-Identifier: MIT
"""For tests only: as much of PyTorch as the hook looks at, with a device that works off a queue."""
import os
import time

from torch import nn, optim, profiler
from torch.tensors import device, randint, randn

__version__ = os.environ.get("TORCH_FAKE_VERSION", "9.9")


class cuda:
    _free_at = 0

    @staticmethod
    def is_initialized():
        return True

    @staticmethod
    def set_device(_):
        pass

    @staticmethod
    def get_device_name():
        return "a fake GPU"

    @staticmethod
    def enqueue(seconds):
        cuda._free_at = max(cuda._free_at, time.monotonic()) + seconds
        profiler.queued(seconds)

    @staticmethod
    def synchronize():
        time.sleep(max(0, cuda._free_at - time.monotonic()))

    @staticmethod
    def reset_peak_memory_stats():
        pass

    @staticmethod
    def mem_get_info():
        return 70 << 30, 80 << 30

    @staticmethod
    def max_memory_reserved():
        return 1 << 30

    @staticmethod
    def max_memory_allocated():
        return 123


class distributed:
    @staticmethod
    def init_process_group(_):
        pass
