#!/usr/bin/env bash
# Runs the official Python clients of tables, queues and blobs, blocking and asyncio, against the binary.
#
#   tests/clients/azure/python/run.sh [pytest arguments]
#
# TRESTLE_BIN names another binary than the debug build; AZURE_TARGET=azurite runs them against
# Azurite in AZURITE_HOME; AZURE_RESULTS names a file that gets a line for each test.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../../setup.sh"

python_environment azure/python "$script_dir/requirements.txt"
[ "${AZURE_TARGET:-trestle}" = azurite ] || debug_binary

cd "$script_dir"
exec "$python" -m pytest "$@"
