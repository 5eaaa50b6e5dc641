#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seeds.py FOLDER [FORM PATTERNS]: fills the folder with what a fuzzer begins with, made of files of the tree.

Forms: files (as they are), lines (each of a file), records (of a file with digests its first run, as it is and with digests of zero, which fit
anything in a build that fuzzes), assertions (of a scenario each), exchanges (each line of a conversation in a page), heads
(the first events of a recording).
"""
import glob
import hashlib
import os
import re
import sys

MOST_EVENTS = 12


def records(text):
    runs = [match.start() for match in re.finditer(r"^\[\[run\]\]", text, re.M)]
    first = text[:runs[1]] if len(runs) > 1 else text
    return [first, re.sub(r'^digest = "0x\w+"', 'digest = "0x0000000000000000"', first, flags=re.M)]


FORMS = {
    "files": lambda text: [text],
    "lines": str.splitlines,
    "records": records,
    "assertions": lambda text: re.findall(r'^\w+ *= "(.*[<>=~].*)"', text, re.M),
    "exchanges": lambda text: re.findall(r"^    [<>] (.*)", text, re.M),
    "heads": lambda text: ["".join(text.splitlines(keepends=True)[:count]) for count in (2, MOST_EVENTS)],
}


def main(folder, form="files", pattern=None):
    os.makedirs(folder, exist_ok=True)
    made = 0
    for file in sorted(file for one in (pattern or "").split() for file in glob.glob(one)):
        with open(file, encoding="utf-8") as source:
            for seed in FORMS[form](source.read()):
                name = hashlib.sha1(seed.encode()).hexdigest()
                with open(os.path.join(folder, name), "w", encoding="utf-8") as to:
                    to.write(seed)
                made += 1
    if pattern and made == 0:
        sys.exit(f"nothing to begin with: no {form} in {pattern}")


if __name__ == "__main__":
    main(*sys.argv[1:])
