# SPDX-License-Identifier: MIT
"""The includes by station: the table in docs/architecture.md is that of the sources. `--write` writes it there."""
import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1])
PAGE = SOURCE / "docs/architecture.md"
STATIONS = "base kernels plugin scenario plan device measure program judge ledger line compare report verbs main".split()


def station_of(file):
    parts = file.relative_to(SOURCE).parts
    return parts[0] if parts[0] == "kernels" else parts[1] if len(parts) > 2 else "main"


def is_product(file):
    return file.suffix in (".h", ".cpp", ".cu", ".cuh") and "testing" not in file.parts and not re.search(r"_(test|bench)\.", file.name)


def includes():
    """Of every station, those whose headers its files include."""
    found = {station: set() for station in STATIONS}
    for folder in ("kernels", "runner"):
        for file in filter(is_product, (SOURCE / folder).rglob("*")):
            targets = re.findall(r'^#include "([a-z_]+)/', file.read_text(), re.M)
            found[station_of(file)].update(target for target in targets if target in STATIONS)
    return found


def table(found):
    columns = STATIONS[:-1]
    rows = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for station in STATIONS[1:]:
        marks = ["x" if column in found[station] and column != station else "" for column in columns]
        rows.append(f"| {station} | {' | '.join(marks)} |")
    return "\n".join(re.sub(r"  +", " ", row) for row in rows)


def main():
    page, right = PAGE.read_text(), includes()
    if "--write" in sys.argv:
        begin = page.index("| | base |")
        PAGE.write_text(page[:begin] + table(right) + page[page.index("\n\n", begin):])
        return 0
    wrong = [] if table(right) in page else ["docs/architecture.md has another table of includes; python3 tests/include_table.py . --write mends it"]
    planted = {station: targets | {"report"} if station == "plan" else targets for station, targets in right.items()}
    if table(planted) in page:
        wrong.append("a planted include is not found")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
