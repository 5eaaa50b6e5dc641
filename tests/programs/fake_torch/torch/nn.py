# SPDX-License-Identifier: MIT
import contextlib

from torch.tensors import ALL_REDUCE, DEVICE, Tensor, call, launch


class Module:
    def __init__(self, *_):
        pass

    def to(self, _):
        return self

    def parameters(self):
        return []

    def __call__(self, _):
        launch()
        return Tensor(DEVICE)


Sequential = Linear = ReLU = Module


class parallel:
    class DistributedDataParallel(Module):
        def __init__(self, module, device_ids):
            self.reduces = True

        @contextlib.contextmanager
        def no_sync(self):
            self.reduces = False
            yield
            self.reduces = True

        def __call__(self, _):
            launch()
            return Tensor(DEVICE, _all_reduce if self.reduces else None)


def _all_reduce():
    call("cuLaunchKernelEx", 0, ALL_REDUCE, 0, 0)


class functional:
    @staticmethod
    def cross_entropy(output, _):
        launch()
        return output
