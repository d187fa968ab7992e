#!/usr/bin/env bash
# The walk-through of docs/tables.md: loads the package index of this machine into a server, and queries it.
#
#   trestle serve &
#   tests/walkthrough/debian_packages.sh [DIRECTORY]
#
# Shows each command and the beginning of its answer; the whole answers are in DIRECTORY (default
# target/walkthrough) for check.sh. `trestle` is TRESTLE_BIN, or the one in PATH; the server is
# TRESTLE_ENDPOINT, or the default one. Makes the tables packages, copies and sheets.
set -euo pipefail

script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
directory=${1:-$script_dir/../../target/walkthrough}
mkdir -p "$directory"
cd "$directory"

# run NAME ARGUMENTS: runs a command, keeps its answer as NAME, shows the first lines of it.
run() {
  local name=$1
  shift
  printf '\n$ trestle'
  local word
  for word in "$@"; do
    # The filters have blanks and single quotes, and nothing that double quotes would not hold.
    case $word in *\ *) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  printf '\n'
  local start=$EPOCHREALTIME
  "${TRESTLE_BIN:-trestle}" "$@" >"$name"
  head -n 4 "$name" | cut -c 1-160
  local lines
  lines=$(wc -l <"$name")
  [ "$lines" -le 4 ] || echo "... $lines lines"
  awk -v start="$start" -v end="$EPOCHREALTIME" 'BEGIN { printf "(%.2f s)\n", end - start }'
}

rm -f packages.jsonl
"$script_dir/package_index.sh" packages.jsonl
[ -e packages.jsonl ] || exit 0

run create table create packages
run import table import packages packages.jsonl

# One package: the cheapest read there is.
run point entity get packages editors vim --json
# A range of names in one section.
run row_range entity query packages --json \
  --filter "PartitionKey eq 'editors' and RowKey ge 'vim' and RowKey lt 'vin'"
# A whole section.
run partition entity query packages --json --filter "PartitionKey eq 'shells'"
# Every package over 100 MB, two properties of each: reads the whole table.
run filter entity query packages --json --filter "size gt 100000000L" --select size,version

# What these queries read, before they are run.
run explain_point entity explain packages --json \
  --filter "PartitionKey eq 'editors' and RowKey eq 'vim'"
run explain_row_range entity explain packages --json --analyze \
  --filter "PartitionKey eq 'editors' and RowKey ge 'vim' and RowKey lt 'vin'"
run explain_partition entity explain packages --json --analyze --filter "PartitionKey eq 'shells'"
run explain_filter entity explain packages --json --filter "size gt 100000000L"
run stats table stats packages --json

# Out, into a second table, and out again: equal to the byte. CSV keeps the types too.
run export table export packages packages-1.jsonl
run create_copies table create copies
run import_copies table import copies packages-1.jsonl
run export_copies table export copies packages-2.jsonl
cmp packages-1.jsonl packages-2.jsonl
run export_csv table export packages packages-1.csv
run create_sheets table create sheets
run import_csv table import sheets packages-1.csv
run export_sheets table export sheets packages-3.jsonl
cmp packages-1.jsonl packages-3.jsonl
echo
echo "exports are equal"
