#!/usr/bin/env bash
# Generates a Go client from the unmodified contract and runs a program on it against the real binary.
#
#   tests/clients/go/run.sh
#
# Needs Go. TRESTLE_BIN names another binary than the debug build.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../setup.sh"
source "$script_dir/../serve.sh"

if ! command -v go >/dev/null; then
  echo "SKIPPED: no go on this machine"
  exit 0
fi
debug_binary

work=$root/target/clients/go
go_stubs "$work"
cp "$script_dir/main.go" "$work"
cd "$work"
go vet .
go build -o bin/client .

start_server
bin/client "$grpc" "$root/proto/service_config.json"
