#!/usr/bin/env bash
# Sourced by ci/jobs/own in a repository that has kernels of its own, which these variables describe:
#   STEPGATE_LIBRARY        the library that a checkout builds, as build/libmine.so
#   STEPGATE_BUILD_LIBRARY  the command that builds it, for bash in the checkout, with the release's folder in STEPGATE_PREFIX
#   STEPGATE_KERNELS        the kernels in it that are checked, with the steps of scenarios/ and blanks between them
#   STEPGATE_BASE           a checkout of the commit before, which `gate` compares with
build_library() {  # checkout, its name in words; 2 where it cannot be built
  (cd "$1" && bash -euo pipefail -c "${STEPGATE_BUILD_LIBRARY:-}") && [ -f "$1/$STEPGATE_LIBRARY" ] && return
  echo "$2 builds no $STEPGATE_LIBRARY" >&2
  return 2
}
check_library() {  # stepgate, folder for reports; 1 where a kernel is refused
  local stepgate=$1 out=$2 code=0 kernel scenarios=()
  [ ! -e scenarios ] || scenarios=(--scenario scenarios)
  for kernel in ${STEPGATE_KERNELS:-}; do
    "$stepgate" kernel check "$STEPGATE_LIBRARY" "$kernel" "${scenarios[@]}" 2>&1 | tee -a "$out/check.txt" || code=$?
  done
  return "$code"
}
library_of_both() {  # stepgate, folder for reports, verb; the code of the first that fails
  STEPGATE_PREFIX=$(realpath "$(dirname "$1")/..")
  export STEPGATE_PREFIX CMAKE_PREFIX_PATH=$STEPGATE_PREFIX${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
  build_library . HEAD || return
  check_library "$1" "$2" || return
  [ "$3" = gate ] || return 0
  if [ -z "${STEPGATE_BASE:-}" ] || ! build_library "$STEPGATE_BASE" BASE; then
    echo "HEAD's library is compared with nothing" >&2
    return 4
  fi
}
