# SPDX-License-Identifier: MIT
"""For tests only: records what is queued as kernels, and writes it as torch.profiler does."""
import json
import os
import time

_active = []


class ProfilerAction:
    RECORD = 1


def queued(seconds):
    for profiler in _active:
        profiler.queued(seconds)


class profile:
    def __init__(self, schedule):
        assert schedule(0) == ProfilerAction.RECORD
        self._events, self._free_at, self._calls = [], 0, 0

    def _event(self, category, name, begin, end, thread, **args):
        self._events.append({"ph": "X", "cat": category, "name": name, "pid": os.getpid(), "tid": thread, "ts": begin,
                             "dur": end - begin, "args": args})

    @staticmethod
    def _now():
        return time.monotonic() * 1e6

    def start(self):
        _active.append(self)
        self._begin, self._number = self._now(), 0

    def step(self):
        self._event("user_annotation", "ProfilerStep#{}".format(self._number), self._begin, self._now(), 1)
        self._begin, self._number = self._now(), self._number + 1

    def queued(self, seconds):
        self._calls += 1
        now = self._now()
        begin = max(now, self._free_at)
        self._free_at = begin + seconds * 1e6
        self._event("cuda_runtime", "cudaLaunchKernel", now, now + 1, 1, correlation=self._calls)
        self._event("kernel", "gemm", begin, self._free_at, 7, device=0, stream=7, correlation=self._calls)

    def stop(self):
        self.step()
        _active.remove(self)

    def export_chrome_trace(self, path):
        with open(path, "w") as file:
            json.dump({"schemaVersion": 1, "traceEvents": self._events}, file)
