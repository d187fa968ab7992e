"""Fixtures: a server, a channel, stubs made from the protos, an empty table."""

import importlib
import itertools
import pathlib
import sys
import tempfile
import types

import grpc
import pytest
from grpc_tools import protoc

from server import Server

PROTO = pathlib.Path(__file__).resolve().parents[3] / "proto"
SOURCES = sorted(PROTO.glob("trestle/**/*.proto"))

_names = itertools.count(1)


def _generate(out):
    """Compiles the contract as a user of it would."""
    well_known = pathlib.Path(importlib.import_module("grpc_tools").__file__).parent / "_proto"
    arguments = [
        "protoc",
        f"-I{PROTO}",
        f"-I{well_known}",
        f"--python_out={out}",
        f"--grpc_python_out={out}",
    ]
    code = protoc.main(arguments + [str(source) for source in SOURCES])
    assert code == 0, f"protoc ended with code {code}"
    # The google.* modules come from googleapis-common-protos, as for any Python user.
    sys.path.insert(0, out)


@pytest.fixture(scope="session")
def api():
    """The generated modules: messages (`pb`, `entity`), stubs (`rpc`), the same of queues
    (`queue_pb`, `message`, `queue_rpc`), what services share (`policy`, `properties`, `durability`),
    error reasons (`errors`)."""
    with tempfile.TemporaryDirectory() as out:
        _generate(out)
        yield types.SimpleNamespace(
            pb=importlib.import_module("trestle.table.v1.table_service_pb2"),
            entity=importlib.import_module("trestle.table.v1.entity_pb2"),
            rpc=importlib.import_module("trestle.table.v1.table_service_pb2_grpc"),
            queue_pb=importlib.import_module("trestle.queue.v1.queue_service_pb2"),
            message=importlib.import_module("trestle.queue.v1.message_pb2"),
            queue_rpc=importlib.import_module("trestle.queue.v1.queue_service_pb2_grpc"),
            policy=importlib.import_module("trestle.service.v1.access_policy_pb2"),
            properties=importlib.import_module("trestle.service.v1.service_properties_pb2"),
            durability=importlib.import_module("trestle.service.v1.durability_pb2"),
            errors=importlib.import_module("trestle.errors.v1.error_reason_pb2"),
        )


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for the whole run; it must also end well."""
    server = Server(tmp_path_factory.mktemp("data"))
    yield server
    assert server.terminate() == 0, "the server drains and ends with code 0"


@pytest.fixture(scope="session")
def channel(server):
    """A channel to the server."""
    with grpc.insecure_channel(server.grpc) as channel:
        yield channel


@pytest.fixture(scope="session")
def stub(api, channel):
    """A generated stub of the table service."""
    return api.rpc.TableServiceStub(channel)


@pytest.fixture
def table(api, stub):
    """The name of an empty table, deleted after the test."""
    name = f"Table{next(_names)}"
    stub.CreateTable(api.pb.CreateTableRequest(table=api.pb.Table(name=name)))
    yield name
    stub.DeleteTable(api.pb.DeleteTableRequest(table=name))
