"""Fixtures: a server, and stubs made from the protos."""

import tempfile

import grpc
import pytest

import contract
from server import Server


@pytest.fixture(scope="session")
def api():
    """The generated modules."""
    with tempfile.TemporaryDirectory() as out:
        yield contract.generate(out)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server for the examples of a file; it must also end well."""
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.end()


@pytest.fixture(scope="module")
def stub(api, server):
    """A generated stub of the log service."""
    with grpc.insecure_channel(server.grpc) as channel:
        yield api.rpc.LogServiceStub(channel)
