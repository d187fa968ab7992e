#!/usr/bin/env bash
# Runs the import checks: the real binary against the real Azurite.
#
#   tests/clients/import/run.sh [arguments for node]
#
# Installs what the lock file names. TRESTLE_BIN names another binary than the debug build.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../../setup.sh"

node_packages "$here"
debug_binary

# One process for each file, and one file at a time: two cores are enough for a server and a client.
cd "$here"
exec node --test --test-concurrency=1 "$@" ./*.test.js
