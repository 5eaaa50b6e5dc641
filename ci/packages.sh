# Sourced by gate, test and fuzz: what the build needs, installed if it is missing, and how long a part takes.
# Debian 12 and Ubuntu 24.04 name these packages alike.
packages="cmake ninja-build g++ libtomlplusplus-dev libcli11-dev nlohmann-json3-dev libfmt-dev libboost-dev libgtest-dev libbenchmark-dev zlib1g-dev"

# A line a stage, beside what the programs themselves say.
say() { printf -- '-- %s\n' "$1" >&2; }

# install_packages [package...]: those above and the given ones. As root through apt; otherwise says the one line to run.
install_packages() {
  command -v dpkg-query >/dev/null || return 0  # not a Debian: CMake says what it cannot find
  local missing=""
  for package in $packages "$@"; do
    [[ $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) == *"ok installed" ]] || missing="$missing $package"
  done
  [ -z "$missing" ] && return 0
  if [ "$(id -u)" != 0 ]; then
    echo "Packages are missing. Run this, then the same command again:" >&2
    echo "  sudo apt-get update && sudo apt-get install -y$missing" >&2
    exit 2
  fi
  say "installing$missing"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# Browser for ci/look_at_report. Ubuntu has it as a snap alone, which containers cannot run; the
# test says so there.
browser_packages() { [[ $(. /etc/os-release 2>/dev/null && echo "$ID") == debian ]] && echo chromium fonts-liberation || true; }

find_nvcc() {
  command -v nvcc || { [ -x /usr/local/cuda/bin/nvcc ] && echo /usr/local/cuda/bin/nvcc; } || true
}

# No pipe into `grep -q`: it would end nvidia-smi by SIGPIPE on a machine with many GPUs, and pipefail would see that.
has_gpu() { command -v nvidia-smi >/dev/null && [[ $(nvidia-smi -L 2>/dev/null) == "GPU "* ]]; }

# Shows how far ninja is, and nothing else that it says.
show_counter() {
  local line
  while IFS= read -r line; do
    if [[ $line =~ ^\[([0-9]+/[0-9]+)\] ]]; then printf '\r   %s files ' "${BASH_REMATCH[1]}" >&2; fi
  done
  printf '\r\033[K' >&2
}

# configure_and_build <preset> <targets> [cmake argument...]: a line a stage, and a counter on a terminal; logs are in build/ and are
# shown when something fails.
# Sixteen files a compilation: a third of the processor time of one each. That every file also compiles by itself is for a
# plain `cmake --preset host` to show, and every night for ci/jobs/sanitizers.
configure_and_build() {
  local preset=$1 targets=$2
  shift 2
  say "configuring build/$preset"
  cmake --preset "$preset" -DSTEPGATE_TEST_HALVES=ON -DSTEPGATE_TEST_HEADERS_ONCE=ON -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 "$@" >"build/$preset.configure.log" 2>&1 || { cat "build/$preset.configure.log"; exit 2; }
  say "building $targets in build/$preset; minutes from scratch, details in build/$preset.build.log"
  if [ -t 2 ]; then
    cmake --build --preset "$preset" --target $targets 2>&1 | tee "build/$preset.build.log" | show_counter
  else
    cmake --build --preset "$preset" --target $targets >"build/$preset.build.log" 2>&1
  fi || { cat "build/$preset.build.log"; exit 2; }
}

# refuse_warnings <log>: a compiler that complains is heard. g++ 12 takes an absent std::optional for one that was not
# initialized (GCC bug 105562 and others).
refuse_warnings() {
  local found
  found=$(grep -E "warning: |warning #" "$1" | grep -v -- "-Wmaybe-uninitialized" | sort -u) || true
  [ -n "$found" ] || return 0
  echo "the compiler warns; mend what it says, or say in the code why it is wrong:" >&2
  echo "$found" >&2
  return 1
}

# Where no GPU runs the kernels they are compiled to PTX alone, which takes 40 % of the time: what ptxas refuses shows where there
# is one, and in ci/jobs/build, which compiles for every architecture of a release.
cuda_arguments() {
  echo "-DCMAKE_CUDA_COMPILER=$(find_nvcc)"
  if has_gpu; then echo "-DCMAKE_CUDA_ARCHITECTURES=native"; else echo "-DCMAKE_CUDA_ARCHITECTURES=90-virtual"; fi
}

# rates_may_have_changed: whether the power tests, which simulate thousands of gates, are due: a path that they depend on differs
# from the branch that this one leaves (origin/main), or on that branch itself from what it was a day ago. Without a history they are.
# ci/jobs/sanitizers runs them every night.
rates_may_have_changed() {
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null) || base=
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD 2>/dev/null)" ]; then
    base=$(git rev-list -1 --before="1 day ago" HEAD 2>/dev/null) || base=
  fi
  [ -n "$base" ] || return 0
  ! git diff --quiet "$base" -- runner/base/stats runner/measure runner/judge runner/compare runner/ledger runner/device/simulated tests/power
}

# timed <part> <command...>: runs it, and says how long it took, so that a log says where the time goes.
timed() {
  local TIMEFORMAT="-- $1: %0R s, %0U + %0S s of processor time"
  shift
  time "$@"
}

# processor_seconds <file>: seconds of processor time that a shell's children took, as its `times` wrote them to the file.
processor_seconds() { awk -F '[ms ]+' 'NR == 2 { printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' "$1"; }

# refuse_more_than <seconds> <file>: fails where the children took more.
refuse_more_than() {
  local used
  used=$(processor_seconds "$2")
  [ "$used" -gt "$1" ] || return 0
  echo "ci/test took $used s of processor time, more than $1; make a test or a build cheaper, or leave it to ci/jobs" >&2
  return 1
}
