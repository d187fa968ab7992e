#!/usr/bin/env bash
# Runs the Python client suite against the real binary.
#
#   tests/clients/python/run.sh [pytest arguments]
#
# Makes its own virtual environment in target/clients. TRESTLE_BIN names another binary than the
# debug build.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../setup.sh"

python_environment python "$script_dir/requirements.txt"
debug_binary

cd "$script_dir"
exec "$python" -m pytest "$@"
