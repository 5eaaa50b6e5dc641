#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seeds.py FOLDER [FORM PATTERNS]: fills the folder with what a fuzzer begins with, made of files of the tree.

Forms: files (as they are), lines (each of a file), records (of a file with digests its first run, as it is and with digests of zero, which fit
anything in a build that fuzzes), assertions (of a scenario each), exchanges (each line of a conversation in a page), heads
(the first events of a recording), traces (what the file makes of its words, and snapshots of an allocator).
"""
import glob
import hashlib
import os
import pickle
import re
import sys

MOST_EVENTS = 12


def records(text):
    runs = [match.start() for match in re.finditer(r"^\[\[run\]\]", text, re.M)]
    first = text[:runs[1]] if len(runs) > 1 else text
    return [first, re.sub(r'^digest = "0x\w+"', 'digest = "0x0000000000000000"', first, flags=re.M)]


def traces(text):
    maker = {"__name__": "maker"}
    exec(text, maker)
    events = [{"action": action, "addr": 0x7F0000000000 + address, "size": size, "stream": 0} for action, address, size in
              [("alloc", 0, 1 << 20), ("alloc", 1 << 24, 3 << 20), ("free_completed", 0, 1 << 20), ("free_completed", 1 << 25, 512), ("alloc", 0, 1 << 22)]]
    events.append({"action": "oom", "device_free": 1 << 20, "size": 1 << 30, "stream": 0})
    segment = {"address": 0x7E0000000000, "total_size": 1 << 21, "stream": 0, "blocks": [{"size": 1 << 20, "state": "active_allocated"}, {"size": 1 << 20, "state": "inactive"}]}
    snapshot = {"segments": [segment], "device_traces": [[], events], "share": 0.5, "x": None}
    too_large = {**snapshot, "segments": [{**segment, "total_size": 1 << 62}, {**segment, "total_size": 1 << 62}]}
    snapshots = [pickle.dumps(one, protocol) for one in (snapshot, too_large) for protocol in (2, 4)]
    return [maker["trace_of"]([word, "launch"], steps=2) for word in maker["STEP_WORDS"]] + snapshots


FORMS = {
    "files": lambda text: [text],
    "lines": str.splitlines,
    "records": records,
    "assertions": lambda text: re.findall(r'^\w+ *= "(.*[<>=~].*)"', text, re.M),
    "exchanges": lambda text: re.findall(r"^    [<>] (.*)", text, re.M),
    "heads": lambda text: ["".join(text.splitlines(keepends=True)[:count]) for count in (2, MOST_EVENTS)],
    "traces": traces,
}


def main(folder, form="files", pattern=None):
    os.makedirs(folder, exist_ok=True)
    made = 0
    for file in sorted(file for one in (pattern or "").split() for file in glob.glob(one)):
        with open(file, encoding="utf-8") as source:
            for seed in FORMS[form](source.read()):
                data = seed if isinstance(seed, bytes) else seed.encode()
                with open(os.path.join(folder, hashlib.sha1(data).hexdigest()), "wb") as to:
                    to.write(data)
                made += 1
    if pattern and made == 0:
        sys.exit(f"nothing to begin with: no {form} in {pattern}")


if __name__ == "__main__":
    main(*sys.argv[1:])
