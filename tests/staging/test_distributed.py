"""Three processes over a database and a bucket: each serves what any has, also when one of the others is killed."""

import contextlib
import itertools
import json
import os
import re
import subprocess
import urllib.request

import pytest
import yaml

from conftest import IMAGE, signature, signed
from load import LARGE_BYTES, LARGE_EVERY, Blobs, Entities, Load, Messages, Records, content
from stack import DEPLOY, ENGINE, Stack, free_port, run, until

FILE = DEPLOY / "compose.distributed.yaml"
PROCESSES = ("trestle-1", "trestle-2", "trestle-3")
# The variables of its ports for gRPC, for its pages and for Azure blobs, of each process.
GRPC = dict(zip(PROCESSES, ("TRESTLE_PORT", "TRESTLE_PORT_2", "TRESTLE_PORT_3")))
ADMIN = {process: name.replace("PORT", "ADMIN_PORT") for process, name in GRPC.items()}
AZURE = {process: name.replace("PORT", "AZURE_BLOB_PORT") for process, name in GRPC.items()}
# Blobs in rows of the database, and in objects of the bucket.
SMALL, LARGE = "0-1", f"0-{LARGE_EVERY}"
# With so many, each process is very likely to have some of them.
QUEUES = 6

# A failure under a fault is a finding: it is not run again.
pytestmark = [
    pytest.mark.skipif("POSTGRES_IMAGE" not in os.environ, reason="no PostgreSQL on this machine"),
    pytest.mark.skipif("S3_IMAGE" not in os.environ, reason="no object store on this machine"),
    pytest.mark.flaky(reruns=0),
]
_names = itertools.count(1)


