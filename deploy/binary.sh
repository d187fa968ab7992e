#!/usr/bin/env bash
# Builds the static release binary and lays out what the image is built from: target/image/trestle and an empty
# target/image/data.
#
#   deploy/binary.sh
#
# The same sources give the same bytes on every machine with this toolchain: paths of the machine are mapped, and
# nothing in it has a time. Static, with the C library of the GNU project: host names are resolved by /etc/hosts and DNS
# only, without the modules of nsswitch.conf.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=x86_64-unknown-linux-gnu
# The limit of the size of the binary.
bytes_max=$((40 * 1024 * 1024))
home=${CARGO_HOME:-$HOME/.cargo}
export CARGO_INCREMENTAL=0
source deploy/static.sh
export RUSTFLAGS="$static_flags --remap-path-prefix=$PWD=/trestle --remap-path-prefix=$home=/cargo"
# C sources, of the allocator and the cryptography, name their files too.
export CFLAGS="-ffile-prefix-map=$PWD=/trestle -ffile-prefix-map=$home=/cargo"
# The allocator contains the time of its compilation: a constant, which compiles nothing again for each commit.
SOURCE_DATE_EPOCH=0 cargo build --profile dist --locked --package trestle --target "$target"
built=${CARGO_TARGET_DIR:-target}/$target/dist/trestle

if readelf --program-headers "$built" | grep -q INTERP; then
  echo "not static: $built" >&2
  exit 1
fi
bytes=$(stat --format=%s "$built")
if [ "$bytes" -ge "$bytes_max" ]; then
  echo "too large: bytes=$bytes, at most $bytes_max" >&2
  exit 1
fi
"$built" version
rm -rf target/image
mkdir -p target/image/data
cp "$built" target/image/trestle
echo "target/image/trestle: static, $bytes bytes"
