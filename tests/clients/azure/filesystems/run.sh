#!/usr/bin/env bash
# Runs the file systems that data tools have for blobs against the binary: adlfs under fsspec, pandas and DuckDB, that
# of Apache Arrow, and rclone.
#
#   tests/clients/azure/filesystems/run.sh [pytest arguments]
#
# Installs rclone as root with CI=true and apt; without it, its tests are skipped. TRESTLE_BIN names another binary than
# the debug build.
script_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$script_dir/../../../setup.sh"

python_environment azure/filesystems "$script_dir/requirements.txt"
if ! command -v rclone >/dev/null && [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] &&
  command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  { apt-get --quiet=2 update &&
    apt-get --quiet=2 install --yes --no-install-recommends rclone >/dev/null; } ||
    echo "cannot install rclone"
fi
command -v rclone >/dev/null || echo "SKIPPED: rclone, which is not on this machine"
debug_binary

cd "$script_dir"
exec "$python" -m pytest "$@"
