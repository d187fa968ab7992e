"""The generated modules of the contract, as a user of it would make them."""

import importlib
import pathlib
import sys
import types

from grpc_tools import protoc

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


def generate(out):
    """Compiles the contract into a directory; the modules by the names of their packages."""
    well_known = pathlib.Path(importlib.import_module("grpc_tools").__file__).parent / "_proto"
    arguments = ["protoc", f"-I{PROTO}", f"-I{well_known}", f"--python_out={out}"]
    sources = [*PROTO.glob("trestle/**/*.proto"), *PROTO.glob("opentelemetry/**/*.proto")]
    arguments += [f"--grpc_python_out={out}", *map(str, sorted(sources))]
    assert protoc.main(arguments) == 0
    sys.path.insert(0, str(out))
    return types.SimpleNamespace(
        table=importlib.import_module("trestle.table.v1.table_service_pb2"),
        entity=importlib.import_module("trestle.table.v1.entity_pb2"),
        table_rpc=importlib.import_module("trestle.table.v1.table_service_pb2_grpc"),
        queue=importlib.import_module("trestle.queue.v1.queue_service_pb2"),
        message=importlib.import_module("trestle.queue.v1.message_pb2"),
        queue_rpc=importlib.import_module("trestle.queue.v1.queue_service_pb2_grpc"),
        blob=importlib.import_module("trestle.blob.v1.blob_service_pb2"),
        content=importlib.import_module("trestle.blob.v1.blob_pb2"),
        log=importlib.import_module("trestle.log.v1.log_service_pb2"),
        record=importlib.import_module("trestle.log.v1.record_pb2"),
        log_rpc=importlib.import_module("trestle.log.v1.log_service_pb2_grpc"),
        blob_rpc=importlib.import_module("trestle.blob.v1.blob_service_pb2_grpc"),
    )
