#!/usr/bin/env bash
# Runs Microsoft's client of blobs for Go against the binary.
#
#   tests/clients/azure/go/run.sh [arguments for go test]
#
# Needs Go. TRESTLE_BIN names another binary than the debug build.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../../setup.sh"
source "$script_dir/../../serve.sh"

if ! command -v go >/dev/null; then
  echo "SKIPPED: no go on this machine"
  exit 0
fi
debug_binary

cd "$script_dir"
export GOFLAGS=-mod=readonly
go vet ./...
start_server
export AZURE_BLOB=$azure_blob
code=0
log=$(mktemp)
go test -count=1 -v "$@" ./... >"$log" 2>&1 || code=$?
grep -v '^\(=== \|--- PASS\)' "$log" || true
passed=$(grep -c '^--- PASS' "$log" || true)
failed=$(grep -c '^--- FAIL' "$log" || true)
rm -f "$log"
echo "$passed passed, $failed failed"
exit "$code"
