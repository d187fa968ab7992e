#!/usr/bin/env bash
# Calls the real binary with grpcurl and ghz, which have the contract by reflection only: every grpcurl
# command of README.md and docs, the options of fields, the details of errors, and a load with
# compression.
#
#   tests/clients/grpcurl/run.sh
#
# Needs Go and Python. TRESTLE_BIN names another binary than the debug build.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../setup.sh"
source "$script_dir/../serve.sh"

grpcurl_module=github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3
ghz_module=github.com/bojand/ghz/cmd/ghz@v0.120.0

for tool in go python3; do
  if ! command -v "$tool" >/dev/null; then
    echo "SKIPPED: no $tool on this machine"
    exit 0
  fi
done
debug_binary
bin=$root/target/clients/grpcurl
mkdir -p "$bin"
for module in "$grpcurl_module" "$ghz_module"; do
  name=$(basename "${module%@*}")
  if [ "$(cat "$bin/$name.version" 2>/dev/null)" != "$module" ]; then
    GOBIN=$bin GOFLAGS=-mod=mod go install "$module"
    echo "$module" >"$bin/$name.version"
  fi
done
export PATH=$bin:$PATH

passed=0
failed=0
# expect NAME PATTERN COMMAND...: the output of the command, errors included, has a line that matches.
expect() {
  local name=$1 pattern=$2 output
  shift 2
  output=$("$@" 2>&1) || true
  if grep -qE -- "$pattern" <<<"$output"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'failed: %s\n%s\n' "$name" "$output"
  fi
}

start_server
call() { grpcurl -plaintext -d "$2" "$grpc" "$1"; }
tables=trestle.table.v1.TableService
queues=trestle.queue.v1.QueueService

# What the pages assume.
call "$tables/CreateTable" '{"table": {"name": "orders"}}' >/dev/null
call "$tables/InsertEntity" '{"table": "orders", "entity": {"partition_key": "c42",
  "row_key": "0001", "properties": {"state": {"string_value": "open"}, "total": {"int64_value": 990}}}}' >/dev/null

export ACCOUNT=devstoreaccount1
export KEY=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==
while IFS= read -r -d '' command; do
  command=${command//localhost:50051/$grpc}
  command=${command//127.0.0.1:50051/$grpc}
  if output=$(bash -c "$command" 2>&1); then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'failed: %s\n%s\n' "$command" "$output"
  fi
done < <(python3 "$script_dir/commands.py" "$root"/README.md "$root"/docs/*.md)
if [ "$passed" -lt 5 ]; then
  echo "failed: few commands were found in the pages"
  failed=$((failed + 1))
fi

expect "options of fields are in the descriptors" 'google.api.field_behavior.*REQUIRED' \
  grpcurl -plaintext "$grpc" describe trestle.table.v1.InsertEntityRequest
expect "comments are in the descriptors" 'Inserts a new entity' \
  grpcurl -plaintext "$grpc" describe "$tables.InsertEntity"
expect "an unknown symbol is an error of the client" 'Symbol not found: no.Such|symbol not found' \
  grpcurl -plaintext "$grpc" describe no.Such
expect "details of errors are printed" '"reason": *"RESOURCE_NOT_FOUND"' \
  call "$tables/GetTable" '{"table": "absent"}'
expect "a duration is printed as people write it" 'must be 0 to 20 seconds: value=`30s`' \
  call "$queues/ReceiveMessages" '{"queue": "jobs", "wait": "30s"}'
expect "every detail is known by reflection" 'message QuotaFailure' \
  grpcurl -plaintext "$grpc" describe google.rpc.QuotaFailure
expect "a watch of an unknown service continues" 'SERVICE_UNKNOWN' \
  grpcurl -plaintext -max-time 2 -d '{"service": "none"}' "$grpc" grpc.health.v1.Health/Watch
# shown END: what README shows below the command with this end.
shown() {
  awk -v end="$1" 'found && /^([$] |```)/ { exit } found
    substr($0, length($0) - length(end) + 1) == end { found = 1 }' "$root/README.md"
}
# Lines without the values that differ from run to run.
stable() { sed -E 's/("(timestamp|etag)": ).*/\1/'; }
same() { [ -n "$(shown "$1")" ] && diff <(shown "$1" | stable) <(stable) && echo same; }
listed() {
  grpcurl -plaintext "$grpc" list | diff - <(printf '%s\n' grpc.health.v1.Health \
    grpc.reflection.v1.ServerReflection grpc.reflection.v1alpha.ServerReflection \
    opentelemetry.proto.collector.{logs.v1.Logs,metrics.v1.Metrics,trace.v1.Trace}Service \
    trestle.{blob.v1.Blob,log.v1.Log,queue.v1.Queue,table.v1.Table}Service) && echo same
}
inserted() {
  call "$tables/InsertEntity" '{"table": "orders", "entity": {"partition_key": "c42", "row_key": "0009"}}' |
    same "localhost:50051 $tables/InsertEntity"
}
expect "the services are listed" '^same$' listed
expect "the answer is the one that README shows" '^same$' inserted
load() {
  ghz --insecure "$@" --total 500 --concurrency 10 --call "$tables.GetEntity" \
    --data '{"table": "orders", "partition_key": "c42", "row_key": "0001"}' "$grpc"
}
expect "a load" '\[OK\] +500 responses' load
expect "a load with compression" '\[OK\] +500 responses' load --enable-compression

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
