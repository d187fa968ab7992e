#!/usr/bin/env bash
# Makes the secrets of the overlay that are missing, beside this script. Keep them out of the repository. The password
# is for the user `trestle` of the database; one that has a password already needs it in database.password.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
umask 0077
[ -e acme.key ] || openssl rand -base64 64 | tr -d '\n' >acme.key
[ -e database.password ] || openssl rand -hex 32 | tr -d '\n' >database.password
