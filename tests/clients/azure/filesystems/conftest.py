"""Fixtures: a server, a container, and the file systems on it."""

import itertools

import fsspec
import pytest
from azure.storage.blob import BlobServiceClient
from pyarrow import fs

import target as targets
from target import ACCOUNT, KEY

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def target(tmp_path_factory):
    """One server for the whole run; it must also end well."""
    target = targets.start(tmp_path_factory.mktemp("data"))
    yield target
    assert target.stop() == 0, "the server drains and ends with code 0"


@pytest.fixture
def service(target):
    """The official client, to look at what the file systems made."""
    with BlobServiceClient.from_connection_string(target.connection_string) as service:
        yield service


@pytest.fixture
def container(service):
    """An empty container that no other test has; its name."""
    name = f"files{next(_numbers)}"
    service.create_container(name)
    return name


@pytest.fixture
def options(target):
    """What a URL of fsspec needs beside its path."""
    return {"connection_string": target.connection_string}


@pytest.fixture
def files(options):
    """The file system adlfs, without what an earlier one has cached."""
    return fsspec.filesystem("abfs", skip_instance_cache=True, **options)


@pytest.fixture
def arrow(target):
    """The file system of Arrow, which has both endpoints at the port of blobs."""
    return fs.AzureFileSystem(
        account_name=ACCOUNT,
        account_key=KEY,
        blob_storage_authority=target.blob_address,
        dfs_storage_authority=target.blob_address,
        blob_storage_scheme="http",
        dfs_storage_scheme="http",
    )
