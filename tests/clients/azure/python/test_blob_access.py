"""Access to blobs: keys, signatures, stored policies, containers that are public."""

import base64

import pytest
import requests
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.blob import AccessPolicy, BlobBlock, ContentSettings

from azure_errors import code_of, forbidden, rejected
from blob_signatures import HOUR, NOW, of_account, of_blob, of_container, of_policy
from target import ACCOUNT

MISMATCH = "AuthorizationPermissionMismatch"
# The documentation does not define which of the two a caller without credentials gets.
PRIVATE = [(401, "NoAuthenticationInformation"), (404, "ResourceNotFound")]


@pytest.fixture
async def filled(container):
    """A container with a blob `dir/a b`."""
    await container.upload_blob("dir/a b", b"data", metadata={"a": "b"}, tags={"k": "v"})
    return container


async def test_a_wrong_key_is_rejected(clients, filled, name):
    wrong = AzureNamedKeyCredential(ACCOUNT, base64.b64encode(b"wrong").decode())
    for call in (
        clients.blobs(wrong).list_containers,
        clients.container(name, wrong).list_blobs,
        clients.blob(name, "dir/a b", wrong).download_blob,
        lambda: clients.blob(name, "new", wrong).upload_blob(b"x"),
    ):
        with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
            await call()


async def test_a_blob_sas_permits_its_operations(clients, filled, name):
    signed = clients.blob(name, "dir/a b", of_blob(name, "dir/a b", "racwdt"))
    assert await signed.read() == b"data"
    assert (await signed.get_blob_properties()).metadata == {"a": "b"}
    await signed.upload_blob(b"new", overwrite=True)
    await signed.stage_block("a", b"block")
    await signed.commit_block_list([BlobBlock("a")])
    await signed.set_blob_metadata({"c": "d"})
    await signed.set_http_headers(ContentSettings("text/plain"))
    await signed.set_blob_tags({"k": "w"})
    assert await signed.get_blob_tags() == {"k": "w"}
    lease = await signed.acquire_lease()
    await lease.release()
    await signed.create_snapshot()
    await signed.delete_blob(delete_snapshots="include")


async def test_a_container_sas_permits_its_operations(clients, filled, name):
    signed = clients.container(name, of_container(name, "racwdltf"))
    assert await signed.list_blob_names() == ["dir/a b"]
    await signed.upload_blob("new", b"x")
    assert await signed.read("new") == b"x"
    await signed.delete_blob("new")
    found = await signed.find_blobs_by_tags("\"k\" = 'v'")
    assert [one.name for one in found] == ["dir/a b"]


@pytest.mark.parametrize("permission", ["r", "w", "d", "t", "a"])
async def test_a_sas_rejects_operations_it_does_not_permit(clients, filled, name, permission):
    log = filled.within("log")
    await log.create_append_blob()
    blob = clients.blob(name, "dir/a b", of_blob(name, "dir/a b", permission))
    signed_log = clients.blob(name, "log", of_blob(name, "log", permission))
    calls = [
        ("r", blob.download_blob),
        ("r", blob.get_blob_properties),
        ("r", blob.get_block_list),
        ("wa", lambda: signed_log.append_block(b"x")),
        ("t", blob.get_blob_tags),
        ("t", lambda: blob.set_blob_tags({})),
        ("w", lambda: blob.set_blob_metadata({})),
        ("w", lambda: blob.set_standard_blob_tier("Cool")),
        ("w", lambda: blob.upload_blob(b"x", overwrite=True)),
        ("d", blob.delete_blob),
    ]
    for needed, call in calls:
        if permission in needed:
            await call()
        else:
            with forbidden(HttpResponseError, MISMATCH, "UnauthorizedBlobOverwrite"):
                await call()


async def test_a_sas_to_create_does_not_overwrite(clients, filled, name):
    creator = clients.container(name, of_container(name, "c"))
    await creator.upload_blob("new", b"x")
    with forbidden(HttpResponseError, "UnauthorizedBlobOverwrite"):
        await creator.upload_blob("new", b"y", overwrite=True)
    assert await filled.read("new") == b"x"


