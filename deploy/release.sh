#!/usr/bin/env bash
# Makes everything of a release under target/release-VERSION: the binary as an archive, the Debian package, the image,
# the list of components and licences, and checksums of all.
#
#   deploy/release.sh          builds the binary too
#   deploy/release.sh --twice  makes everything but the binary a second time, and compares the bytes
#
# The outcome depends on the commit and the toolchain alone: every time in it is that of the commit. The image needs
# podman; without it there is none, which is reported.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
revision=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH TRESTLE_REVISION=$revision LC_ALL=C TZ=UTC
# The level of gzip; tests use less.
export COMPRESSION=${COMPRESSION:-6}

# archive DIRECTORY
archive() {
  local name=trestle-$version-x86_64-linux
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --mode=go=rX \
    --transform='s#^target/image/##' --transform="s#^#$name/#" target/image/trestle LICENSE README.md CHANGELOG.md |
    gzip --no-name "-$COMPRESSION" >"$1/$name.tar.gz"
}

# image DIRECTORY
image() {
  if ! command -v podman >/dev/null; then
    echo "no image: no podman on this machine" >&2
    return
  fi
  local tag=localhost/trestle:$version
  BUILDAH_FORMAT=docker podman build --quiet --no-cache --timestamp "$SOURCE_DATE_EPOCH" --target local \
    --build-arg VERSION="$version" --build-arg REVISION="$revision" --tag "$tag" --file deploy/Dockerfile . >/dev/null
  rm -f "$1/image.tar"
  podman save --quiet --format docker-archive --output "$1/image.tar" "$tag" >/dev/null
  python3 deploy/image.py "$1/image.tar" "$1/trestle-$version-image.tar.gz" \
    "$SOURCE_DATE_EPOCH" "$COMPRESSION"
  rm "$1/image.tar"
}

# make DIRECTORY
make() {
  rm -rf "$1"
  mkdir -p "$1"
  find target/image -exec touch --date="@$SOURCE_DATE_EPOCH" {} +
  local parts=() part
  archive "$1" & parts+=($!)
  deploy/package.sh "$version" "$1" & parts+=($!)
  image "$1" & parts+=($!)
  python3 deploy/sbom.py "$version" "$1/trestle-$version.cdx.json" "$1/THIRD-PARTY.txt" & parts+=($!)
  for part in "${parts[@]}"; do
    wait "$part"
  done
  # Newer than its sources again, as the suites of tests need it.
  touch target/image/trestle
  (cd "$1" && sha256sum -- * >SHA256SUMS)
}

out=target/release-$version
if [ "${1:-}" = --twice ]; then
  make "$out"
  make "$out-again"
  diff --recursive "$out" "$out-again"
  rm -r "$out-again"
  echo "made twice, with the same bytes"
else
  deploy/binary.sh
  make "$out"
fi
echo "release: $out"
cat "$out/SHA256SUMS"
