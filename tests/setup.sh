# What the suites need before they run; sourced by their run.sh, never run itself.
#
# Each function ends the script with code 0 and a line that begins with SKIPPED where the machine
# lacks the language; every other failure to set up is a failure. Everything made is under target/,
# or in node_modules beside a package.json.
set -euo pipefail

# The root of the repository.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# python_environment NAME REQUIREMENTS: makes target/clients/NAME with what the file names, and sets
# `python` to its interpreter. The marker is written last, so an interrupted set-up is done again.
python_environment() {
  if ! command -v python3 >/dev/null; then
    echo "SKIPPED: no python3 on this machine"
    exit 0
  fi
  local venv="$root/target/clients/$1" expected
  expected=$(python3 --version; cat "$2")
  if [ "$expected" != "$(cat "$venv/.complete" 2>/dev/null || true)" ]; then
    rm -rf "$venv"
    mkdir -p "$(dirname "$venv")"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --requirement "$2"
    printf '%s\n' "$expected" >"$venv/.complete"
  fi
  python="$venv/bin/python"
  export PYTHONDONTWRITEBYTECODE=1
}

# node_packages DIRECTORY: installs there what its lock file names.
node_packages() {
  if ! command -v node >/dev/null; then
    echo "SKIPPED: no node on this machine"
    exit 0
  fi
  local expected
  expected=$(node --version; cat "$1/package.json" "$1/package-lock.json")
  if [ "$expected" != "$(cat "$1/node_modules/.complete" 2>/dev/null || true)" ]; then
    npm --prefix "$1" ci --loglevel=error --no-audit --no-fund
    printf '%s\n' "$expected" >"$1/node_modules/.complete"
  fi
}

# debug_binary: builds the server, unless TRESTLE_BIN names one.
debug_binary() {
  if [ -z "${TRESTLE_BIN:-}" ]; then
    cargo build --quiet --locked --package trestle --manifest-path "$root/Cargo.toml"
    TRESTLE_BIN="${CARGO_TARGET_DIR:-$root/target}/debug/trestle"
  fi
  export TRESTLE_BIN
}
