"""Snapshots, deletion with snapshots, and restoring of deleted blobs."""

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobBlock, ContentSettings, RetentionPolicy

from azure_errors import rejected


@pytest.fixture
async def retention(clients):
    """Deleted blobs are kept for three days during the test."""
    service = clients.blobs()
    policy = RetentionPolicy(enabled=True, days=3)
    await service.set_service_properties(delete_retention_policy=policy)
    yield
    await service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=False))


async def snapshots(container):
    """The names and snapshots in a container."""
    return [(one.name, one.snapshot) for one in await container.list_blobs(include=["snapshots"])]


async def test_a_snapshot_keeps_the_blob_as_it_was(container, blob):
    settings = ContentSettings("text/plain")
    made = await blob.upload_blob(b"old", metadata={"a": "b"}, content_settings=settings)
    created = await blob.create_snapshot()
    assert (created["etag"], created["last_modified"]) == (made["etag"], made["last_modified"])
    await blob.upload_blob(b"new", overwrite=True)
    snapshot = container.within("blob", snapshot=created)
    assert await snapshot.read() == b"old" and await blob.read() == b"new"
    assert await snapshot.exists()
    got = await snapshot.get_blob_properties()
    assert (got.metadata, got.content_settings.content_type) == ({"a": "b"}, "text/plain")
    assert (got.snapshot, got.etag) == (created["snapshot"], made["etag"])
    assert got.lease.state is None


async def test_a_snapshot_may_have_metadata_of_its_own(container, blob):
    await blob.upload_blob(b"x", metadata={"a": "b"})
    created = await blob.create_snapshot(metadata={"c": "d"})
    snapshot = container.within("blob", snapshot=created["snapshot"])
    assert (await snapshot.get_blob_properties()).metadata == {"c": "d"}
    assert (await blob.get_blob_properties()).metadata == {"a": "b"}


async def test_snapshots_of_one_blob_differ_in_their_time(container, blob):
    await blob.upload_blob(b"x")
    created = [(await blob.create_snapshot())["snapshot"] for _ in range(5)]
    assert sorted(set(created)) == created
    assert all(len(time) == len("2019-08-28T17:07:35.2821851Z") for time in created)
    assert await snapshots(container) == [("blob", time) for time in [*created, None]]


async def test_a_snapshot_is_not_changed(container, blob):
    await blob.upload_blob(b"x")
    snapshot = container.within("blob", snapshot=await blob.create_snapshot())
    named = {"params": {"snapshot": snapshot.snapshot}}
    for call in (
        lambda: blob.set_blob_metadata({"a": "b"}, **named),
        lambda: blob.set_http_headers(ContentSettings("a/b"), **named),
        lambda: blob.acquire_lease(**named),
        lambda: blob.upload_blob(b"y", overwrite=True, **named),
        lambda: blob.create_snapshot(**named),
    ):
        with rejected(HttpResponseError, 400, "InvalidQueryParameterValue"):
            await call()
    assert await snapshot.read() == b"x"


async def test_a_snapshot_is_deleted(container, blob):
    await blob.upload_blob(b"x")
    snapshot = container.within("blob", snapshot=await blob.create_snapshot())
    missing = container.within("blob", snapshot="2020-01-01T00:00:00.0000000Z")
    for call in (missing.download_blob, missing.get_blob_properties, missing.delete_blob):
        with rejected(ResourceNotFoundError, 404, "BlobNotFound"):
            await call()
    await snapshot.delete_blob()
    with rejected(ResourceNotFoundError, 404, "BlobNotFound"):
        await snapshot.delete_blob()
    assert await blob.read() == b"x"


async def test_a_blob_with_snapshots_is_deleted_with_them_or_not(container, blob):
    await blob.upload_blob(b"x")
    first = (await blob.create_snapshot())["snapshot"]
    await blob.create_snapshot()
    with rejected(ResourceExistsError, 409, "SnapshotsPresent"):
        await blob.delete_blob()
    await container.within("blob", snapshot=first).delete_blob()
    assert len(await snapshots(container)) == 2
    await blob.delete_blob(delete_snapshots="only")
    assert await snapshots(container) == [("blob", None)]
    await blob.create_snapshot()
    await container.delete_blob("blob", delete_snapshots="include")
    assert await snapshots(container) == []


