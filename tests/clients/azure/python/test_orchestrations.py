"""The worked example of tables, queues and blobs together: orchestrations that survive a crash of their worker."""

import pathlib
import subprocess
import sys
import time

import pytest

import orchestrations
from orchestrations import ACTIVITIES, EVENTS, PARTITIONS, Hub

PROGRAM = pathlib.Path(orchestrations.__file__)
ORDERS = [f"order-{number:02}" for number in range(40)]
# A lease, what a message is invisible for, and a slow machine.
TAKEOVER_SECONDS = 50
POLL_SECONDS = 0.2


class Worker:
    """A process that works until it is killed."""

    def __init__(self, target, hub_name, name):
        command = [sys.executable, PROGRAM, target.connection_string, hub_name, name]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def await_line(self, begin, count=1):
        """Reads what it prints up to a line that begins so, or to a later one of them."""
        while count:
            line = self._process.stdout.readline()
            assert line, "the worker has ended"
            count -= line.startswith(begin)
        return line.split()

    def kill(self):
        """Ends it at once, as a crash would."""
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture
def hub(target, name):
    """The table, the queues and the containers of a test alone."""
    if target.name != "trestle":
        pytest.skip("an example for Trestle")
    hub = Hub(target.connection_string, name)
    hub.create()
    yield hub
    hub.close()


@pytest.fixture
def worker(target, name):
    """Starts workers, which are killed at the end."""
    workers = []

    def start(worker_name):
        workers.append(Worker(target, name, worker_name))
        return workers[-1]

    yield start
    for running in workers:
        running.kill()


def completed(hub):
    """How many orders have completed."""
    return len(list(hub.history.query_entities("RowKey eq 'state' and completions gt 0")))


def await_completed(hub, count):
    """Waits until as many orders have completed."""
    deadline = time.monotonic() + TAKEOVER_SECONDS
    while completed(hub) < count:
        assert time.monotonic() < deadline, f"{completed(hub)} of {count} orders have completed"
        time.sleep(POLL_SECONDS)


def balanced(*workers):
    """Waits until each worker owns its share of the partitions."""
    for running in workers:
        while len(running.await_line("partitions")) != 1 + PARTITIONS // len(workers):
            pass


@pytest.mark.timeout(120)
def test_every_orchestration_completes_once_though_a_worker_is_killed(hub, worker):
    first, second = worker("first"), worker("second")
    balanced(first, second)
    assert sorted(hub.owners()) == ["first", "first", "second", "second"]
    for order in ORDERS:
        hub.start(order)
    first.await_line("recorded", 10)
    first.kill()
    assert completed(hub) < len(ORDERS), "the worker is killed in the middle"
    await_completed(hub, len(ORDERS))
    assert hub.owners() == ["second"] * PARTITIONS
    for order in ORDERS:
        assert hub.events(order) == EVENTS
        assert (hub.state(order)["events"], hub.state(order)["completions"]) == (len(EVENTS), 1)
    results = sorted(hub.results.list_blob_names())
    assert results == sorted(f"{order}/{name}" for order in ORDERS for name in ACTIVITIES)


def test_a_worker_that_joins_gets_its_share_of_the_partitions(hub, worker):
    first = worker("first")
    balanced(first)
    assert hub.owners() == ["first"] * PARTITIONS
    second = worker("second")
    balanced(first, second)
    assert sorted(hub.owners()) == ["first", "first", "second", "second"]


def test_an_event_that_is_delivered_twice_is_recorded_once(hub):
    hub.start("order")
    hub.start("order")
    assert orchestrations.record(hub, "order", EVENTS[0])
    assert not orchestrations.record(hub, "order", EVENTS[0])
    assert hub.events("order") == EVENTS[:1]
    # The activity is sent again, as the worker may have crashed before it sent it.
    work = [message.content for message in hub.work.receive_messages()]
    assert work == ['["order", "reserve"]'] * 2
    for event in EVENTS[1:]:
        assert orchestrations.record(hub, "order", event)
        assert not orchestrations.record(hub, "order", event)
    assert (hub.events("order"), hub.state("order")["completions"]) == (EVENTS, 1)
