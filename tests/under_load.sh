#!/usr/bin/env bash
# Runs all tests several times beside programs that take every core, as on the machine of a developer who also builds
# something else. A test that fails here and passes alone waits for a time where it should wait for a condition.
#
#   tests/under_load.sh [ROUNDS]      5 rounds unless given; LOAD=8 sets the number of programs, two a core otherwise
#
# Ends at the first round that fails. The last line has the rounds that passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=${1:-5}
load=${LOAD:-$((2 * $(nproc)))}
[[ "$rounds" =~ ^[1-9][0-9]*$ && "$load" =~ ^[1-9][0-9]*$ ]] || {
  echo "usage: [LOAD=PROGRAMS] tests/under_load.sh [ROUNDS]" >&2
  exit 2
}

# Built before the load begins: what is measured is the tests.
cargo test --workspace --locked --no-run

busy=()
trap 'kill "${busy[@]}" 2>/dev/null || true' EXIT
for _ in $(seq "$load"); do
  # Each ends by itself when this script has ended without its trap.
  (while kill -0 $$ 2>/dev/null; do for ((turn = 0; turn < 100000; turn++)); do :; done; done) &
  busy+=($!)
done
echo "$load programs take the cores"

for round in $(seq "$rounds"); do
  began=$SECONDS
  if ! cargo test --workspace --locked; then
    echo "round $round of $rounds failed after $((SECONDS - began)) s; $((round - 1)) passed"
    exit 1
  fi
  echo "round $round of $rounds passed in $((SECONDS - began)) s"
done
echo "$rounds rounds passed"
