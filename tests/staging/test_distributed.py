"""Three processes over one database: each serves what any of them has, and the others serve on when one is killed."""

import contextlib
import itertools
import json
import os
import subprocess
import urllib.request

import pytest
import yaml

from conftest import IMAGE, signed
from load import Entities, Load, Messages
from stack import DEPLOY, ENGINE, Stack, free_port, run, until

FILE = DEPLOY / "compose.distributed.yaml"
PROCESSES = ("trestle-1", "trestle-2", "trestle-3")
# The variables of its ports for gRPC and for its pages, of each process.
GRPC = dict(zip(PROCESSES, ("TRESTLE_PORT", "TRESTLE_PORT_2", "TRESTLE_PORT_3")))
ADMIN = {process: name.replace("PORT", "ADMIN_PORT") for process, name in GRPC.items()}
# With so many, each process is very likely to have some of them.
QUEUES = 6

# A failure under a fault is a finding: it is not run again.
pytestmark = [
    pytest.mark.skipif("POSTGRES_IMAGE" not in os.environ, reason="no PostgreSQL on this machine"),
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
        self.ports = {name: free_port() for name in [*GRPC.values(), *ADMIN.values(), *azure]}
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
        started.up("database")
        until(started.has_database, lambda: started.logs("database")[-2000:])
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
        for kind, name in ((Entities, f"Table{number}"), (Messages, f"queue{number}")):
            written = kind(api, channels[writer], name)
            written.create()
            written.write("0-1")

            assert kind(api, channels[reader], name).lost(["0-1"]) == [], (writer, reader)


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
    queues = [Messages(api, next(callers), f"queue{next(_names)}") for _ in range(QUEUES)]
    with signed(*(processes.ports[GRPC[process]] for process in PROCESSES)) as any_of_them:
        through_any = Entities(api, any_of_them, f"Table{next(_names)}")
        for store in (*tables, *queues, through_any):
            store.create()
        load = Load(*tables, *queues, through_any)
        with load.running():
            load.advance()
            processes.engine("kill", killed)
            load.advance()
            processes.engine("start", killed)
            processes.until_healthy(killed)
            load.advance()
        # Only calls that the killed one had fail, and those about its queues until another one has taken them.
        assert not any(load.failed[table] for table in tables), load.failed
        for table in (*tables, through_any):
            assert Entities(api, channels[killed], table.name).lost(load.acknowledged[table]) == []
        load.assert_nothing_is_lost()


def test_no_process_has_a_volume(processes):
    places = "{{range .Mounts}}{{.Destination}} {{end}}"
    for process in PROCESSES:
        # Nothing but the password.
        assert processes.engine("inspect", process, "--format", places).split() == ["/run/secrets/database.password"]
