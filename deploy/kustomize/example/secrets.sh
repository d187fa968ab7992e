#!/usr/bin/env bash
# Makes the secrets of the overlay that are missing, beside this script. Keep them out of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
umask 0077
[ -e acme.key ] || openssl rand -base64 64 | tr -d '\n' >acme.key
[ -e gateway.secret ] || openssl rand -hex 32 >gateway.secret
