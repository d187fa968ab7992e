"""The stack with mutual TLS between its roles, and with an object store, as docs/staging.md describes both."""

import os
import re
import subprocess

import grpc
import pytest

from conftest import IMAGE, signed
from load import LARGE_EVERY, Blobs, Entities, Records
from stack import DEPLOY, ENGINE, Stack, run, until

STAGING = (DEPLOY.parent / "docs" / "staging.md").read_text()
ROLES = ("gateway", "table", "blob")
# A blob of more than 32 KiB, whose contents are objects.
LARGE = f"0-{LARGE_EVERY}"

pytestmark = pytest.mark.skipif("S3_IMAGE" not in os.environ, reason="no object store on this machine")


@pytest.fixture(scope="module")
def secured(stack, tmp_path_factory):
    """A second stack of these profiles; the image is that of the first."""
    certificates = tmp_path_factory.mktemp("certificates")
    run([DEPLOY / "certificates.sh", certificates])
    # The user of the containers reads them.
    certificates.parent.chmod(0o755)
    certificates.chmod(0o755)
    (bucket,) = re.findall(r"`echo '(s3\.bucket\.create[^']*)'", STAGING)
    (url,) = re.findall(r"`TRESTLE__STORAGE__BLOB_URL=(\S+)`", STAGING)
    secured = Stack(
        f"trestle-secured-{os.getpid()}",
        {
            "TRESTLE_IMAGE": IMAGE,
            "TRESTLE_NOFILE": "16384",
            "TRESTLE_CERTIFICATES": str(certificates),
            "TRESTLE__STORAGE__BLOB_URL": url,
        },
        files=[DEPLOY / "compose.staging.yaml", DEPLOY / "compose.mtls.yaml"],
        profiles=["s3"],
    )
    try:
        secured.up("s3")

        def accepts_writes():
            name = bucket.split()[-1]
            if name not in secured.shell(f"{bucket}\ns3.bucket.list\n"):
                return False
            # A first write waits until there are volumes of the bucket.
            upload = ["weed", "upload", "-collection", name, "/etc/seaweedfs/s3.json"]
            done = subprocess.run([ENGINE, "exec", secured.container("s3"), *upload], capture_output=True)
            return b'"fid"' in done.stdout

        until(accepts_writes, lambda: secured.logs("s3")[-2000:])
        secured.up(*ROLES)
        secured.until_healthy("table", "blob")
        yield secured
    finally:
        secured.remove()


@pytest.fixture(scope="module")
def secured_channel(secured):
    with signed(secured.grpc) as channel:
        yield channel


def test_calls_reach_roles_through_the_gateway_with_its_certificate(api, secured_channel):
    table = Entities(api, secured_channel, "Secured")
    table.create()
    table.write("0-1")
    assert table.lost(["0-1"]) == []


@pytest.mark.parametrize("role", ["table", "blob"])
def test_a_role_rejects_who_has_no_certificate(secured, role):
    command = [ENGINE, "exec", secured.container("gateway"), "/trestle", "healthcheck"]
    # By its address: how soon a name resolves is up to the engine.
    endpoint = f"https://{secured.address(role)}:50051"
    command += ["--endpoint", endpoint, "--server-name", role, "--ca-file", "/certificates/authority.pem"]
    own = ["--cert-file", "/certificates/gateway.pem", "--key-file", "/certificates/gateway.key"]
    failed = []

    def is_served():
        done = subprocess.run([*command, *own], text=True, capture_output=True)
        failed.append(done.stderr)
        return done.returncode == 0

    until(is_served, lambda: f"{failed}\n{secured.logs(role)[-2000:]}\n{secured.logs('gateway')[-2000:]}")

    without = subprocess.run(command, text=True, capture_output=True)

    assert without.returncode == 1
    until(lambda: "handshake failed" in secured.logs(role), lambda: secured.logs(role)[-2000:])


def test_large_blobs_and_segments_of_logs_are_objects_of_the_store(api, secured, secured_channel):
    blobs = Blobs(api, secured_channel, "objects")
    records = Records(api, secured_channel, "objects")
    for store in (blobs, records):
        store.create()
        store.write(LARGE)
        assert store.lost([LARGE]) == []

    listed = secured.shell("fs.du /buckets/trestle\nfs.tree /buckets/trestle\n")

    assert ".parquet" in listed, listed
    (stored,) = re.findall(r"logical size:\s*(\d+)", listed)
    assert int(stored) > Blobs.size(LARGE), listed
