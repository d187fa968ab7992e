#!/bin/sh
# The queue beside its peers: installs them under target/peers, builds the load, and runs both.
# `cargo bench … budgets -- peers` calls it; see src/main.rs for what can be set.
#
#   tests/peers/run.sh TRESTLE      the binary of the server, built with optimisations
set -eu
trestle=$(realpath "$1")
cd "$(dirname "$0")"
target=$(realpath ../..)/target/peers
./install.sh "$target"
cargo build --quiet --locked --release --target-dir "$target/build"
exec "$target/build/release/trestle-peers" "$trestle" "$target"
