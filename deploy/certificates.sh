#!/usr/bin/env bash
# Makes an authority and the certificates of the roles of the staging stack, for a month: not for production.
#
#   deploy/certificates.sh DIRECTORY
set -euo pipefail
directory=${1:?names a directory}
mkdir -p "$directory"
cd "$directory"

days=30
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days "$days" -subj /CN=trestle-staging \
  -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign \
  -keyout authority.key -out authority.pem 2>/dev/null

# issue NAME HOSTS: a key, and a certificate for server and client.
issue() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" \
    -keyout "$1.key" -out "$1.csr" 2>/dev/null
  printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$2" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA authority.pem -CAkey authority.key -CAcreateserial -days "$days" \
    -extfile "$1.ext" -out "$1.pem" 2>/dev/null
  rm "$1.csr" "$1.ext"
}

# Only the certificate with the name `gateway` may state callers to roles.
issue role DNS:table,DNS:queue,DNS:blob,DNS:localhost
issue gateway DNS:gateway,DNS:localhost
# The user of the containers reads them.
chmod 0644 role.key gateway.key
chmod 0600 authority.key
echo "$directory: authority, role and gateway, for $days days"
