"""Fixtures: a receiver, and processes that send to it."""

import pytest

from processes import World
from receiver import Receiver


@pytest.fixture(scope="session")
def receiver():
    """One receiver for the whole run."""
    receiver = Receiver()
    yield receiver
    receiver.stop()


@pytest.fixture(scope="session")
def world(receiver, tmp_path_factory):
    """Processes with telemetry as it is by default. They must also end well."""
    world = World(receiver, tmp_path_factory.mktemp("data"))
    yield world
    world.end()
