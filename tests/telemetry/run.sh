#!/usr/bin/env bash
# Runs a real receiver of OpenTelemetry, in Python, beside gateway and table processes.
#
#   tests/telemetry/run.sh [pytest arguments]
#
# Makes its own virtual environment in target/clients. TRESTLE_BIN names another binary than the
# debug build.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../setup.sh"

python_environment telemetry "$here/requirements.txt"
debug_binary

cd "$here"
exec "$python" -m pytest "$@"
