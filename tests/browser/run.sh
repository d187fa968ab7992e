#!/usr/bin/env bash
# Runs a page in headless Chromium against the real binary.
#
#   tests/browser/run.sh [arguments for node]
#
# Installs what the lock file names; with CI=true, as root and with apt, Chromium too. CHROMIUM
# names another browser than /usr/bin/chromium, TRESTLE_BIN another binary than the debug build.
# Ends with code 0 and a line that begins with SKIPPED where there is no browser, too.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../setup.sh"

node_packages "$script_dir"

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

debug_binary

cd "$script_dir"
exec node --test --test-concurrency=1 "$@" ./*.test.js
