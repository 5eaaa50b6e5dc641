# SPDX-License-Identifier: MIT
"""Steps that a program names itself, for loops without an optimizer of PyTorch."""
import functools
import inspect
import sys

_first = []  # the name of the function whose calls are the steps


def _steps():
    return getattr(sys.modules.get("sitecustomize"), "stepgate_steps", None)


def step(function=None, *, wait=None):
    """Decorates the function that makes one step: stepgate counts and times its calls.

    `wait` waits until the device has done all work, as jax.effects_barrier or
    cupy.cuda.Device().synchronize do; without it PyTorch is waited for. Of several decorated
    functions, the first that returns makes the steps. Programs that stepgate did not start run as
    if the decorator were not there. Raises TypeError for coroutines and generators.
    """
    if function is None:
        return functools.partial(step, wait=wait)
    if any(is_lazy(function) for is_lazy in (inspect.iscoroutinefunction,
                                             inspect.isgeneratorfunction,
                                             inspect.isasyncgenfunction)):
        raise TypeError("a call of {} returns before its step is made: decorate a function that "
                        "makes all of one".format(function.__qualname__))
    steps = _steps()
    if steps is None:
        return function
    steps.named_by_program()

    @functools.wraps(function)
    def stepped(*args, **kwargs):
        result = function(*args, **kwargs)
        if not _first:
            _first.append(function.__qualname__)
        if _first[0] == function.__qualname__:
            steps.ended_by_program(function.__qualname__, wait)
        return result

    return stepped
