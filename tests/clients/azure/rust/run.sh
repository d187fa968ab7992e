#!/usr/bin/env bash
# Runs Microsoft's crates for tables and queues against the binary.
#
#   tests/clients/azure/rust/run.sh [arguments for cargo test]
#
# Builds in target/clients/azure/rust. TRESTLE_BIN names another binary than the debug build;
# AZURE_TARGET=azurite runs them against Azurite in AZURITE_HOME; AZURE_RESULTS names a file that
# gets a line for each test.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../../setup.sh"

[ "${AZURE_TARGET:-trestle}" = azurite ] || debug_binary

export CARGO_TARGET_DIR="$root/target/clients/azure/rust"
# Written as programs of users are: the lints of the workspace are not for them.
unset RUSTC_WORKSPACE_WRAPPER
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
cargo test --quiet --locked --no-fail-fast --manifest-path "$script_dir/Cargo.toml" "$@" -- \
  --format pretty 2>&1 | tee "$log" || code=$?
if [ -n "${AZURE_RESULTS:-}" ]; then
  awk '$1 == "test" && $3 == "..." { print "rust/" $2 "\t" ($4 == "ok" ? "passed" : "failed") }' \
    "$log" >"$AZURE_RESULTS"
fi
exit "$code"
