"""Fixtures: a server, clients of both forms, an empty table, queue or container, a blob."""

import contextlib
import itertools
import os

import pytest

import target as targets
from clients import FLAVOURS, clients_of

_numbers = itertools.count(1)


def pytest_runtest_logreport(report):
    """Writes the outcome of each test, for the comparison with Azurite."""
    results = os.environ.get("AZURE_RESULTS")
    if results and (report.when == "call" or report.outcome != "passed"):
        if report.when == "teardown":
            return
        with open(results, "a", encoding="utf-8") as file:
            file.write(f"python/{report.nodeid}\t{report.outcome}\n")


@pytest.fixture(scope="session")
def target(tmp_path_factory):
    """One server for the whole run; it must also end well."""
    target = targets.start(tmp_path_factory.mktemp("data"))
    yield target
    assert target.stop() == 0, "the server drains and ends with code 0"


@pytest.fixture
def start(tmp_path):
    """Starts more servers on the data of this test; they end with it."""
    with contextlib.ExitStack() as running:

        def start(**options):
            target = targets.start(tmp_path, **options)
            running.callback(target.kill)
            return target

        yield start


@pytest.fixture
def only_trestle(target):
    """For tests of features that Azurite lacks."""
    if target.name != "trestle":
        pytest.skip("Azurite has no such setting")


@pytest.fixture(params=FLAVOURS)
def flavour(request):
    """The blocking clients, then those for asyncio."""
    return request.param


@pytest.fixture
async def clients(flavour, target):
    """Makes clients of one form."""
    async with clients_of(flavour, target) as clients:
        yield clients


@pytest.fixture
def name():
    """A name for a table, a queue or a container that no other test has."""
    return f"name{next(_numbers)}"


@pytest.fixture
async def table(clients, name):
    """The client of an empty table."""
    table = clients.table(name)
    await table.create_table()
    return table


@pytest.fixture
async def queue(clients, name):
    """The client of an empty queue."""
    queue = clients.queue(name)
    await queue.create_queue()
    return queue


@pytest.fixture
async def container(clients, name):
    """The client of an empty container."""
    container = clients.container(name)
    await container.create_container()
    return container


@pytest.fixture
def blob(container):
    """The client of a blob that does not exist yet, in an empty container."""
    return container.within("blob")