async def test_an_upload_keeps_snapshots(container, blob):
    await blob.upload_blob(b"x")
    created = await blob.create_snapshot()
    await blob.upload_blob(b"y", overwrite=True)
    await blob.stage_block("a", b"z")
    await blob.commit_block_list([BlobBlock("a")])
    assert await snapshots(container) == [("blob", created["snapshot"]), ("blob", None)]


async def test_a_snapshot_is_promoted_by_a_copy(container, blob):
    await blob.upload_blob(b"old")
    created = await blob.create_snapshot()
    await blob.upload_blob(b"new", overwrite=True)
    snapshot = container.within("blob", snapshot=created)
    await blob.start_copy_from_url(snapshot.url)
    assert await blob.read() == b"old"
    assert await snapshots(container) == [("blob", created["snapshot"]), ("blob", None)]


async def test_snapshots_of_page_blobs_and_append_blobs_are_read(container):
    log, disk = container.within("log"), container.within("disk")
    await log.create_append_blob()
    await log.append_block(b"old")
    await disk.create_page_blob(512)
    of_log, of_disk = await log.create_snapshot(), await disk.create_snapshot()
    await log.append_block(b"new")
    await disk.upload_page(b"x" * 512, 0, 512)
    assert await container.within("log", snapshot=of_log).read() == b"old"
    assert await container.within("disk", snapshot=of_disk).read() == bytes(512)


async def test_a_deleted_blob_is_restored(container, blob, retention):
    await blob.upload_blob(b"x", metadata={"a": "b"})
    await blob.create_snapshot()
    await blob.delete_blob(delete_snapshots="include")
    assert not await blob.exists() and await container.list_blobs() == []
    listed = await container.list_blobs(include=["deleted", "snapshots"])
    assert [(one.name, one.deleted) for one in listed] == [("blob", True), ("blob", True)]
    assert listed[-1].deleted_time is not None and listed[-1].remaining_retention_days in (2, 3)
    await blob.undelete_blob()
    assert await blob.read() == b"x"
    assert (await blob.get_blob_properties()).metadata == {"a": "b"}
    assert len(await snapshots(container)) == 2
    # There is nothing to restore, which is no error.
    await blob.undelete_blob()


async def test_an_overwritten_blob_is_kept_as_a_deleted_snapshot(container, blob, retention):
    await blob.upload_blob(b"old")
    await blob.upload_blob(b"new", overwrite=True)
    listed = await container.list_blobs(include=["deleted", "snapshots"])
    assert [(one.deleted, one.snapshot is None) for one in listed] == [(True, False), (None, True)]
    await blob.undelete_blob()
    kept = [one for one in await snapshots(container) if one[1]]
    assert await container.within("blob", snapshot=kept[0][1]).read() == b"old"
    assert await blob.read() == b"new"


async def test_a_deleted_blob_is_not_restored_without_retention(container, blob):
    await blob.upload_blob(b"x")
    await blob.delete_blob()
    assert await container.list_blobs(include=["deleted"]) == []
    with rejected(ResourceNotFoundError, 404, "BlobNotFound"):
        await blob.undelete_blob()


async def test_versions_are_off(clients, container, name):
    blob = container.within("blob")
    made = await blob.upload_blob(b"x")
    assert made.get("version_id") is None
    assert (await blob.get_blob_properties()).version_id is None
    version = clients.blob(name, "blob", version_id="2020-01-01T00:00:00.0000000Z")
    for call in (version.download_blob, version.get_blob_properties, version.delete_blob):
        with rejected(ResourceNotFoundError, 404, "BlobNotFound"):
            await call()
    assert await blob.exists()
