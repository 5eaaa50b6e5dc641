# SPDX-License-Identifier: MIT
"""Reads the lines of JSON that the program writes. docs/json_schema.json says what every field is."""
import contextlib
import json
import math
import struct

RUN_SCHEMA = 4
MEMORY_SCHEMA = "stepgate.memory/1"


class Refused(Exception):
    """A request that cannot be met, in words for people: the thing, the fact, and a way out."""


@contextlib.contextmanager
def as_described(place):
    """Refuses what the block finds missing or of another kind in the JSON at the place."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error) as error:
        fact = f"has no {error}" if isinstance(error, KeyError) else f"has a wrong value ({error})"
        raise Refused(f"{place}: {fact}; it was changed since stepgate wrote it, so run stepgate again") from error


def finite(text):
    """The number of the text. Refuses NaN and infinities, which JSON does not have, and what would be read as one."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def read_lines(path, schema, way_out):
    """(place, object) of each line of the file, "-" for standard input. Refuses lines that are not of the schema."""
    try:
        with open(0 if path == "-" else path, encoding="utf-8", closefd=path != "-") as file:
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
            report = json.loads(line, parse_float=finite, parse_constant=finite)
        except (RecursionError, ValueError) as error:
            raise Refused(f"{place}: is not JSON ({error}), as of a program that was interrupted; write it again with {way_out}") from error
        found = report.get("schema") if isinstance(report, dict) else None
        if found != schema:
            shown = json.dumps(found) if not isinstance(found, (dict, list)) else "of another kind"
            raise Refused(f"{place}: has schema {shown}, and this package reads {json.dumps(schema)}; take a file of {way_out}, "
                          "and the package of the same version as the program")
        lines.append((place, report))
    if not lines:
        raise Refused(f"{path}: is empty; write it with {way_out}")
    return lines
