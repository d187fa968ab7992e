#!/usr/bin/env bash
# Runs a page in headless Chromium against the real binary.
#
#   tests/browser/run.sh [arguments for node]
#
# Installs what the lock file names; with CI=true, as root and with apt, Chromium too. CHROMIUM
# names another browser than /usr/bin/chromium, TRESTLE_BIN another binary than the debug build.
# Ends with code 0 and a line that begins with SKIPPED where there is no node or no browser; every
# other failure to set itself up is a failure.
set -euo pipefail

if ! command -v node >/dev/null; then
  echo "SKIPPED: no node on this machine"
  exit 0
fi

CHROMIUM=${CHROMIUM:-/usr/bin/chromium}
if [ ! -x "$CHROMIUM" ] && [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] &&
  command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  { apt-get --quiet=2 update &&
    apt-get --quiet=2 install --yes --no-install-recommends chromium >/dev/null; } ||
    echo "cannot install chromium"
fi
if [ ! -x "$CHROMIUM" ]; then
  echo "SKIPPED: no browser on this machine at $CHROMIUM"
  exit 0
fi
export CHROMIUM

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
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

exec node --test --test-concurrency=1 "$@" ./*.test.js
