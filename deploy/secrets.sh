#!/usr/bin/env bash
# Makes the secrets of the compose files that are missing: in the file of variables that compose reads, and beside it
# the password of the database of compose.distributed.yaml.
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

# Containers read it as users of their own, so all may read the file, and nobody else enters its folder.
folder=$(dirname "$file")/secrets
if [ ! -s "$folder/database.password" ]; then
  mkdir -p "$folder"
  openssl rand -hex 32 | tr -d '\n' >"$folder/database.password"
  chmod 0700 "$folder"
  chmod 0444 "$folder/database.password"
fi
