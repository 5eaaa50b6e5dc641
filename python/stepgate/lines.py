# SPDX-License-Identifier: MIT
"""Reads the lines of JSON that the program writes. docs/json_schema.json says what every field is."""
import contextlib
import json
import sys

RUN_SCHEMA = 3
MEMORY_SCHEMA = "stepgate.memory/1"


class Refused(Exception):
    """A request that cannot be met, in words for people: the thing, the fact, and a way out."""


@contextlib.contextmanager
def as_described(place):
    """Refuses what the block finds missing or of another kind in the JSON at the place."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        fact = f"has no {error}" if isinstance(error, KeyError) else f"has a wrong value ({error})"
        raise Refused(f"{place}: {fact}; it was changed since stepgate wrote it, so run stepgate again") from error


def read_lines(path, schema, way_out):
    """(place, object) of each line of the file, "-" for standard input. Refuses lines that are not of the schema."""
    try:
        if path == "-":
            text = sys.stdin.buffer.read().decode()
        else:
            with open(path, encoding="utf-8") as file:
                text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Refused(f"{path}: cannot be read: {reason}; name a file that {way_out} wrote") from error
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            report = json.loads(line)
        except ValueError as error:
            raise Refused(f"{place}: is not JSON ({error}), as of a program that was interrupted; write it again with {way_out}") from error
        found = report.get("schema") if isinstance(report, dict) else None
        if found != schema:
            raise Refused(f"{place}: has schema {json.dumps(found)}, and this package reads {json.dumps(schema)}; take a file of {way_out}, "
                          "and the package of the same version as the program")
        lines.append((place, report))
    if not lines:
        raise Refused(f"{path}: is empty; write it with {way_out}")
    return lines
