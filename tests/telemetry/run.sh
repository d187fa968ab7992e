#!/usr/bin/env bash
# Runs a real receiver of OpenTelemetry, in Python, beside gateway and table processes.
#
#   tests/telemetry/run.sh [pytest arguments]
#
# Makes its own virtual environment in target/telemetry. TRESTLE_BIN names another binary than the
# debug build. Ends with code 0 and a line that begins with SKIPPED where there is no python3;
# every other failure to set itself up is a failure.
set -euo pipefail

if ! command -v python3 >/dev/null; then
  echo "SKIPPED: no python3 on this machine"
  exit 0
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
venv="$root/target/telemetry/python"

# The marker is written last, so an interrupted set-up is done again.
wanted=$(python3 --version; cat "$here/requirements.txt")
if [ "$wanted" != "$(cat "$venv/.complete" 2>/dev/null || true)" ]; then
  rm -rf "$venv"
  mkdir -p "$(dirname "$venv")"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --requirement "$here/requirements.txt"
  printf '%s\n' "$wanted" >"$venv/.complete"
fi

if [ -z "${TRESTLE_BIN:-}" ]; then
  cargo build --quiet --locked --package trestle --manifest-path "$root/Cargo.toml"
  TRESTLE_BIN="${CARGO_TARGET_DIR:-$root/target}/debug/trestle"
fi
export TRESTLE_BIN

cd "$here"
PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" -m pytest "$@"
