# SPDX-License-Identifier: MIT
"""Steps that a program names itself; tests/programs runs them under stepgate."""
import ast
import os
import sys
import types
import unittest


import stepgate


class Steps:
    def __init__(self):
        self.named = 0
        self.ended = []

    def named_by_program(self):
        self.named += 1

    def ended_by_program(self, name, wait):
        self.ended.append((name, wait))


class Step(unittest.TestCase):
    def setUp(self):
        self.hidden = sys.modules.pop("sitecustomize", None)
        sys.modules["stepgate.step"]._first.clear()

    def tearDown(self):
        sys.modules.pop("sitecustomize", None)
        if self.hidden is not None:
            sys.modules["sitecustomize"] = self.hidden

    def test_a_program_that_stepgate_did_not_start_is_not_touched(self):
        def train():
            return 1

        self.assertIs(stepgate.step(train), train)
        self.assertIs(stepgate.step(wait=print)(train), train)

    def test_every_call_ends_a_step_and_an_exception_ends_none(self):
        steps = Steps()
        sys.modules["sitecustomize"] = types.SimpleNamespace(stepgate_steps=steps)

        @stepgate.step(wait=print)
        def train(fails=False):
            if fails:
                raise ValueError
            return 5

        self.assertEqual(steps.named, 1)
        self.assertEqual(train(), 5)
        with self.assertRaises(ValueError):
            train(fails=True)
        self.assertEqual([wait for _, wait in steps.ended], [print])
        self.assertTrue(steps.ended[0][0].endswith("train"))

    def test_of_several_functions_the_first_that_returns_makes_the_steps(self):
        steps = Steps()
        sys.modules["sitecustomize"] = types.SimpleNamespace(stepgate_steps=steps)

        @stepgate.step
        def evaluate():
            pass

        @stepgate.step
        def train():
            pass

        train(), evaluate(), train()
        self.assertEqual([name.split(".")[-1] for name, _ in steps.ended], ["train", "train"])

    def test_what_returns_before_its_step_is_made_is_refused(self):
        async def coroutine():
            pass

        def generator():
            yield

        for lazy in coroutine, generator:
            with self.assertRaisesRegex(TypeError, "returns before its step is made"):
                stepgate.step(lazy)

    def test_what_runs_in_programs_is_written_for_python_3_8(self):
        package = os.path.dirname(stepgate.__file__)
        for file in ("step.py", "__init__.py", os.path.join("hook", "sitecustomize.py")):
            with open(os.path.join(package, file), encoding="utf-8") as text:
                ast.parse(text.read(), file, feature_version=(3, 8))
        self.assertRaises(SyntaxError, ast.parse, "match x:\n  case 1: pass", feature_version=(3, 8))


if __name__ == "__main__":
    unittest.main()
