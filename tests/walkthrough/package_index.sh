#!/usr/bin/env bash
# Writes the package index of this machine as entities, one JSON object a line.
#
#   tests/walkthrough/package_index.sh FILE
#
# Takes the index that apt has; where it has none, fetches it into a directory of its own, which
# needs no rights. Ends with code 0 and a line that begins with SKIPPED, without writing FILE, where
# there is no apt.
set -euo pipefail

file=${1:?usage: package_index.sh FILE}
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if ! command -v apt-cache >/dev/null; then
  echo "SKIPPED: no apt on this machine"
  exit 0
fi

options=()
packages=$(apt-cache dumpavail | grep -c '^Package:' || true)
if [ "$packages" -lt 50000 ]; then
  echo "apt has $packages packages only: fetching the index"
  own=$(dirname "$file")/apt
  mkdir -p "$own/lists/partial" "$own/cache/archives/partial"
  own=$(cd "$own" && pwd)
  options=(-o "Dir::State::Lists=$own/lists" -o "Dir::Cache=$own/cache")
  options+=(-o "APT::Sandbox::User=$(id -un)")
  apt-get "${options[@]}" --quiet=2 update
fi

# Under its final name only when complete.
apt-cache "${options[@]}" dumpavail | LC_ALL=C awk -f "$script_dir/packages.awk" >"$file.part"
mv "$file.part" "$file"
echo "$(wc -l <"$file") packages in $file"
