#!/usr/bin/env bash
# Runs the Python client suite against the real binary.
#
#   tests/clients/python/run.sh [pytest arguments]
#
# Makes its own virtual environment in target/clients. TRESTLE_BIN names another binary than the
# debug build.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../../setup.sh"

python_environment python "$here/requirements.txt"
debug_binary

cd "$here"
exec "$python" -m pytest "$@"
