#!/usr/bin/env bash
# Sourced by the jobs that go on from earlier runs. A ledger that lies in a checkout is one that a change may bring along.
ledger_outside() {  # ledger, checkouts...; ends the job of the folder `out` with 2 where it lies in one of them
  local ledger checkout
  ledger=$(realpath -m "$1")
  shift
  for checkout; do
    case $ledger/ in
      "$(realpath "$checkout")"/*)
        echo "the ledger $ledger lies in the checkout $checkout: name a folder outside" >&2
        echo 2 >"${out:?}/exit_code"
        exit 2
        ;;
    esac
  done
  mkdir -p "$ledger"
}
