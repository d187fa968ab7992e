#!/usr/bin/env bash
# Runs the guides of docs/guides against the real binary: their commands and programs, in the order of the page, and
# compares what they print with what the page shows.
#
#   tests/clients/guides/run.sh [pytest arguments]
#
# Makes its own virtual environment in target/clients. Programs of Node and Go are left out, with a line that begins
# with SKIPPED, where the machine lacks the language. TRESTLE_BIN names another binary than the debug build.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../setup.sh"
source "$script_dir/../serve.sh"

python_environment guides "$script_dir/requirements.txt"
debug_binary
guides_python=$python
if command -v node >/dev/null; then
  node_packages "$script_dir/../javascript"
  export GUIDES_NODE=$root/tests/clients/javascript/node_modules
fi
if command -v go >/dev/null; then
  export GUIDES_GO=$root/target/clients/guides-go
  go_stubs "$GUIDES_GO"
  # What it downloads and compiles is no output of a page.
  (cd "$GUIDES_GO" && go build ./trestle/table/... ./trestle/queue/...)
fi

cd "$script_dir"
exec "$guides_python" -m pytest "$@"
