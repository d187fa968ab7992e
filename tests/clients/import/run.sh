#!/usr/bin/env bash
# Runs the import checks: the real binary against the real Azurite.
#
#   tests/clients/import/run.sh [arguments for node]
#
# Installs what the lock file names. TRESTLE_BIN names another binary than the debug build.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../setup.sh"

node_packages "$script_dir"
debug_binary

# One process for each file, and one file at a time: two cores are enough for a server and a client.
cd "$script_dir"
exec node --test --test-concurrency=1 "$@" ./*.test.js
