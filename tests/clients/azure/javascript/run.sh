#!/usr/bin/env bash
# Runs the official JavaScript clients of tables, queues and blobs against the binary.
#
#   tests/clients/azure/javascript/run.sh [arguments for node]
#
# TRESTLE_BIN names another binary than the debug build; AZURE_TARGET=azurite runs them against
# Azurite in AZURITE_HOME; AZURE_RESULTS names a file that gets a line for each test.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../../setup.sh"

node_packages "$script_dir"
[ "${AZURE_TARGET:-trestle}" = azurite ] || debug_binary

cd "$script_dir"
exec node --test --test-concurrency=1 --test-timeout=240000 "$@" ./*.test.js
