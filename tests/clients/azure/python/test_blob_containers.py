"""Containers: created, listed, described, deleted, rejected by rule."""

import datetime

import pytest
import requests
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import AccessPolicy, ContainerEncryptionScope

from azure_errors import rejected, rewriting
from blob_signatures import HOUR, NOW, of_blob

LONG_AGO = NOW - 24 * HOUR
LATER = NOW + 24 * HOUR


async def names(service, **options):
    """The names of containers that the service lists."""
    return [container.name for container in await service.list_containers(**options)]


async def test_a_container_is_created_listed_and_deleted(clients, name):
    service = clients.blobs()
    made = await service.create_container(name)
    assert made.container_name == name and await made.exists()
    assert name in await names(service)
    await service.delete_container(name)
    assert not await made.exists()
    assert name not in await names(service)


async def test_a_new_container_has_the_properties_of_the_service(clients, name):
    container = clients.container(name)
    made = await container.create_container(metadata={"Owner": "a b"}, public_access="blob")
    got = await container.get_container_properties()
    assert (got.name, got.metadata, got.public_access) == (name, {"Owner": "a b"}, "blob")
    assert (got.etag, got.last_modified) == (made["etag"], made["last_modified"])
    lease = got.lease
    assert (lease.status, lease.state, lease.duration) == ("unlocked", "available", None)
    assert not got.has_immutability_policy and not got.has_legal_hold
    assert not got.immutable_storage_with_versioning_enabled
    scope = got.encryption_scope
    assert scope.default_encryption_scope == "$account-encryption-key"
    assert not scope.prevent_encryption_scope_override


async def test_creating_a_container_again_is_a_conflict(container):
    for metadata in ({}, {"a": "b"}):
        with rejected(ResourceExistsError, 409, "ContainerAlreadyExists"):
            await container.create_container(metadata=metadata)
    assert (await container.get_container_properties()).metadata == {}


async def test_metadata_of_a_container_is_replaced_whole(container):
    before = await container.get_container_properties()
    changed = await container.set_container_metadata({"first": "1", "Second": "two words"})
    got = await container.get_container_properties()
    assert got.metadata == {"first": "1", "Second": "two words"}
    assert got.etag == changed["etag"] != before.etag
    await container.set_container_metadata({"third": "3"})
    assert (await container.get_container_properties()).metadata == {"third": "3"}
    await container.set_container_metadata()
    assert (await container.get_container_properties()).metadata == {}


async def test_metadata_with_a_wrong_name_or_too_large_is_rejected(container):
    with rejected(HttpResponseError, 400, "InvalidMetadata"):
        await container.set_container_metadata({"1st": "x"})
    with rejected(HttpResponseError, 400, "MetadataTooLarge"):
        await container.set_container_metadata({f"n{number}": "x" * 1024 for number in range(9)})


async def test_the_times_of_a_container_are_conditions_of_its_changes(container):
    with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
        await container.set_container_metadata({"a": "b"}, if_modified_since=LATER)
    with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
        await container.set_container_access_policy({}, if_unmodified_since=LONG_AGO)
    with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
        await container.delete_container(if_unmodified_since=LONG_AGO)
    assert (await container.get_container_properties()).metadata == {}
    await container.set_container_metadata({"a": "b"}, if_modified_since=LONG_AGO)
    await container.set_container_access_policy({}, if_unmodified_since=LATER)
    await container.delete_container(if_modified_since=LONG_AGO)


async def test_writes_of_blobs_and_leases_keep_the_etag_of_their_container(container, blob):
    before = (await container.get_container_properties()).etag
    await blob.upload_blob(b"x")
    await blob.delete_blob()
    lease = await container.acquire_lease()
    assert (await container.get_container_properties()).etag == before
    await lease.release()
    assert (await container.get_container_properties()).etag == before


async def test_containers_are_listed_by_prefix_page_by_page_with_metadata(clients, name):
    service = clients.blobs()
    made = [f"{name}-c{number}" for number in range(5)]
    for one in reversed(made):
        await service.create_container(one, metadata={"is": one})
    prefix = f"{name}-c"
    pages = await service.pages(
        "list_containers", name_starts_with=prefix, include_metadata=True, results_per_page=2
    )
    assert [[one.name for one in page] for page in pages] == [made[:2], made[2:4], made[4:]]
    assert [one.metadata for page in pages for one in page] == [{"is": one} for one in made]
    plain = await service.list_containers(name_starts_with=prefix)
    assert not any(one.metadata for one in plain)
    options = {"name_starts_with": prefix}
    first, token = await service.page("list_containers", results_per_page=4, **options)
    rest, end = await service.page("list_containers", token=token, **options)
    assert [one.name for one in first + rest] == made and not end


async def test_a_listed_container_has_its_properties(clients, container, name):
    await container.set_container_access_policy({}, public_access="container")
    got = await container.get_container_properties()
    (listed,) = await clients.blobs().list_containers(name_starts_with=name)
    assert listed.etag.strip('"') == got.etag.strip('"')
    assert listed.last_modified == got.last_modified
    assert (listed.public_access, listed.lease.state) == ("container", "available")
    assert not listed.has_legal_hold and not listed.deleted


async def test_a_list_without_containers_is_empty(clients):
    assert await clients.blobs().list_containers(name_starts_with="no-such-container") == []


@pytest.mark.parametrize("results", [0, -1])
async def test_the_page_size_of_containers_is_limited(clients, results):
    with rejected(HttpResponseError, 400, "OutOfRangeQueryParameterValue"):
        await clients.blobs().pages("list_containers", results_per_page=results)


