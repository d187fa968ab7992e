#!/bin/sh
# Builds every fuzz target and runs each for a bounded time, ten seconds unless told.
#
#   tests/fuzz/run.sh [seconds per target] [target ...]
#
# Nothing but Rust and a C++ compiler is needed: libFuzzer comes with its crate, and the compiler
# instruments for coverage with flags that its stable release has too. New inputs are kept in
# tests/fuzz/artifacts, next to the input of a crash if there is one; the corpus that the
# repository keeps is read and never written.
set -eu

cd "$(dirname "$0")"
seconds=${1:-10}
[ $# -eq 0 ] || shift

if ! command -v "${CXX:-c++}" >/dev/null 2>&1; then
    echo "SKIPPED: no C++ compiler \`${CXX:-c++}\`, so nothing is fuzzed"
    exit 0
fi

host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="--cfg fuzzing \
-Cpasses=sancov-module \
-Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
export RUSTFLAGS
# With a target named, build scripts and macros are not instrumented.
cargo build --quiet --locked --release --target "$host"

targets=$*
if [ -z "$targets" ]; then
    targets=$(cd fuzz_targets && ls ./*.rs | sed 's|^\./||; s|\.rs$||')
fi
failed=""
for target in $targets; do
    found="artifacts/$target"
    mkdir -p "$found/corpus"
    log="$found/log"
    if "target/$host/release/$target" "$found/corpus" "corpus/$target" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 \
        -print_final_stats=1 -verbosity=0 -artifact_prefix="$found/" >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        if [ -z "$runs" ] || [ "$runs" -eq 0 ]; then
            cat "$log"
            failed="$failed $target"
        fi
        echo "$target: ${runs:-0} executions in $seconds s"
    else
        tail -n 60 "$log"
        echo "$target: FAILED; the input is in tests/fuzz/$found"
        failed="$failed $target"
    fi
done
if [ -n "$failed" ]; then
    echo "failed:$failed"
    exit 1
fi
