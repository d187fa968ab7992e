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
find_protoc
debug_binary

work=$root/target/clients/go
mkdir -p "$work/bin"
rm -rf "$work/trestle"
cp "$script_dir"/{main.go,go.mod,go.sum} "$work"
cd "$work"
export GOFLAGS=-mod=readonly
for tool in $(sed -n '/^tool (/,/^)/s/^\t//p' go.mod); do
  go build -o bin/ "$tool"
done
export PATH=$work/bin:$PATH
cd "$root/proto"
# One plain command, as docs/grpc.md has it.
# shellcheck disable=SC2046  # the names have no spaces
"$protoc" -I. --go_out="$work" --go_opt=module=trestle.dev/gen/go --go-grpc_out="$work" \
  --go-grpc_opt=module=trestle.dev/gen/go $(find trestle -name '*.proto')
cd "$work"
go vet .
go build -o bin/client .

start_server
bin/client "$grpc" "$root/proto/service_config.json"