async def test_a_sas_permits_nothing_else(clients, filled, name):
    sas = of_container(name, "racwdltf")
    other = clients.container(f"{name}-other")
    await other.create_container()
    with forbidden(HttpResponseError, "AuthenticationFailed", "AuthorizationFailure"):
        await clients.container(f"{name}-other", sas).list_blobs()
    with forbidden(HttpResponseError, "AuthenticationFailed", "AuthorizationFailure"):
        await clients.blob(name, "other", of_blob(name, "dir/a b")).download_blob()
    signed, service = clients.container(name, sas), clients.blobs(sas)
    for call in (
        service.list_containers,
        lambda: service.create_container(f"{name}-new"),
        service.get_service_properties,
        signed.get_container_properties,
        lambda: signed.set_container_metadata({"a": "b"}),
        signed.acquire_lease,
        signed.delete_container,
        signed.get_container_access_policy,
        lambda: signed.set_container_access_policy({}),
    ):
        with forbidden(HttpResponseError, "AuthorizationFailure", MISMATCH, "AuthenticationFailed"):
            await call()


async def test_a_sas_is_valid_from_start_to_expiry(clients, filled, name):
    for limits in ({"expiry": NOW - HOUR}, {"start": NOW + HOUR, "expiry": NOW + 2 * HOUR}):
        with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
            await clients.container(name, of_container(name, **limits)).list_blobs()


async def test_an_altered_sas_is_rejected(clients, filled, name):
    sas = of_container(name, "l").replace("sp=l", "sp=rl")
    with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
        await clients.container(name, sas).list_blobs()


async def test_a_sas_is_valid_for_its_addresses_and_protocol(clients, filled, name):
    for inside in ({"ip": "127.0.0.1"}, {"ip": "127.0.0.0-127.0.0.255"}):
        signed = clients.container(name, of_container(name, **inside))
        assert len(await signed.list_blobs()) == 1
    with forbidden(HttpResponseError, "AuthorizationSourceIPMismatch"):
        await clients.container(name, of_container(name, ip="10.0.0.1")).list_blobs()
    with forbidden(HttpResponseError, "AuthorizationProtocolMismatch"):
        await clients.container(name, of_container(name, protocol="https")).list_blobs()


async def test_a_sas_replaces_the_headers_of_an_answer(clients, filled, name):
    replaced = {
        "content_type": "text/html",
        "content_disposition": "attachment; filename=a",
        "content_language": "de",
        "cache_control": "no-store",
        "content_encoding": "identity",
    }
    signed = clients.blob(name, "dir/a b", of_blob(name, "dir/a b", "r", **replaced))
    got = (await signed.download_blob()).properties.content_settings
    assert {field: getattr(got, field) for field in replaced} == replaced


async def test_a_sas_of_a_snapshot_reads_that_snapshot_only(clients, filled, name):
    blob = filled.within("dir/a b")
    created = (await blob.create_snapshot())["snapshot"]
    sas = of_blob(name, "dir/a b", "r", snapshot=created)
    assert await clients.blob(name, "dir/a b", sas, snapshot=created).read() == b"data"
    with forbidden(HttpResponseError, "AuthenticationFailed", "AuthorizationFailure", MISMATCH):
        await clients.blob(name, "dir/a b", sas).download_blob()


async def test_a_stored_policy_grants_and_revokes_access(clients, filled, name):
    policy = AccessPolicy(permission="l", expiry=NOW + HOUR, start=NOW - HOUR)
    await filled.set_container_access_policy({"lister": policy})
    signed = clients.container(name, of_policy(name, "lister"))
    assert await signed.list_blob_names() == ["dir/a b"]
    with forbidden(HttpResponseError, MISMATCH):
        await signed.download_blob("dir/a b")
    await filled.set_container_access_policy({})
    with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
        await signed.list_blobs()


async def test_a_sas_in_an_address_is_enough(clients, filled, name):
    container = clients.from_container_url(f"{filled.url}?{of_container(name, 'rl')}")
    assert await container.list_blob_names() == ["dir/a b"]
    url = filled.within("dir/a b").url
    blob = clients.from_blob_url(f"{url}?{of_blob(name, 'dir/a b', 'r')}")
    assert (blob.container_name, blob.blob_name) == (name, "dir/a b")
    assert await blob.read() == b"data"


