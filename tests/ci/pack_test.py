# SPDX-License-Identifier: MIT
"""pack_test.py REPOSITORY BUILD FOLDER: ci/jobs/pack makes a release of what is built, the same bytes each time, and refuses a program that
other machines cannot start. A wheel with another file than its record says is refused. The release stays in FOLDER/release, for the tests of what fetches it."""
import os
import pathlib
import shutil
import subprocess
import sys

REPOSITORY, BUILD, FOLDER = map(pathlib.Path, sys.argv[1:])


def pack(out, **variables):
    return subprocess.run([REPOSITORY / "ci/jobs/pack", BUILD, FOLDER / out], text=True, capture_output=True, env={**os.environ, **variables})


shutil.rmtree(FOLDER, ignore_errors=True)
FOLDER.mkdir(parents=True)
made = pack("release")
assert made.returncode == 0, made.stdout + made.stderr
again = pack("again")
assert again.returncode == 0, again.stderr
files = sorted(path.name for path in (FOLDER / "release").iterdir())
assert len(files) == 5 and files[:2] == ["Dockerfile", "SHA256SUMS"] and [pathlib.Path(name).suffix for name in files[2:]] == [".whl", ".gz", ".deb"], files
for name in files:
    assert (FOLDER / "release" / name).read_bytes() == (FOLDER / "again" / name).read_bytes(), f"{name} is another the second time"
shutil.rmtree(FOLDER / "again")
# Planted: the program as it is for this machine, one that needs nothing and does nothing, and a wheel with a file too many.
refused = pack("refused", STEPGATE_PACKED=str(BUILD / "runner/stepgate"))
assert refused.returncode != 0 and "C++ library: GLIBCXX" in refused.stderr, refused.stderr
assert not (FOLDER / "refused").exists()
(FOLDER / "nothing.c").write_text("int puts(const char *); int main(void) { return puts(\"stepgate\") < 0; }\n")
subprocess.run(["cc", "-nostartfiles", "-Wl,-e,main", "-o", FOLDER / "nothing", FOLDER / "nothing.c"], check=True)
refused = pack("refused", STEPGATE_PACKED=str(FOLDER / "nothing"))
assert refused.returncode != 0 and "the program of the tarball does not run" in refused.stderr, refused.stderr
assert not (FOLDER / "refused").exists()
wheel = next((FOLDER / "release").glob("*.whl"))
shutil.copy(wheel, FOLDER / "other.whl")
subprocess.run([sys.executable, "-c", "import sys, zipfile; zipfile.ZipFile(sys.argv[1], 'a').writestr('stepgate/more.py', '')", FOLDER / "other.whl"], check=True)
unpacked = subprocess.run([sys.executable, REPOSITORY / "ci/make_wheel.py", "--unpack", FOLDER / "other.whl", FOLDER / "other"], text=True, capture_output=True)
assert unpacked.returncode == 1 and "its record has other files than it has" in unpacked.stderr, unpacked
