"""Fixtures: the contract for Python, made once, and a folder with a server for each page."""

import os
import pathlib
import subprocess
import sys

import pytest

from server import Server
from transcript import ROOT

KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture(scope="session")
def contract(tmp_path_factory):
    """A folder with the generated modules, by the command of docs/grpc.md."""
    folder = tmp_path_factory.mktemp("contract")
    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "proto/trestle").glob("**/*.proto"))
    command = [sys.executable, "-m", "grpc_tools.protoc", "-Iproto", f"--python_out={folder}"]
    subprocess.run([*command, f"--grpc_python_out={folder}", *sources], cwd=ROOT, check=True)
    return folder


@pytest.fixture
def server(tmp_path):
    """A server without data; it must also end well."""
    server = Server(tmp_path / "data")
    yield server
    assert server.terminate() == 0, "the server drains and ends with code 0"


@pytest.fixture
def connection(server):
    """The connection string for the libraries of Azure."""
    account = "devstoreaccount1"
    services = [("Table", "azure_table"), ("Queue", "azure_queue"), ("Blob", "azure_blob")]
    endpoints = [f"{name}Endpoint=http://{server.address(port)}/{account};" for name, port in services]
    return f"DefaultEndpointsProtocol=http;AccountName={account};AccountKey={KEY};{''.join(endpoints)}"


@pytest.fixture
def environment(server, contract, tmp_path):
    """Variables with which `trestle` and the programs use this server."""
    (tmp_path / "proto").symlink_to(ROOT / "proto")
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "trestle").symlink_to(pathlib.Path(os.environ["TRESTLE_BIN"]).absolute())
    path = f"{binaries}:{os.environ['PATH']}"
    return {**os.environ, "TRESTLE_ENDPOINT": server.grpc, "PATH": path, "PYTHONPATH": str(contract)}
