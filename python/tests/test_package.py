# SPDX-License-Identifier: MIT
"""The package as pip installs it."""
import importlib.metadata
import os
import re
import shutil
import sys
import unittest

from made_up import PACKAGE, REPOSITORY, InAFolder, scenario_line


class Package(InAFolder):
    def test_is_of_the_version_of_the_program_and_reads_its_schema(self):
        def found(file, pattern):
            with open(os.path.join(REPOSITORY, file), encoding="utf-8") as text:
                return re.search(pattern, text.read(), re.M).group(1)

        self.assertEqual(found("python/pyproject.toml", r'^version = "([\d.]+)"'), found("CMakeLists.txt", r"^project\(stepgate VERSION ([\d.]+) "))
        self.assertEqual(found("python/stepgate/lines.py", r"^RUN_SCHEMA = (\d+)$"),
                         found("runner/report/writers.h", r"report_schema = (\d+);"))

    def test_is_built_as_its_project_file_says_and_runs_from_elsewhere(self):
        try:
            version = importlib.metadata.version("setuptools")
        except importlib.metadata.PackageNotFoundError:
            version = "0"
        if int(version.split(".")[0]) < 61:  # as pyproject.toml says
            self.skipTest("setuptools 61 is not installed")
        shutil.copytree(PACKAGE, self.path("checkout"), ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        # pip does the same, but asks for `wheel` or a network.
        built = self.started("sh", "-c", 'cd checkout && "$0" -c "import setuptools; setuptools.setup()" build --build-lib ../site', sys.executable)
        self.assertEqual(built.returncode, 0, built.stderr)
        self.write("run.json", scenario_line())
        code = "import sys, runpy; sys.path.insert(0, 'site'); runpy.run_module('stepgate', run_name='__main__', alter_sys=True)"
        exported = self.started("env", "-u", "PYTHONPATH", sys.executable, "-c", code, "export", "--format", "csv", "run.json")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        self.assertTrue(exported.stdout.startswith("device,scenario,"), exported.stdout)


if __name__ == "__main__":
    unittest.main()