@pytest.mark.parametrize("bad", ["Upper", "a--b", "-ab", "ab-", "a_b", "a.b", "$logz"])
async def test_a_container_with_a_wrong_character_is_rejected(clients, bad):
    with rejected(HttpResponseError, 400, "InvalidResourceName"):
        await clients.container(bad).create_container()


@pytest.mark.parametrize("bad", ["ab", "a" * 64])
async def test_a_container_with_a_name_of_a_wrong_length_is_rejected(clients, bad):
    with rejected(HttpResponseError, 400, "OutOfRangeInput"):
        await clients.container(bad).create_container()


async def test_every_operation_on_a_missing_container_is_not_found(container, blob):
    await container.delete_container()
    for call in (
        container.get_container_properties,
        container.delete_container,
        container.set_container_metadata,
        container.get_container_access_policy,
        lambda: container.set_container_access_policy({}),
        container.acquire_lease,
        container.list_blobs,
        container.list_blob_names,
        container.walk_blobs,
        lambda: container.upload_blob("blob", b"x"),
        lambda: container.download_blob("blob"),
        lambda: container.delete_blob("blob"),
        blob.get_blob_properties,
        lambda: blob.stage_block("a", b"x"),
        blob.create_append_blob,
        lambda: blob.create_page_blob(512),
        blob.get_blob_tags,
    ):
        with rejected(ResourceNotFoundError, 404, "ContainerNotFound"):
            await call()
    assert not await container.exists() and not await blob.exists()


async def test_a_deleted_container_is_free_at_once_and_empty(container, blob):
    await blob.upload_blob(b"old")
    await blob.create_snapshot()
    await container.delete_container()
    await container.create_container()
    assert await container.list_blobs(include=["snapshots", "deleted"]) == []


async def test_policies_survive_a_round_trip(container):
    start = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    policies = {
        "all": AccessPolicy(permission="racwdl", start=start, expiry=start + HOUR),
        "permission": AccessPolicy(permission="r"),
        "nothing": AccessPolicy(),
    }
    changed = await container.set_container_access_policy(policies, public_access="container")
    assert changed["etag"] == (await container.get_container_properties()).etag
    got = await container.get_container_access_policy()
    assert got["public_access"] == "container"
    kept = {one.id: one.access_policy for one in got["signed_identifiers"]}
    assert set(kept) == set(policies)
    assert kept["all"].permission == "racwdl"
    assert str(kept["all"].start).startswith("2026-01-02T03:04:05")
    assert str(kept["all"].expiry).startswith("2026-01-02T04:04:05")
    assert kept["permission"].permission == "r"


async def test_policies_and_public_access_are_replaced_whole(container):
    policy = {"one": AccessPolicy(permission="r")}
    await container.set_container_access_policy(policy, public_access="blob")
    await container.set_container_access_policy({})
    got = await container.get_container_access_policy()
    assert (got["public_access"], got["signed_identifiers"]) == (None, [])
    assert (await container.get_container_properties()).public_access is None


async def test_five_policies_fit_and_a_sixth_does_not(container):
    policies = {f"p{number}": AccessPolicy(permission="r") for number in range(5)}
    await container.set_container_access_policy(policies)
    sixth = b"<SignedIdentifier><Id>sixth</Id></SignedIdentifier></SignedIdentifiers>"
    with rejected(HttpResponseError, 400, "InvalidXmlDocument"):
        await container.set_container_access_policy(
            policies, **rewriting((b"</SignedIdentifiers>", sixth))
        )
    got = await container.get_container_access_policy()
    assert {one.id for one in got["signed_identifiers"]} == set(policies)


async def test_an_unknown_level_of_public_access_is_rejected(clients, name):
    with rejected(HttpResponseError, 400, "InvalidHeaderValue"):
        await clients.container(name).create_container(public_access="everything")


async def test_a_container_that_is_not_deleted_cannot_be_restored(clients, container, name):
    service = clients.blobs()
    with rejected(ResourceNotFoundError, 404, "ContainerNotFound"):
        await service.undelete_container(f"{name}-missing", "01D60F8BB59A4652")
    listed = await service.list_containers(name_starts_with=name, include_deleted=True)
    assert [one.name for one in listed] == [name]


async def test_a_list_with_system_containers_has_the_others_too(clients, container, name):
    assert name in await names(clients.blobs(), include_system=True)


async def test_the_root_container_has_blobs_without_a_container_in_their_address(clients, target):
    service = clients.blobs()
    if "$root" not in await names(service, name_starts_with="$root"):
        await service.create_container("$root")
    blob = await service.get_blob_client("$root", "robots.txt")
    await blob.upload_blob(b"root", overwrite=True)
    sas = of_blob("$root", "robots.txt", "r")
    assert requests.get(f"{target.blob}/robots.txt?{sas}", timeout=30).content == b"root"
    assert "$root" in await names(service)
    await service.delete_container("$root")


async def test_a_container_names_its_account(container):
    got = await container.get_account_information()
    assert (got["account_kind"], got["is_hns_enabled"]) == ("StorageV2", False)
    assert got["sku_name"].startswith("Standard_")


async def test_encryption_scopes_are_rejected(clients, name):
    scope = ContainerEncryptionScope(default_encryption_scope="mine")
    with rejected(HttpResponseError, 400, "UnsupportedHeader"):
        await clients.container(name).create_container(container_encryption_scope=scope)
