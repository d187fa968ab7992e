#!/usr/bin/env bash
# Runs a real receiver of OpenTelemetry, in Python, beside gateway and table processes.
#
#   tests/telemetry/run.sh [pytest arguments]
#
# Makes its own virtual environment in target/clients. TRESTLE_BIN names another binary than the
# debug build.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../setup.sh"

python_environment telemetry "$script_dir/requirements.txt"
debug_binary

cd "$script_dir"
exec "$python" -m pytest "$@"
