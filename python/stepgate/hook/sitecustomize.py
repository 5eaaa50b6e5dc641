# SPDX-License-Identifier: MIT
"""Marks the end of every optimizer's step of a PyTorch program, without a change to the program, or
holds the program there until it is asked for steps. A program that names its steps with
stepgate.step is marked or held at the ends of those instead.

stepgate puts the folder of this file first on PYTHONPATH. The file runs the sitecustomize that it
hides, waits until torch.optim is imported, and registers a hook there. A fault of its own is a line
on standard error, never the program's problem. For Python 3.8 and later.
"""
import importlib.machinery
import os
import sys
import time

# Taken before any line of the program runs: what it replaces later is not the clock that counts.
_clock, _sleep = time.perf_counter_ns, time.sleep

_LIBRARY = "STEPGATE_ATTACH_LIBRARY"
_SOCKET = "STEPGATE_HOLD"
_OPTIMIZER, _PROGRAM = 2, 3  # MarkSource of runner/program/record_format.h


def _run_the_hidden_one():
    own = os.path.dirname(os.path.abspath(__file__))
    for folder in sys.path:
        path = os.path.join(folder or ".", "sitecustomize.py")
        if os.path.abspath(os.path.dirname(path)) == own or not os.path.exists(path):
            continue
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec")
        exec(code, {"__name__": "sitecustomize", "__file__": path})
        return


class _Steps:
    """Hands the ends of steps on, to the library's marks or to what holds the program."""

    def __init__(self):
        self._ended = None
        self._has_own = False
        self._first = self._first_key = None  # a weak reference to an optimizer, and its key

    def begin(self):
        """Before the first step."""
        if self._ended is None:
            self._ended = _Held() if os.environ.get(_SOCKET) else _Marks()

    def named_by_program(self):
        self._has_own = True
        self.begin()

    def ended_by_program(self, name, wait):
        self._end(_PROGRAM, 0, name, wait)

    def ended_by_optimizer(self, optimizer, args, kwargs):
        if not self._has_own:
            self._end(_OPTIMIZER, self._key_of(optimizer), type(optimizer).__name__ + ".step", None)

    def _key_of(self, optimizer):
        import weakref

        first = self._first and self._first()
        if first is None:  # or the program made this one in its place
            self._first = weakref.ref(optimizer)
            first = optimizer
            self._first_key = self._first_key or id(optimizer)
        return self._first_key if first is optimizer else id(optimizer)

    def _end(self, source, key, name, wait):
        self._ended(source, key, name, wait)


class _Marks:
    """Tells the attached library of every end of a step."""

    def __init__(self):
        import ctypes

        library = ctypes.PyDLL(os.environ[_LIBRARY])
        self._mark = library.stepgate_attach_mark
        self._mark.argtypes = (ctypes.c_uint64, ctypes.c_uint64)
        self._mark.restype = None
        self._note = library.stepgate_attach_note
        self._note.argtypes = (ctypes.c_char_p, ctypes.c_char_p)
        self._note.restype = None
        self._is_noted = False

    def __call__(self, source, key, name, wait):
        torch = sys.modules.get("torch")
        if not self._is_noted and torch is not None and torch.cuda.is_initialized():
            self._is_noted = True
            if source == _OPTIMIZER:
                self.note("optimizer", name.replace(".step", ""))
            self.note("torch", torch.__version__)
            self.note("gpu", torch.cuda.get_device_name())
        self._mark(source, key)

    def note(self, key, value):
        self._note(key.encode(), str(value).encode("ascii", "replace"))


