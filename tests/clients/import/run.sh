#!/usr/bin/env bash
# Runs the import checks: the real binary against the real Azurite.
#
#   tests/clients/import/run.sh [arguments for node]
#
# Installs what the lock file names. TRESTLE_BIN names another binary than the debug build. Ends
# with code 0 and a line that begins with SKIPPED where there is no node; every other failure to
# set itself up is a failure.
set -euo pipefail

if ! command -v node >/dev/null; then
  echo "SKIPPED: no node on this machine"
  exit 0
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
cd "$here"

# The marker is written last, so an interrupted installation is done again.
wanted=$(node --version; cat package.json package-lock.json)
if [ "$wanted" != "$(cat node_modules/.complete 2>/dev/null || true)" ]; then
  npm ci --loglevel=error
  printf '%s\n' "$wanted" >node_modules/.complete
fi

if [ -z "${TRESTLE_BIN:-}" ]; then
  cargo build --quiet --locked --package trestle --manifest-path "$root/Cargo.toml"
  TRESTLE_BIN="${CARGO_TARGET_DIR:-$root/target}/debug/trestle"
fi
export TRESTLE_BIN

# One process for each file, and one file at a time: two cores are enough for a server and a client.
exec node --test --test-concurrency=1 "$@" ./*.test.js
