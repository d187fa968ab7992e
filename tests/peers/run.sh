#!/bin/sh
# Servers beside their peers: installs them under target/peers, builds the load, and runs both.
# `cargo bench … budgets -- peers`, `… -- rest`, `… -- blob-peers` and
# `… -- blob-rest` call it; see src/main.rs for what can be set.
#
#   tests/peers/run.sh TRESTLE          the queue; TRESTLE is the server, built with optimisations
#   tests/peers/run.sh TRESTLE rest     the protocol of Azure Storage, beside Azurite alone
#   tests/peers/run.sh TRESTLE blob     blobs, beside Azurite, Garage, SeaweedFS and s3s-fs
#   tests/peers/run.sh TRESTLE blob-rest    blobs over REST, beside gRPC and Azurite
set -eu
trestle=$(realpath "$1")
cd "$(dirname "$0")"
target=$(realpath ../..)/target/peers
./install.sh "$target" "${2:-queue}"
cargo build --quiet --locked --release --target-dir "$target/build"
exec "$target/build/release/trestle-peers" "$trestle" "$target" "${2:-queue}"
