"""Fixtures: the stack, a channel to its gateway, and stores to write to."""

import contextlib
import itertools
import os
import pathlib
import subprocess
import types

import grpc
import pytest

import api as contract
from credentials import Authorized
from load import Blobs, Entities, Load, Messages, Records
from stack import DEPLOY, ENGINE, ROLES, Stack, run

# The volume of the role table: a file system of its own, which a test fills.
SMALL_VOLUME_BYTES = 384 * 1024 * 1024
IMAGE, NEXT_IMAGE = "localhost/trestle:staging-test", "localhost/trestle:staging-test-next"
# A quota that the load stays far below, and one large entity exceeds.
PARTITION_QUOTA = "3000"

_names = itertools.count(1)


@pytest.fixture(scope="session")
def api(tmp_path_factory):
    """The generated modules of the contract."""
    return contract.generate(tmp_path_factory.mktemp("api"))


@pytest.fixture(scope="session")
def small_volume(tmp_path_factory):
    """A file system of its own, of which the compose file's volume is made."""
    if os.geteuid() != 0:
        yield None
        return
    path = tmp_path_factory.mktemp("volume")
    options = f"size={SMALL_VOLUME_BYTES},uid=65532,gid=65532,mode=0700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], check=True)
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


@pytest.fixture(scope="session")
def stack(small_volume, tmp_path_factory):
    """The staging stack, with the profiles whose images this machine has."""
    variables = {
        "TRESTLE_IMAGE": IMAGE,
        "TRESTLE_NOFILE": "16384",
        # A restart on a busy machine takes longer than it does elsewhere.
        "TRESTLE_WAIT_MS": "25000",
        "COLLECTOR_DEBUG": "normal",
        "TRESTLE__STORAGE__MIN_FREE_BYTES": str(64 * 1024 * 1024),
        "TRESTLE__QUOTAS__PARTITION_ENTITIES_PER_SECOND": PARTITION_QUOTA,
    }
    has_prometheus, has_collector = "PROMETHEUS_IMAGE" in os.environ, "COLLECTOR_IMAGE" in os.environ
    files = [DEPLOY / "compose.staging.yaml"]
    if small_volume:
        # Where the volume is, and nothing else.
        place = tmp_path_factory.mktemp("compose") / "volume.yaml"
        device = f"{{type: none, o: bind, device: {small_volume}}}"
        place.write_text(f"volumes:\n  table:\n    driver: local\n    driver_opts: {device}\n")
        files.append(place)
    stack = Stack(
        f"trestle-test-{os.getpid()}",
        variables,
        files=files,
        profiles=["metrics"] if has_prometheus else [],
    )
    stack.has_prometheus, stack.has_collector = has_prometheus, has_collector
    try:
        stack.compose("build", "gateway")
        next_image = tmp_path_factory.mktemp("next")
        (next_image / "Dockerfile").write_text(f"FROM {IMAGE}\nLABEL next=true\n")
        run([ENGINE, "build", "--quiet", "--tag", NEXT_IMAGE, next_image])
        services = [*ROLES, *["collector"] * has_collector, *["prometheus"] * has_prometheus]
        stack.up(*services)
        stack.until_healthy(*ROLES)
        yield stack
    finally:
        stack.remove()


def signature():
    """A signature of the development account."""
    sign = [os.environ["TRESTLE_BIN"], "sas", "account", "--account", "devstoreaccount1"]
    sign += ["--services", "tqbl", "--permissions", "rwdlacup", "--expiry", "1h"]
    return run(sign).strip()


@contextlib.contextmanager
def signed(*ports):
    """A channel to gateways, which takes one after the other, with a signature of the development account.

    It reconnects within a second.
    """
    options = [("grpc.max_reconnect_backoff_ms", 500), ("grpc.initial_reconnect_backoff_ms", 100)]
    if len(ports) > 1:
        # By default the authority is the list of addresses, which is none.
        options += [("grpc.lb_policy_name", "round_robin"), ("grpc.default_authority", "localhost")]
    target = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports)
    with grpc.insecure_channel(target, options) as channel:
        yield grpc.intercept_channel(channel, Authorized(f"SharedAccessSignature {signature()}"))


@pytest.fixture(scope="session")
def channel(stack):
    with signed(stack.grpc) as channel:
        yield channel


@pytest.fixture
def stores(api, channel):
    """A new table, queue, container and stream."""
    number = next(_names)
    stores = types.SimpleNamespace(
        table=Entities(api, channel, f"Table{number}"),
        queue=Messages(api, channel, f"queue{number}"),
        blob=Blobs(api, channel, f"container{number}"),
        log=Records(api, channel, f"stream{number}"),
    )
    for store in vars(stores).values():
        store.create()
    return stores


@pytest.fixture
def load(stores):
    """Writers to each of the stores."""
    return Load(*vars(stores).values())
