#!/usr/bin/env bash
# Sourced by jobs of several parts, which all run whatever becomes of the others; the worst exit code is the job's: 1
# before 3 before the rest. `out` is the job's folder. A part that cannot be tried ends with 4 and says so.
worst=0
rm -f "${out:?}/parts.txt"
count_code() {  # exit code of a part
  if [ "$1" = 1 ] || { [ "$1" != 0 ] && [ "$worst" != 1 ] && [ "$worst" != 3 ]; }; then worst=$1; fi
}
part() {  # name, command...
  local name=$1 code=0
  shift
  "$@" >"$out/$name.log" 2>&1 || code=$?
  echo "$name: $code" | tee -a "$out/parts.txt"
  count_code "$code"
}
end_of_parts() {
  echo "$worst" >"$out/exit_code"
  exit "$worst"
}
