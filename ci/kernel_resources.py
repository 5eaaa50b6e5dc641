#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the kernels of a built program take, against what every GPU gives that it was built for.

    ci/kernel_resources.py PROGRAM [ARCHITECTURE...]     reads `cuobjdump -res-usage PROGRAM`
    ci/kernel_resources.py --text FILE [ARCHITECTURE...] reads what that printed

Refuses a kernel that one architecture has and another has not, one that declares more shared memory than every block has
without asking (48 KiB), more registers than a thread has, or that keeps more than a few of its numbers in local memory, and a program without any
kernel. Ends with 1 then; with 4 where it could not look, for there is no cuobjdump or it could not read the program.
"""
import collections
import re
import subprocess
import sys

MOST_SHARED = 48 * 1024
MOST_REGISTERS = 255
MOST_LOCAL = 256  # bytes a thread, stack included: what a compiler spills


def kernels_by_architecture(text):
    """{architecture: {kernel: {"REG": 40, "STACK": 0, "SHARED": 1024, "LOCAL": 0, ...}}}"""
    found, architecture, name = collections.defaultdict(dict), None, None
    for line in text.splitlines():
        if match := re.match(r"\s*arch = sm_(\d+)", line):
            architecture = match[1]
        elif match := re.match(r"\s*Function (\S+):", line):
            name = match[1]
        elif "REG:" in line and name:
            found[architecture][name] = {key: int(value) for key, value in re.findall(r"([A-Z]+)(?:\[\d\])?:(\d+)", line)}
            name = None
    return found


def faults(found, architectures):
    wrong = [f"no code for sm_{one}" for one in architectures if one not in found]
    everywhere = {name for kernels in found.values() for name in kernels}
    for architecture, kernels in sorted(found.items()):
        # A file's anonymous names differ by nothing but the file, so all architectures have the same.
        wrong += [f"sm_{architecture}: no {name}" for name in sorted(everywhere - set(kernels))]
        for name, uses in sorted(kernels.items()):
            for key, most in [("SHARED", MOST_SHARED), ("REG", MOST_REGISTERS)]:
                if uses.get(key, 0) > most:
                    wrong.append(f"sm_{architecture}: {name} takes {key} {uses[key]}, more than {most}")
            local = uses.get("LOCAL", 0) + uses.get("STACK", 0)
            if local > MOST_LOCAL:
                wrong.append(f"sm_{architecture}: {name} keeps {local} bytes in local memory, more than {MOST_LOCAL}")
    return wrong if found else ["no kernel at all"]


NOT_CHECKED = 4


def usage_of(program):
    try:
        ended = subprocess.run(["cuobjdump", "-res-usage", program], capture_output=True, text=True)
    except OSError as error:
        not_checked(f"no cuobjdump, which the CUDA toolkit has: {error}")
    # cuobjdump says so of a program without device code; older ones end with an error besides.
    if ended.returncode != 0 and "does not contain device code" not in ended.stdout + ended.stderr:
        not_checked(f"cuobjdump ended with {ended.returncode}: {ended.stderr.strip()}")
    return ended.stdout


def not_checked(why):
    print(f"what kernels take was not checked: {why}")
    sys.exit(NOT_CHECKED)


def main(words):
    if words and words[0] == "--text":
        text, architectures = open(words[1], encoding="utf-8").read(), words[2:]
    elif words:
        text, architectures = usage_of(words[0]), words[1:]
    else:
        sys.exit(__doc__)
    found = kernels_by_architecture(text)
    for architecture, kernels in sorted(found.items(), key=lambda one: int(one[0])):
        most = {key: max((uses.get(key, 0) for uses in kernels.values()), default=0) for key in ("REG", "SHARED", "STACK", "LOCAL")}
        print(f"sm_{architecture}: {len(kernels)} kernels, at most {most['REG']} registers, {most['SHARED']} bytes of declared shared "
              f"memory, {most['STACK']} of stack, {most['LOCAL']} of local memory")
    wrong = faults(found, architectures)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
