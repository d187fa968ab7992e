#!/usr/bin/env bash
# Runs the file systems that data tools have for blobs against the binary: adlfs under fsspec, pandas and DuckDB, and
# the one of Apache Arrow.
#
#   tests/clients/azure/filesystems/run.sh [pytest arguments]
#
# TRESTLE_BIN names another binary than the debug build.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../../setup.sh"

python_environment azure/filesystems "$script_dir/requirements.txt"
debug_binary

cd "$script_dir"
exec "$python" -m pytest "$@"
