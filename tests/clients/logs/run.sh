#!/usr/bin/env bash
# Worked examples of logs, run against the real binary: the log of a package manager, the SDK of OpenTelemetry, the
# server's own telemetry, DuckDB and pandas on segments, and the commands of the pages.
#
#   tests/clients/logs/run.sh [pytest arguments]
#
# Makes its own virtual environment in target/clients. TRESTLE_BIN names another binary than the
# debug build.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../setup.sh"

python_environment logs "$script_dir/requirements.txt"
debug_binary

cd "$script_dir"
exec "$python" -m pytest "$@"
