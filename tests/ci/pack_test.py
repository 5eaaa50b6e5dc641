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
    """How it ended, and what it said, wherever lines were broken."""
    ended = subprocess.run([REPOSITORY / "ci/jobs/pack", BUILD, FOLDER / out], text=True, capture_output=True, env={**os.environ, **variables})
    return ended.returncode, " ".join((ended.stdout + ended.stderr).split())


shutil.rmtree(FOLDER, ignore_errors=True)
FOLDER.mkdir(parents=True)
for out in ("release", "again"):
    code, said = pack(out)
    assert code == 0, said
files = sorted(path.name for path in (FOLDER / "release").iterdir())
assert len(files) == 5 and files[:2] == ["Dockerfile", "SHA256SUMS"] and sorted(pathlib.Path(name).suffix for name in files[2:]) == [".deb", ".gz", ".whl"], files
for name in files:
    assert (FOLDER / "release" / name).read_bytes() == (FOLDER / "again" / name).read_bytes(), f"{name} is another the second time"
shutil.rmtree(FOLDER / "again")
# Planted: the program as it is for this machine, one that does nothing, without the checks of releases and with them, and a wheel with a file too many.
code, said = pack("refused", STEPGATE_PACKED=str(BUILD / "runner/stepgate"))
assert code != 0 and "needs the C++ library: GLIBCXX" in said, said
assert not (FOLDER / "refused").exists()
(FOLDER / "nothing.c").write_text("int puts(const char *); int main(void) { char words[] = \"stepgate\"; return puts(words) < 0; }\n")
for options, complaint in ([], "no protection of its stack"), (["-fstack-protector-all", "-pie", "-Wl,-z,now"], "the program of the tarball does not run"):
    subprocess.run(["cc", "-nostartfiles", "-Wl,-e,main", *options, "-o", FOLDER / "nothing", FOLDER / "nothing.c"], check=True)
    code, said = pack("refused", STEPGATE_PACKED=str(FOLDER / "nothing"))
    assert code != 0 and complaint in said, said
    assert not (FOLDER / "refused").exists()
wheel = next((FOLDER / "release").glob("*.whl"))
shutil.copy(wheel, FOLDER / "other.whl")
subprocess.run([sys.executable, "-c", "import sys, zipfile; zipfile.ZipFile(sys.argv[1], 'a').writestr('stepgate/more.py', '')", FOLDER / "other.whl"], check=True)
unpacked = subprocess.run([sys.executable, REPOSITORY / "ci/make_wheel.py", "--unpack", FOLDER / "other.whl", FOLDER / "other"], text=True, capture_output=True)
assert unpacked.returncode == 1 and "its record has other files than it has" in unpacked.stderr, unpacked
