#!/usr/bin/env bash
# Measures the same records as a log, as entities, and as single appends to a blob, of this server and of Azurite, and
# draws docs/logs-chart.svg.
#
#   tests/clients/logs/bench.sh
#
# Builds the release binary, unless TRESTLE_BIN names another one; BENCH_BUILD is then what the chart calls it.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../setup.sh"

python_environment logs "$script_dir/requirements.txt"
node_packages "$root/tests/clients/import"
if [ -z "${TRESTLE_BIN:-}" ]; then
  cargo build --quiet --locked --release --package trestle --manifest-path "$root/Cargo.toml"
  TRESTLE_BIN="${CARGO_TARGET_DIR:-$root/target}/release/trestle"
  BENCH_BUILD=${BENCH_BUILD:-release build, $(nproc) cores}
fi
export TRESTLE_BIN BENCH_BUILD=${BENCH_BUILD:-$TRESTLE_BIN, $(nproc) cores}
export AZURITE_BLOB="$root/tests/clients/import/node_modules/azurite/dist/src/blob/main.js"

cd "$script_dir"
exec "$python" bench.py "$root/docs/logs-chart.json" "$root/docs/logs-chart.svg"
