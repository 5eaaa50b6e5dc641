# SPDX-License-Identifier: MIT
"""python3 -m stepgate: writes what stepgate measured in the formats of other tools. Exit code 2: a request that cannot be met."""
import argparse
import os
import sys

from .formats import FORMATS
from .lines import Refused, as_described
from .memory_snapshot import memory_snapshots
from .runs import read_run


def refused_write(name, reason):
    name = "standard output" if name == "-" else name
    return Refused(f"{name}: cannot be written: {reason}; name a file in a folder that you may write to")


def refuse_folder(name):
    if os.path.basename(name) in ("", ".", "..") or os.path.isdir(name):
        raise refused_write(name or "-o ''", "it is no name of a file")


def refuse_over(name, read):
    """Refuses to write over the file that is read."""
    read = 0 if read == "-" else read
    if os.path.exists(name) and os.path.exists(read) and os.path.samefile(name, read):
        raise Refused(f"-o {name} would be written over what is read; give it a name of its own")


def write_file(name, content):
    """Writes bytes; "-" is standard output."""
    try:
        if name != "-":
            os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(1 if name == "-" else name, "wb", closefd=name != "-") as file:
            file.write(content)
    except (OSError, ValueError) as error:
        raise refused_write(name, error.strerror if isinstance(error, OSError) else error) from error


def write_files(files, arguments):
    """Writes bytes by name, or refuses before the first is written."""
    refuse_folder(arguments.output)
    for name in files:
        if name != "-":
            refuse_folder(name)
            refuse_over(name, arguments.file)
    for name, content in files.items():
        write_file(name, content)


def export(arguments):
    if arguments.format == "nvbench" and arguments.output == "-":
        raise Refused("--format nvbench writes several files, and standard output is not that; name one with -o")
    measured, left_out = read_run(arguments.file)
    for scenario, why in left_out:
        print(f"{arguments.file}: '{scenario}' {why}; nothing of it is written", file=sys.stderr)
    with as_described(arguments.file):
        files = FORMATS[arguments.format](measured, arguments.output)
    write_files(files, arguments)


def memory_snapshot(arguments):
    files = memory_snapshots(arguments.file, arguments.output)
    write_files(files, arguments)
    write_file("-", b"".join(os.fsencode(name) + b"\n" for name in files))


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