async def test_a_connection_string_is_enough(clients, target, name):
    string = target.connection_string
    await clients.from_connection_string("BlobServiceClient", string).create_container(name)
    container = clients.from_connection_string("ContainerClient", string, name)
    await container.upload_blob("a", b"x")
    assert await clients.from_connection_string("BlobClient", string, name, "a").read() == b"x"
    signed = f"BlobEndpoint={target.blob};SharedAccessSignature={of_account('r')}"
    assert await clients.from_connection_string("BlobClient", signed, name, "a").read() == b"x"


async def test_an_account_sas_permits_its_operations(clients, name):
    sas = of_account("rwdlacuptfi")
    service = clients.blobs(sas)
    await service.create_container(name)
    assert name in [one.name for one in await service.list_containers()]
    container = clients.container(name, sas)
    await container.set_container_metadata({"a": "b"})
    await container.upload_blob("a", b"x", tags={"k": "v"})
    assert await container.read("a") == b"x" and len(await container.list_blobs()) == 1
    assert len(await container.find_blobs_by_tags("\"k\" = 'v'")) == 1
    await service.get_service_properties()
    await service.get_account_information()
    await service.delete_container(name)


async def test_an_account_sas_rejects_other_operations(clients, filled, name):
    reader = clients.container(name, of_account("r", "o"))
    assert await reader.read("dir/a b") == b"data"
    with forbidden(HttpResponseError, MISMATCH):
        await reader.delete_blob("dir/a b")
    with forbidden(HttpResponseError, "AuthorizationResourceTypeMismatch"):
        await reader.list_blobs()
    with forbidden(HttpResponseError, "AuthorizationServiceMismatch"):
        await clients.container(name, of_account("r", services="q")).download_blob("dir/a b")
    with forbidden(HttpResponseError, "AuthorizationFailure"):
        await clients.container(name, of_account("rwdlacup")).get_container_access_policy()


async def test_a_caller_without_credentials_is_rejected(clients, filled):
    blob = clients.from_blob_url(filled.within("dir/a b").url)
    anyone = clients.from_container_url(filled.url)
    for call in (
        blob.download_blob,
        anyone.list_blobs,
        anyone.get_container_properties,
        lambda: anyone.upload_blob("new", b"x"),
        anyone.delete_container,
    ):
        with pytest.raises(HttpResponseError) as raised:
            await call()
        assert (raised.value.status_code, code_of(raised.value)) in PRIVATE


async def test_the_public_reads_what_a_container_opens(clients, filled):
    blob = clients.from_blob_url(filled.within("dir/a b").url)
    anyone = clients.from_container_url(filled.url)
    await filled.set_container_access_policy({}, public_access="blob")
    assert await blob.read() == b"data"
    assert (await blob.get_blob_properties()).metadata == {"a": "b"}
    assert len(await blob.get_block_list()) == 2
    await filled.set_container_access_policy({}, public_access="container")
    assert await anyone.list_blob_names() == ["dir/a b"]
    assert (await anyone.get_container_properties()).public_access == "container"
    await filled.set_container_access_policy({})
    with pytest.raises(HttpResponseError) as raised:
        await blob.download_blob()
    assert (raised.value.status_code, code_of(raised.value)) in PRIVATE


async def test_the_public_does_nothing_but_read(clients, filled):
    blob = clients.from_blob_url(filled.within("dir/a b").url)
    anyone = clients.from_container_url(filled.url)
    for level, calls in (
        ("blob", [anyone.list_blobs, anyone.get_container_properties]),
        ("container", [anyone.get_container_access_policy, anyone.delete_container]),
    ):
        await filled.set_container_access_policy({}, public_access=level)
        calls += [
            blob.delete_blob,
            blob.get_blob_tags,
            lambda: blob.upload_blob(b"x", overwrite=True),
            lambda: blob.set_blob_metadata({}),
        ]
        for call in calls:
            with pytest.raises(HttpResponseError) as raised:
                await call()
            assert (raised.value.status_code, code_of(raised.value)) in PRIVATE
    assert await filled.read("dir/a b") == b"data"


async def test_a_browser_reads_a_signed_address(filled, name):
    url = filled.within("dir/a b").url
    got = requests.get(f"{url}?{of_blob(name, 'dir/a b', 'r')}", timeout=30)
    assert (got.status_code, got.content) == (200, b"data")
    assert got.headers["Accept-Ranges"] == "bytes" and got.headers["x-ms-blob-type"] == "BlockBlob"
