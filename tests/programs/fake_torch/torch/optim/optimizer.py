# SPDX-License-Identifier: MIT
import os

_hooks = []
if not os.environ.get("FAKE_OLD_TORCH"):  # before 2.0 it had no hook for all optimizers
    register_optimizer_step_post_hook = _hooks.append


class Optimizer:
    def __init__(self, parameters=()):
        pass

    def zero_grad(self):
        pass

    def step(self):
        for hook in _hooks:
            hook(self, (), {})


class AdamW(Optimizer):
    pass
