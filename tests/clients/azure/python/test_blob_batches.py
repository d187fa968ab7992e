"""Batches: many blobs deleted, or moved to another tier, in one request."""

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobType, PartialBatchErrorException, StandardBlobTier

from azure_errors import forbidden
from blob_signatures import of_account, of_container

NAMES = ["a", "b c", "d/e", "é%+", "~f"]


@pytest.fixture
async def filled(container):
    """A container with some blobs."""
    for name in NAMES:
        await container.upload_blob(name, b"x")
    return container


async def statuses(results):
    """The statuses of the parts of a batch."""
    return [result.status_code for result in results]


async def test_a_batch_deletes_blobs(filled):
    results = await filled.delete_blobs(*NAMES[1:])
    assert await statuses(results) == [202] * 4
    assert all(result.headers["x-ms-request-id"] for result in results)
    assert await filled.list_blob_names() == ["a"]


async def test_a_batch_reports_each_blob(filled):
    results = await filled.delete_blobs("a", "missing", "b c", raise_on_any_failure=False)
    assert await statuses(results) == [202, 404, 202]
    assert results[1].headers["x-ms-error-code"] == "BlobNotFound"
    with pytest.raises(PartialBatchErrorException) as raised:
        await filled.delete_blobs("missing", "d/e")
    assert await statuses(raised.value.parts) == [404, 202]
    assert await filled.list_blob_names() == ["~f", "é%+"]


async def test_the_most_requests_of_a_batch_are_256(container):
    names = [f"{number:03}" for number in range(256)]
    results = await container.delete_blobs(*names, raise_on_any_failure=False)
    assert await statuses(results) == [404] * 256
    with pytest.raises(HttpResponseError) as raised:
        await container.delete_blobs(*names, "257")
    assert raised.value.status_code == 400


async def test_a_batch_deletes_snapshots_and_what_it_lists(filled):
    blob = filled.within("a")
    created = (await blob.create_snapshot())["snapshot"]
    await blob.create_snapshot()
    results = await filled.delete_blobs("a", raise_on_any_failure=False)
    assert await statuses(results) == [409]
    await filled.delete_blobs({"name": "a", "snapshot": created})
    assert len(await filled.list_blobs(name_starts_with="a", include=["snapshots"])) == 2
    await filled.delete_blobs("a", delete_snapshots="include")
    await filled.delete_blobs(*await filled.list_blobs())
    assert await filled.list_blobs(include=["snapshots"]) == []


async def test_parts_of_a_batch_have_conditions_and_leases(filled):
    blob = filled.within("a")
    lease = await blob.acquire_lease()
    wrong = {"name": "b c", "etag": '"0x1"'}
    results = await filled.delete_blobs("a", wrong, raise_on_any_failure=False)
    assert await statuses(results) == [412, 412]
    codes = [result.headers["x-ms-error-code"] for result in results]
    assert codes == ["LeaseIdMissing", "ConditionNotMet"]
    right = {"name": "b c", "etag": (await filled.within("b c").get_blob_properties()).etag}
    await filled.delete_blobs({"name": "a", "lease_id": lease.id}, right)
    assert not await blob.exists()


async def test_a_batch_sets_tiers(filled):
    cool = StandardBlobTier.COOL
    results = await filled.set_standard_blob_tier_blobs(
        cool, "a", "b c", "missing", raise_on_any_failure=False
    )
    assert await statuses(results) == [200, 200, 404]
    cold = {"name": "d/e", "blob_tier": StandardBlobTier.COLD}
    hot = {"name": "a", "blob_tier": StandardBlobTier.HOT}
    await filled.set_standard_blob_tier_blobs(None, cold, hot)
    tiers = {one.name: one.blob_tier for one in await filled.list_blobs()}
    assert tiers == {"a": "Hot", "b c": "Cool", "d/e": "Cold", "~f": "Hot", "é%+": "Hot"}


async def test_a_batch_sets_tiers_of_page_blobs(filled):
    await filled.upload_blob("disk", b"x" * 512, blob_type=BlobType.PageBlob)
    results = await filled.set_premium_page_blob_tier_blobs(
        "P10", "disk", "missing", raise_on_any_failure=False
    )
    assert await statuses(results) == [200, 404]


async def test_a_batch_needs_the_permission_of_each_part(clients, filled):
    name = filled.container_name
    deleter = clients.container(name, of_container(name, "d"))
    await deleter.delete_blobs("a", "b c")
    of_all = clients.container(name, of_account("d", "o"))
    await of_all.delete_blobs("d/e")
    reader = clients.container(name, of_container(name, "r"))
    with pytest.raises(HttpResponseError) as raised:
        await reader.delete_blobs("~f")
    parts = getattr(raised.value, "parts", [raised.value])
    assert [part.status_code for part in parts] == [403]
    other = clients.container(f"{name}-other", of_container(name, "d"))
    with forbidden(HttpResponseError, "AuthenticationFailed", "AuthorizationFailure"):
        await other.delete_blobs("~f")
    assert await filled.list_blob_names() == ["~f", "é%+"]
