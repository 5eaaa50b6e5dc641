# SPDX-License-Identifier: MIT
"""Marks the end of every optimizer's step of a PyTorch program, without a change to the program.

`stepgate attach` puts the folder of this file first on PYTHONPATH. The file runs the sitecustomize
that it hides, waits until torch.optim is imported, and registers a hook there. A fault of its own
is a line on standard error, never the program's problem. For Python 3.8 and later.
"""
import importlib.machinery
import os
import sys

_LIBRARY = "STEPGATE_ATTACH_LIBRARY"


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


class _Marks:
    """Tells the attached library of every end of an optimizer's step."""

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

    def __call__(self, optimizer, args, kwargs):
        torch = sys.modules.get("torch")
        if not self._is_noted and torch is not None and torch.cuda.is_initialized():
            self._is_noted = True
            self.note("optimizer", type(optimizer).__name__)
            self.note("torch", torch.__version__)
            self.note("gpu", torch.cuda.get_device_name())
        self._mark(2, id(optimizer))

    def note(self, key, value):
        self._note(key.encode(), str(value).encode("ascii", "replace"))


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
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register:
        register(_Marks())
    else:
        _wrap_every_step(module.Optimizer, _Marks())


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
                print("stepgate attach: the ends of optimizer steps are not marked:", problem,
                      file=sys.stderr)

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get(_LIBRARY):
    sys.meta_path.insert(0, _AfterImport())
try:
    _run_the_hidden_one()
except Exception as problem:
    print("stepgate attach: the sitecustomize of this Python failed:", problem, file=sys.stderr)
