"""Fixtures: a server, and stubs made from the protos."""

import importlib
import pathlib
import sys
import tempfile
import types

import grpc
import pytest
from grpc_tools import protoc

from server import Server

PROTO = pathlib.Path(__file__).resolve().parents[3] / "proto"
SOURCES = sorted((PROTO / "trestle").glob("**/*.proto"))


@pytest.fixture(scope="session")
def api():
    """The generated modules of logs: messages (`pb`, `record`) and stubs (`rpc`)."""
    well_known = pathlib.Path(importlib.import_module("grpc_tools").__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as out:
        arguments = ["protoc", f"-I{PROTO}", f"-I{well_known}"]
        arguments += [f"--python_out={out}", f"--grpc_python_out={out}"]
        assert protoc.main(arguments + [str(source) for source in SOURCES]) == 0
        # The modules google.* and opentelemetry.* come from packages, as for any Python user.
        sys.path.insert(0, out)
        yield types.SimpleNamespace(
            pb=importlib.import_module("trestle.log.v1.log_service_pb2"),
            record=importlib.import_module("trestle.log.v1.record_pb2"),
            rpc=importlib.import_module("trestle.log.v1.log_service_pb2_grpc"),
        )


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
