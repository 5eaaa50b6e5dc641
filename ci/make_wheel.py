#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_wheel.py PREFIX OUT PLATFORM KIND: a wheel of an installed stepgate, program and Python package together. pip puts the program into
the environment's bin, and what it reads into its share and lib, where it looks for them.
make_wheel.py --unpack WHEEL PREFIX: as an installer does, and checks every file against the wheel's record."""
import base64
import hashlib
import os
import pathlib
import re
import stat
import sys
import zipfile

PACKAGE = pathlib.PurePath("share/stepgate/python")


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def project(prefix):
    text = (prefix / PACKAGE / "pyproject.toml").read_text(encoding="utf-8")
    return {key: re.search(rf'^{key} = "([^"]+)"', text, re.M).group(1) for key in ("name", "version", "description", "requires-python")}


def make(prefix, out, platform, kind):
    about = project(prefix)
    version = about["version"] + ("+host" if kind == "host" else "")
    whole = f"{about['name']}-{version}"
    tag = f"py3-none-{platform}"
    files = {}
    for path in sorted(path for path in prefix.rglob("*") if path.is_file()):
        name = path.relative_to(prefix)
        if name.is_relative_to(PACKAGE / "stepgate"):
            files[name.relative_to(PACKAGE).as_posix()] = path
        elif not name.is_relative_to(PACKAGE):
            files[f"{whole}.data/data/{name.as_posix()}"] = path
    texts = {f"{whole}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {version}\nSummary: {about['description']}\n"
                                            f"License: MIT\nRequires-Python: {about['requires-python']}\n",
             f"{whole}.dist-info/WHEEL": f"Wheel-Version: 1.0\nGenerator: stepgate\nRoot-Is-Purelib: false\nTag: {tag}\n"}
    record = []
    with zipfile.ZipFile(out / f"{whole}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(name, data, mode):
            entry = zipfile.ZipInfo(name)  # of 1980, so that the same files are the same wheel
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
            record.append(f"{name},{digest(data)},{len(data)}")
        for name, path in files.items():
            add(name, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
        for name, text in texts.items():
            add(name, text.encode(), 0o644)
        add(f"{whole}.dist-info/RECORD", ("\n".join(record) + f"\n{whole}.dist-info/RECORD,,\n").encode(), 0o644)


def unpack(file, prefix):
    with zipfile.ZipFile(file) as wheel:
        names = wheel.namelist()
        record = next(name for name in names if name.endswith(".dist-info/RECORD"))
        digests = dict(line.split(",")[:2] for line in wheel.read(record).decode().splitlines())
        if sorted(digests) != sorted(names):
            sys.exit(f"{file}: its record has other files than it has")
        for name in names:
            data = wheel.read(name)
            if name != record and digest(data) != digests[name]:
                sys.exit(f"{file}: {name} is not the file of the record")
            path = prefix / re.sub(r"^[^/]+\.data/data/", "", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(wheel.getinfo(name).external_attr >> 16 & 0o777)


if sys.argv[1] == "--unpack":
    unpack(sys.argv[2], pathlib.Path(sys.argv[3]))
else:
    make(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), *sys.argv[3:])
