#!/usr/bin/env bash
# Runs the device's own kernels under compute-sanitizer. Usage: sanitizer.sh GPU_TESTS. Exit 77 with
# a reason where it cannot run.
set -u
program=$1
tool=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [ ! -x "$tool" ]; then
  echo "skipped: compute-sanitizer is not installed"
  exit 77
fi
"$program" refusals
status=$?
if [ $status -eq 77 ]; then
  exit 77
fi
bad=0
run() {
  local check=$1
  shift
  echo "== $check $*"
  "$tool" --tool "$check" --error-exitcode 9 --print-limit 20 "${extra[@]}" "$program" --small "$@" ||
    bad=1
}
# Tests of refused calls make the runtime report errors on purpose.
extra=(--report-api-errors no)
run memcheck memory timing norm
extra=()
run synccheck memory timing norm
run initcheck memory norm
# racecheck knows no asynchronous copies between the blocks of a cluster, so long rows stay out.
run racecheck memory norm_grid
exit $bad
