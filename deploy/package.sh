#!/usr/bin/env bash
# Makes a Debian package of target/image/trestle.
#
#   deploy/package.sh VERSION DIRECTORY
#
# Compressed with the level COMPRESSION of gzip, by default 6. The times in it are SOURCE_DATE_EPOCH, so that the same
# binary gives the same package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=$1 directory=$2
: "${SOURCE_DATE_EPOCH:?the time of the package}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=$work/trestle
install -D -m 0755 target/image/trestle "$package/usr/bin/trestle"
install -D -m 0644 deploy/debian/trestle.service "$package/lib/systemd/system/trestle.service"
install -D -m 0640 deploy/debian/trestle.toml "$package/etc/trestle/trestle.toml"
for document in README.md CHANGELOG.md docs/configuration.md docs/operations.md docs/production.md docs/runbook.md; do
  install -D -m 0644 "$document" "$package/usr/share/doc/trestle/$(basename "$document")"
done
install -D -m 0644 LICENSE "$package/usr/share/doc/trestle/copyright"
for script in postinst prerm postrm; do
  install -D -m 0755 "deploy/debian/$script" "$package/DEBIAN/$script"
done
echo /etc/trestle/trestle.toml >"$package/DEBIAN/conffiles"
cat >"$package/DEBIAN/control" <<CONTROL
Package: trestle
Version: $version
Architecture: amd64
Maintainer: Trestle maintainers <maintainers@trestle.invalid>
Depends: adduser
Section: database
Priority: optional
Installed-Size: $(du --apparent-size --summarize --block-size=1024 "$package/usr" | cut -f1)
Description: table, queue, blob and log store over gRPC
 A store that a team runs itself, with the semantics of Azure Storage: one static
 binary, durable by default.
CONTROL
chmod -R u=rwX,go=rX "$package"
chmod 0640 "$package/etc/trestle/trestle.toml"
find "$package" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zgzip "-z${COMPRESSION:-6}" --build "$package" \
  "$directory/trestle_${version}_amd64.deb" >/dev/null