class Processes(Stack):
    """The processes of the compose file, by their names."""

    def __init__(self, folder):
        run([DEPLOY / "secrets.sh", folder / ".env"])
        # The user of the containers reads it.
        folder.parent.chmod(0o755)
        azure = [f"TRESTLE_AZURE_{kind}_PORT_{number}" for kind in ("QUEUE", "TABLE") for number in (2, 3)]
        self.ports = {name: free_port() for name in [*GRPC.values(), *ADMIN.values(), *AZURE.values(), *azure]}
        variables = {
            "TRESTLE_IMAGE": IMAGE,
            "TRESTLE_NOFILE": "16384",
            "TRESTLE_DATABASE_PASSWORD_FILE": str(folder / "secrets" / "database.password"),
            **{name: str(port) for name, port in self.ports.items()},
        }
        super().__init__(f"trestle-distributed-{os.getpid()}", variables, files=[FILE])

    def has_database(self):
        """Whether the health check of the compose file succeeds in the container of the database."""
        service = yaml.safe_load(FILE.read_text())["services"]["database"]
        kind, *command = service["healthcheck"]["test"]
        assert kind == "CMD"
        checked = subprocess.run([ENGINE, "exec", self.container("database"), *command], capture_output=True)
        return checked.returncode == 0

    def has_bucket(self):
        """Whether the step that makes the bucket has ended well."""
        state = self.engine("inspect", "bucket", "--format", "{{.State.Status}} {{.State.ExitCode}}")
        return state.strip() == "exited 0"

    def stored_bytes(self):
        """How much the bucket has."""
        listed = self.shell("fs.du /buckets/trestle\n")
        (stored,) = re.findall(r"logical size:\s*(\d+)", listed)
        return int(stored)

    def page(self, process, path):
        """A page of the admin listener of a process."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[ADMIN[process]]}{path}", timeout=10) as answer:
            return answer.read().decode()

    def members(self, process):
        """The processes that a process knows: whether each is that one, by its id."""
        return {one["instance_id"]: one["this"] for one in json.loads(self.page(process, "/members"))["members"]}


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    started = Processes(tmp_path_factory.mktemp("distributed"))
    try:
        started.compose("build", PROCESSES[0])
        started.up("database", "s3", "bucket")
        until(started.has_database, lambda: started.logs("database")[-2000:])
        until(started.has_bucket, lambda: started.logs("bucket")[-2000:] + started.logs("s3")[-2000:])
        started.up(*PROCESSES)
        started.until_healthy(*PROCESSES)
        yield started
    finally:
        started.remove()


@pytest.fixture(scope="module")
def channels(processes):
    """A channel to each of the processes."""
    with contextlib.ExitStack() as stack:
        yield {process: stack.enter_context(signed(processes.ports[GRPC[process]])) for process in PROCESSES}


def test_each_process_serves_what_any_other_has_written(api, channels):
    for writer, reader in itertools.permutations(PROCESSES, 2):
        number = next(_names)
        kinds = (
            (Entities, f"Table{number}"),
            (Messages, f"queue{number}"),
            (Blobs, f"container{number}"),
            (Records, f"stream{number}"),
        )
        for kind, name in kinds:
            keys = [SMALL, LARGE] if kind is Blobs else [SMALL]
            written = kind(api, channels[writer], name)
            written.create()
            for key in keys:
                written.write(key)

            assert kind(api, channels[reader], name).lost(keys) == [], (writer, reader)


def test_each_process_serves_blobs_to_clients_of_azure(api, processes, channels):
    blobs = Blobs(api, channels[PROCESSES[0]], f"container{next(_names)}")
    blobs.create()
    blobs.write(LARGE)
    for process in PROCESSES:
        address = f"http://127.0.0.1:{processes.ports[AZURE[process]]}/devstoreaccount1/{blobs.name}/{LARGE}"
        with urllib.request.urlopen(f"{address}?{signature()}", timeout=10) as answer:
            assert answer.read() == content(LARGE, LARGE_BYTES), process


def test_blocks_that_two_processes_staged_are_committed_at_a_third(api, channels):
    name = f"container{next(_names)}"
    first, second, third = (Blobs(api, channels[process], name) for process in PROCESSES)
    first.create()
    parts = {block: content(block.decode(), LARGE_BYTES) for block in (b"A", b"B")}
    first.stage("blocks", b"A", parts[b"A"])
    second.stage("blocks", b"B", parts[b"B"])

    third.commit("blocks", b"B", b"A")

    for at in (first, second, third):
        assert at.read("blocks") == parts[b"B"] + parts[b"A"]


def test_large_contents_are_objects_of_the_bucket(api, processes, channels):
    blobs = Blobs(api, channels[PROCESSES[0]], f"container{next(_names)}")
    blobs.create()
    before = processes.stored_bytes()
    blobs.write(LARGE)

    assert processes.stored_bytes() >= before + LARGE_BYTES


def test_every_process_knows_all(processes):
    def found():
        return [processes.members(process) for process in PROCESSES]

    def all_are_known():
        known = found()
        own = {one for members in known for one, is_own in members.items() if is_own}
        return len(own) == len(PROCESSES) and all(members.keys() == own for members in known)

    until(all_are_known, found)


def test_the_others_serve_on_when_one_is_killed(api, processes, channels):
    killed, *others = PROCESSES
    callers = itertools.cycle(channels[process] for process in others)
    tables = [Entities(api, channels[process], f"Table{next(_names)}") for process in others]
    blobs = [Blobs(api, channels[process], f"container{next(_names)}") for process in others]
    queues = [Messages(api, next(callers), f"queue{next(_names)}") for _ in range(QUEUES)]
    streams = [Records(api, channels[process], f"stream{next(_names)}") for process in others]
    of_killed = Blobs(api, channels[killed], f"container{next(_names)}")
    of_killed.create()
    for key in (SMALL, LARGE):
        of_killed.write(key)
    with signed(*(processes.ports[GRPC[process]] for process in PROCESSES)) as any_of_them:
        through_any = [kind(api, any_of_them, f"Any{next(_names)}".lower()) for kind in (Entities, Blobs, Records)]
        every = (*tables, *blobs, *queues, *streams, *through_any)
        for store in every:
            store.create()
        load = Load(*every)
        with load.running():
            load.advance()
            processes.engine("kill", killed)
            for other in others:
                assert Blobs(api, channels[other], of_killed.name).lost([SMALL, LARGE]) == [], other
            load.advance()
            processes.engine("start", killed)
            processes.until_healthy(killed)
            load.advance()
        # Only calls that the killed one had fail, and those about its queues until another one has taken them.
        assert not any(load.failed[store] for store in (*tables, *blobs, *streams)), load.failed
        for store in (*tables, *blobs, *streams, *through_any):
            assert type(store)(api, channels[killed], store.name).lost(load.acknowledged[store]) == [], store.name
        load.assert_nothing_is_lost()


def test_no_process_has_a_volume(processes):
    places = "{{range .Mounts}}{{.Destination}} {{end}}"
    for process in PROCESSES:
        # Nothing but the password.
        assert processes.engine("inspect", process, "--format", places).split() == ["/run/secrets/database.password"]
