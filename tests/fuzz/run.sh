#!/bin/sh
# Builds every fuzz target and runs each for a bounded time, ten seconds by default, one on each processor.
#
#   tests/fuzz/run.sh [seconds per target] [target ...]
#
# Nothing but Rust and a C++ compiler is needed: libFuzzer comes with its crate, and the compiler
# instruments for coverage with flags that its stable release has too. New inputs are kept in
# tests/fuzz/artifacts, next to the input of a crash if there is one; the corpus that the
# repository keeps is read and never written.
set -eu

cd "$(dirname "$0")"

# Runs a target for a time, out of a folder, and reports the result; fails where it found something, or ran nothing.
fuzz() {
    found="artifacts/$1"
    mkdir -p "$found/corpus"
    log="$found/log"
    if "$3/$1" "$found/corpus" "corpus/$1" \
        -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -max_len=4096 \
        -print_final_stats=1 -verbosity=0 -artifact_prefix="$found/" >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "$1: ${runs:-0} executions in $2 s"
        [ "${runs:-0}" -gt 0 ] || { cat "$log"; return 1; }
    else
        tail -n 60 "$log"
        echo "$1: FAILED; the input is in tests/fuzz/$found"
        return 1
    fi
}

if [ "${1:-}" = --one ]; then
    fuzz "$4" "$2" "$3"
    exit
fi
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
# One on each processor. A failure is reported by xargs, once all the others have run.
# shellcheck disable=SC2086 # names without spaces
printf '%s\n' $targets | xargs -n 1 -P "$(nproc)" ./run.sh --one "$seconds" "target/$host/release"
