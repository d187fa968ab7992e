"""The modules that protoc generates from the contract, as a user of it would."""

import importlib
import pathlib
import sys
import types

from grpc_tools import protoc

PROTO = pathlib.Path(__file__).resolve().parents[3] / "proto"


def generate(out):
    """Generates modules into a directory. Returns the messages and stubs of each service."""
    well_known = pathlib.Path(importlib.import_module("grpc_tools").__file__).parent / "_proto"
    sources = sorted((PROTO / "trestle").glob("**/*.proto"))
    arguments = ["protoc", f"-I{PROTO}", f"-I{well_known}"]
    arguments += [f"--python_out={out}", f"--grpc_python_out={out}"]
    assert protoc.main(arguments + [str(source) for source in sources]) == 0
    # The modules google.* and opentelemetry.* come from packages.
    sys.path.insert(0, out)
    return types.SimpleNamespace(
        pb=importlib.import_module("trestle.log.v1.log_service_pb2"),
        record=importlib.import_module("trestle.log.v1.record_pb2"),
        rpc=importlib.import_module("trestle.log.v1.log_service_pb2_grpc"),
        table=importlib.import_module("trestle.table.v1.table_service_pb2"),
        table_rpc=importlib.import_module("trestle.table.v1.table_service_pb2_grpc"),
        blob=importlib.import_module("trestle.blob.v1.blob_service_pb2"),
        blob_rpc=importlib.import_module("trestle.blob.v1.blob_service_pb2_grpc"),
    )