class _Held:
    """Holds every rank at the end of a step of its first optimizer (runner/program/held.h).

    Rank 0, or the first process of a program without ranks, connects and is asked for steps; other
    processes without a rank find no socket any more and run on. The other ranks see in a mapped
    file up to which end of a step they may go, and between which ends they record a trace."""

    def __init__(self):
        self._clock, self._sleep = _clock, _sleep
        self._connection = None
        self._is_over = False
        self._key = None
        self._wait = None
        self._profiler = None
        self._ends = 0  # of steps, counted from the one at which it is held first
        # The end at which the clock starts; None: it runs, or this is no rank 0.
        self._timed = None
        self._begin = 0
        os.register_at_fork(after_in_child=self._let_go)

    def __call__(self, source, key, name, wait):
        if self._is_over:
            return
        try:
            self._end_step(source, key, name, wait)
        except Exception as problem:
            print("stepgate: the program is not held:", problem, file=sys.stderr)
            self._let_go()

    def _end_step(self, source, key, name, wait):
        if self._key is None:
            self._key = (source, key)
            self._wait = wait
            self._begin_hold(name)
        elif (source, key) == self._key:
            self._ends += 1
        else:  # a second optimizer, as of a GAN, is part of the same step
            return
        if not self._is_over:
            self._end_trace_if_due()
            self._hold_if_due()
        if not self._is_over:
            self._begin_trace_if_due()
            if self._ends == self._timed:
                self._begin_timing()

    def _let_go(self):
        self._is_over = True
        if self._connection is not None:
            self._connection.close()

    def _begin_hold(self, name):
        import ctypes
        import mmap

        # Only now: a process may get its rank after it has imported torch.
        self._rank = os.environ.get("RANK", "0")
        with open(os.environ[_SOCKET] + ".steps", "r+b") as file:
            shared = mmap.mmap(file.fileno(), 0)
        # The last end to which all ranks may go (-1: they exit), and those of a trace.
        # Behind them each other rank says where it is held.
        self._most, self._first_traced, self._last_traced, self._held_at = (
            ctypes.c_int64.from_buffer(shared, 8 * place)
            for place in (0, 1, 2, 3 + int(self._rank) % (len(shared) // 8 - 3)))
        if self._rank == "0":
            self._connect(name)

    def _connect(self, name):
        import socket

        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(os.environ[_SOCKET])
        except OSError:  # another process is held
            return self._let_go()
        self._connection = connection
        self._wait_for_device()
        self._say(program=(os.path.basename(sys.argv[0]) or "python")[:200],
                  device=self._of_cuda("get_device_name", "")[:200],
                  steps="ends of {}".format(name)[:200],
                  device_bytes=self._of_cuda("mem_get_info", (0, 0))[1])

    def _hold_if_due(self):
        if self._connection is None:
            if self._ends == self._most.value:
                self._wait_for_device()
                self._held_at.value = self._ends + 1
            while self._ends == self._most.value:
                self._sleep(0.001)
            if self._most.value < 0:
                self._exit()
        elif self._ends == self._most.value:
            if self._ends > 0 and self._last_traced.value < self._ends:
                self._answer_run()
            self._take_request()

    def _take_request(self):
        import json

        line = b""
        while not line.endswith(b"\n"):
            more = self._connection.recv(4096)
            if not more:
                return self._let_go()
            line += more
        request = json.loads(line)
        if "quit" in request:
            self._most.value = -1
            self._exit()
        self._steps = request["steps"]
        first = self._ends + request["wash_out"]
        if "trace" in request:
            self._timed = None
            self._first_traced.value, self._last_traced.value = first, first + self._steps
        else:
            self._timed = first
            self._of_cuda("reset_peak_memory_stats", None)
        self._most.value = first + self._steps

    @staticmethod
    def _exit():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    def _begin_timing(self):
        self._wait_for_device()
        self._say(begun=self._steps)
        self._begin = self._clock()

    def _answer_run(self):
        self._wait_for_device()
        elapsed = self._clock() - self._begin
        self._say(steps=self._steps, elapsed_ns=max(elapsed, 1),
                  peak_bytes=self._of_cuda("max_memory_allocated", 0),
                  reserved_bytes=self._of_cuda("max_memory_reserved", 0))

    def _begin_trace_if_due(self):
        if self._profiler is not None:
            self._profiler.step()
        elif self._first_traced.value <= self._ends < self._last_traced.value:
            from torch import profiler

            self._profiler = profiler.profile(schedule=lambda _: profiler.ProfilerAction.RECORD)
            self._profiler.start()

    def _end_trace_if_due(self):
        if self._profiler is None or self._ends < self._last_traced.value:
            return
        self._profiler.stop()
        trace = "{}.rank{}.json".format(os.environ[_SOCKET], self._rank)
        self._profiler.export_chrome_trace(trace + ".part")
        os.rename(trace + ".part", trace)
        self._profiler = None
        if self._connection is not None:
            self._say(traced=max(int(os.environ.get("LOCAL_WORLD_SIZE", "1")), 1))

    def _say(self, **what):
        import json

        try:
            self._connection.sendall(json.dumps(what).encode() + b"\n")
        except OSError:
            self._let_go()

    @staticmethod
    def _cuda():
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            return torch.cuda
        return None

    def _of_cuda(self, name, otherwise):
        function = getattr(self._cuda(), name, None)
        return otherwise if function is None else function()

    def _wait_for_device(self):
        if self._wait is not None:
            return self._wait()
        cuda = self._cuda()
        if cuda is None:
            return
        # Below torch.cuda.synchronize, which the program may have replaced.
        wait = getattr(sys.modules["torch"]._C, "_cuda_synchronize", None) \
            if hasattr(sys.modules["torch"], "_C") else None
        (wait or cuda.synchronize)()


def _wrap_every_step(optimizer_class, ended):
    """For PyTorch before 2.0, which has no hook for all optimizers."""
    made = optimizer_class.__init__

    def init(self, *args, **kwargs):
        made(self, *args, **kwargs)
        step = type(self).step
        if getattr(step, "is_stepgates", False):
            return

        def run(optimizer, *args, **kwargs):
            result = step(optimizer, *args, **kwargs)
            ended(optimizer, args, kwargs)
            return result

        run.is_stepgates = run.hooked = True
        type(self).step = run

    optimizer_class.__init__ = init


def _hook(module):
    stepgate_steps.begin()
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register:
        register(stepgate_steps.ended_by_optimizer)
    else:
        _wrap_every_step(module.Optimizer, stepgate_steps.ended_by_optimizer)


class _AfterImport:
    """Finds torch.optim.optimizer as Python would, and hooks it once it has run."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch.optim.optimizer":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            try:
                _hook(module)
            except Exception as problem:
                print("stepgate: the ends of optimizer steps are not marked:", problem,
                      file=sys.stderr)

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get(_LIBRARY) or os.environ.get(_SOCKET):
    stepgate_steps = _Steps()  # python/stepgate/step.py looks for it
    sys.meta_path.insert(0, _AfterImport())
try:
    _run_the_hidden_one()
except Exception as problem:
    print("stepgate: the sitecustomize of this Python failed:", problem, file=sys.stderr)
