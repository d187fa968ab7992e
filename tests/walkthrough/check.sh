#!/usr/bin/env bash
# Runs the walk-through against a server of its own, and compares its answers with what awk and grep
# find in the same data.
#
#   tests/walkthrough/check.sh
#
# TRESTLE_BIN names another binary than the debug build. Ends with code 0 and a line that begins
# with SKIPPED where there is no apt.
set -euo pipefail
export LC_ALL=C

script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$script_dir/../.." && pwd)

if ! command -v apt-cache >/dev/null; then
  echo "SKIPPED: no apt on this machine"
  exit 0
fi

if [ -z "${TRESTLE_BIN:-}" ]; then
  cargo build --quiet --locked --package trestle --manifest-path "$root/Cargo.toml"
  TRESTLE_BIN="${CARGO_TARGET_DIR:-$root/target}/debug/trestle"
fi
export TRESTLE_BIN

work=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

"$TRESTLE_BIN" serve --data-dir "$work/data" --listen 127.0.0.1:0 --admin 127.0.0.1:0 \
  --azure-table off --azure-queue off --azure-blob off >"$work/ready" </dev/null &
server=$!
for _ in $(seq 300); do
  grep -q '^ready ' "$work/ready" && break
  kill -0 "$server" || { echo "the server ended before it was ready"; exit 1; }
  sleep 0.1
done
TRESTLE_ENDPOINT="http://$(sed -n 's/^ready .*grpc=\([^ ]*\).*/\1/p' "$work/ready")"
export TRESTLE_ENDPOINT

"$script_dir/debian_packages.sh" "$work/walk"
cd "$work/walk"

passed=0
failed=0
# equal WHAT FOUND EXPECTED
equal() {
  if [ "$2" = "$3" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1: found \`$2\`, expected \`$3\`"
  fi
}
count() { wc -l <"$1" | tr -d ' '; }
# has NAME TEXT: how many lines of an answer have a text
has() { grep -cF -- "$2" "$1" || true; }

rows=$(count packages.jsonl)
equal "at least 50,000 packages" "$((rows >= 50000))" 1

# The same queries on the file. Fields between quotes: $4 is the section, $8 the name.
range=$(awk -F'"' '$4 == "editors" && $8 >= "vim" && $8 < "vin"' packages.jsonl | wc -l)
section=$(awk -F'"' '$4 == "shells"' packages.jsonl | wc -l)
large=$(awk -F'"size":"' 'NF > 1 { split($2, size, "\""); if (size[1] + 0 > 1e8) n++ }
  END { print n + 0 }' packages.jsonl)
sections=$(awk -F'"' '{ print $4 }' packages.jsonl | sort -u | wc -l)
sized=$(has packages.jsonl '"size@odata.type":"Edm.Int64"')

equal "point read" "$(count point)" 1
equal "point read, its key" "$(has point '"PartitionKey":"editors","RowKey":"vim",')" 1
equal "row range is not empty" "$((range > 0))" 1
equal "row range" "$(count row_range)" "$range"
equal "partition" "$(count partition)" "$section"
equal "filter" "$(count filter)" "$large"
equal "projection has the size" "$(has filter '"size@odata.type":"Edm.Int64"')" "$large"
equal "projection has nothing else" "$(has filter '"description"')" 0

equal "scope of a point" "$(has explain_point '"scope":"POINT"')" 1
equal "scope of a row range" "$(has explain_row_range '"scope":"ROW_RANGE"')" 1
equal "a row range reads only the range" "$(has explain_row_range "\"scanned\":$range,")" 1
equal "scope of a partition" "$(has explain_partition '"scope":"PARTITION"')" 1
equal "a partition reads only itself" "$(has explain_partition "\"scanned\":$section,")" 1
equal "scope of a filter on a property" "$(has explain_filter '"scope":"TABLE"')" 1

equal "stats: entities" "$(has stats "\"entities\":$rows,\"partitions\":$sections,")" 1
equal "stats: types" "$(has stats "\"size\":{\"Edm.Int64\":$sized}")" 1

# Beyond export = re-export, which the walk-through compares itself: the import is complete.
equal "exported rows" "$(count packages-1.jsonl)" "$rows"
equal "export has what was imported" \
  "$(sort packages-1.jsonl | sha256sum)" "$(sort packages.jsonl | sha256sum)"
equal "keys are in order" \
  "$(awk -F'"' '{ print $4 "\001" $8 }' packages-1.jsonl | sort -c && echo yes)" yes

kill -TERM "$server"
code=0
wait "$server" || code=$?
server=
equal "the server ends well" "$code" 0

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
