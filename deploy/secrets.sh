#!/usr/bin/env bash
# Makes the secrets of the staging stack that are missing, in the file of variables that compose reads.
#
#   deploy/secrets.sh [FILE]
set -euo pipefail
file=${1:-$(dirname "${BASH_SOURCE[0]}")/.env}
umask 0077
touch "$file"
for name in TRESTLE_GATEWAY_SECRET GRAFANA_ADMIN_PASSWORD; do
  if ! grep -q "^$name=." "$file"; then
    sed -i "/^$name=\$/d" "$file"
    echo "$name=$(openssl rand -hex 32)" >>"$file"
  fi
done
