# SPDX-License-Identifier: MIT
"""Steps that a program names itself, for loops without an optimizer of PyTorch."""
import functools
import sys


def _steps():
    return getattr(sys.modules.get("sitecustomize"), "stepgate_steps", None)


def step(function=None, *, wait=None):
    """Decorates the function that makes one step: stepgate counts and times its calls.

    `wait` waits until the device has done all work, as jax.effects_barrier or
    cupy.cuda.Device().synchronize do; without it PyTorch is waited for. Programs that stepgate did
    not start run as if the decorator were not there.
    """
    if function is None:
        return functools.partial(step, wait=wait)
    steps = _steps()
    if steps is None:
        return function
    steps.named_by_program()

    @functools.wraps(function)
    def stepped(*args, **kwargs):
        result = function(*args, **kwargs)
        steps.ended_by_program(function.__qualname__, wait)
        return result

    return stepped
