# SPDX-License-Identifier: MIT
"""python3 -m stepgate: writes what stepgate measured in the formats of other tools. Exit code 2: a request that cannot be met."""
import argparse
import os
import sys

from .formats import FORMATS
from .lines import Refused, as_described
from .memory_snapshot import memory_snapshots
from .runs import read_run


def write_files(files, read):
    """Writes bytes by name; a file that was read is never written over."""
    for name, content in files.items():
        if name == "-":
            sys.stdout.buffer.write(content)
            continue
        if os.path.exists(name) and os.path.exists(read) and os.path.samefile(name, read):
            raise Refused(f"-o {name} would be written over what is read; give it a name of its own")
        try:
            os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
            with open(name, "wb") as file:
                file.write(content)
        except OSError as error:
            raise Refused(f"{name}: cannot be written: {error.strerror}; name a file in a folder that you may write to") from error


def export(arguments):
    if arguments.format == "nvbench" and arguments.output == "-":
        raise Refused("--format nvbench writes several files, and standard output is not that; name one with -o")
    measured, left_out = read_run(arguments.file)
    for scenario, why in left_out:
        print(f"{arguments.file}: '{scenario}' {why}; nothing of it is written", file=sys.stderr)
    with as_described(arguments.file):
        files = FORMATS[arguments.format](measured, arguments.output)
    write_files(files, arguments.file)


def memory_snapshot(arguments):
    files = memory_snapshots(arguments.file, arguments.output)
    write_files(files, arguments.file)
    print("\n".join(files))


def parse(words):
    parser = argparse.ArgumentParser(prog="python3 -m stepgate", description="Writes what stepgate measured in the formats of other tools.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    samples = verbs.add_parser("export", help="the samples of a run, for NVBench's and Google Benchmark's scripts and for spreadsheets")
    samples.add_argument("file", help="that `stepgate run --json FILE` wrote; - is standard input")
    samples.add_argument("--format", required=True, choices=FORMATS)
    samples.add_argument("-o", "--output", default="-", help="the file to write, standard output by default")
    samples.set_defaults(run=export)
    memory = verbs.add_parser("memory-snapshot", help="what allocators do, for PyTorch's memory viewer")
    memory.add_argument("file", help="that `stepgate plan --memory --json FILE` wrote; - is standard input")
    memory.add_argument("-o", "--output", required=True, help="m.pickle: writes m.<scenario>.<variant>.pickle for each variant")
    memory.set_defaults(run=memory_snapshot)
    return parser.parse_args(words)


def main(words=None):
    arguments = parse(words)
    try:
        arguments.run(arguments)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
