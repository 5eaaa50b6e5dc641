# SPDX-License-Identifier: MIT
"""The commands of docs/three_mistakes.md, on examples/train.py with a PyTorch and a CUDA that are
faked, print what the page says; and with the cures of the page they pass.

    python3 three_mistakes_test.py STEPGATE SOURCE FAKE_CUDA
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

STEPGATE = SOURCE = FAKE_CUDA = ""
TORCHRUN = """#!/bin/sh
shift 2  # --nproc_per_node 2
for rank in 0 1; do RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 python3 "$@" & done
wait
"""
CURES = {
    "pageable_copies_per_step": [("torch.randn(BATCH, WIDTH), torch.randint(CLASSES, (BATCH,)))",
                                  "torch.randn(BATCH, WIDTH).pin_memory(),\n"
                                  "              torch.randint(CLASSES, (BATCH,)).pin_memory())")],
    "host_waits_per_step": [("        print(step", "        if step % 10 == 0: print(step")],
    "collectives_per_step": [("import os\n", "import contextlib\nimport os\n"),
                             ("            loss = nn", "            with model.no_sync() if part < PARTS - 1 else contextlib.nullcontext():\n"
                              "             loss = nn"), ("            loss.backward", "             loss.backward")],
}


def words_of(text):
    """Lines, without blanks and without the fake's own line below that of the user."""
    text = re.sub(r" \(in tensors\.py:\d+ call\)", "", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@unittest.skipIf(sys.version_info >= (3, 13), "lines are known of Python 3.8 to 3.12")
class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(os.path.join(SOURCE, "examples", "train.py"), encoding="utf-8") as file:
            self.train = file.read()
        with open(os.path.join(SOURCE, "docs", "three_mistakes.md"), encoding="utf-8") as file:
            page = file.read()
        # Each command of the page, with the lines that follow it.
        self.shown = {command: words_of(output)
                      for command, output in re.findall(r"^    \$ (stepgate .*)\n((?:     .*\n)*)", page, re.M)}
        packages = os.path.join(self.folder, "site-packages")  # lines there are a library's
        os.symlink(os.path.join(SOURCE, "tests", "programs", "fake_torch"), packages)
        with open(os.path.join(self.folder, "torchrun"), "w") as file:
            file.write(TORCHRUN)
        os.chmod(os.path.join(self.folder, "torchrun"), 0o755)
        python = os.path.join(self.folder, "python3")
        os.symlink(sys.executable, python)
        self.variables = dict(os.environ, PYTHONPATH=packages, STEPGATE_CUPTI=FAKE_CUDA, FAKE_CUDA=FAKE_CUDA,
                              PATH="{}:{}".format(self.folder, os.environ["PATH"]))

    def cured(self, text, metric):
        for old, new in CURES[metric]:
            self.assertIn(old, text)
            text = text.replace(old, new)
        return text

    def run_on(self, text, command):
        with open(os.path.join(self.folder, "train.py"), "w") as file:
            file.write(text)
        return subprocess.run(["sh", "-c", command.replace("stepgate", '"$0"', 1), STEPGATE], cwd=self.folder, env=self.variables,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)

    def test_every_mistake_is_found_where_the_page_says_and_its_cure_passes(self):
        found = set()
        for command, shown in self.shown.items():
            metric = re.search(r'--expect "(\w+)', command)
            if metric is None:
                continue
            text = self.train
            if metric.group(1) == "host_waits_per_step":  # as the page says
                text = self.cured(text, "pageable_copies_per_step")
            run = self.run_on(text, command)
            self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
            for line in shown:
                self.assertIn(line, words_of(run.stdout))
            cured = self.run_on(self.cured(text, metric.group(1)), command)
            self.assertEqual(cured.returncode, 0, cured.stdout + cured.stderr)
            found.add(metric.group(1))
        self.assertEqual(found, set(CURES))

    def test_the_table_is_that_of_the_page(self):
        command, shown = next(iter(self.shown.items()))
        printed = words_of(self.run_on(self.train, command).stdout)
        self.assertGreaterEqual(len(shown), 4)
        for line in shown:
            self.assertIn(line, printed)

    def test_an_accepted_step_passes_and_a_further_wait_fails(self):
        accept, against = [command for command in self.shown if "train.counts.toml" in command]
        self.assertEqual(self.run_on(self.train, accept).returncode, 0)
        self.assertEqual(self.run_on(self.train, against).returncode, 0)
        worse = self.train.replace("        print(step", "        loss.item()\n        print(step")
        run = self.run_on(worse, against)
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertTrue(any("train.py:30 loss.item() is new" in line for line in words_of(run.stdout)), run.stdout)


if __name__ == "__main__":
    STEPGATE, SOURCE, FAKE_CUDA = map(os.path.abspath, sys.argv[1:4])
    unittest.main(argv=sys.argv[:1])
