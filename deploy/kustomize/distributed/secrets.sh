#!/usr/bin/env bash
# Makes the secrets of the overlay that are missing, beside this script. Keep them out of the repository. The password
# is for the user `trestle` of the database; one that has a password already needs it in database.password. The key in
# bucket.env is for a store that takes it from you; one that a cloud has issued must be there before the first start.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
umask 0077
[ -e acme.key ] || openssl rand -base64 64 | tr -d '\n' >acme.key
[ -e database.password ] || openssl rand -hex 32 | tr -d '\n' >database.password
[ -e bucket.env ] ||
  printf 'AWS_ACCESS_KEY_ID=trestle\nAWS_SECRET_ACCESS_KEY=%s\n' "$(openssl rand -hex 32)" >bucket.env
