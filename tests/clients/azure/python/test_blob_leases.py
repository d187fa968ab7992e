"""Leases of blobs and containers: the states, and what each permits."""

import asyncio
import uuid

import pytest
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import BlobBlock, ContentSettings

from azure_errors import rejected
from blob_signatures import HOUR, NOW

MISMATCH = "LeaseIdMismatchWithLeaseOperation"
NOT_PRESENT = "LeaseNotPresentWithLeaseOperation"
PRESENT = "LeaseAlreadyPresent"
BROKEN = "LeaseIsBrokenAndCannotBeRenewed"
# Attempts to see a lease end after a second.
MOST_ATTEMPTS = 200


def other():
    """The id of another lease."""
    return str(uuid.uuid4())


@pytest.fixture(params=["blob", "container"])
async def leasable(request, container, blob):
    """What a lease is for: a blob, then a container."""
    if request.param == "container":
        return container
    await blob.upload_blob(b"x")
    return blob


async def lease_of(leasable):
    """The status, the state and the duration of a lease."""
    describe = getattr(leasable, "get_blob_properties", None) if is_blob(leasable) else None
    got = await (describe or leasable.get_container_properties)()
    return got.lease.status, got.lease.state, got.lease.duration


def is_blob(leasable):
    """Whether the client is that of a blob."""
    return hasattr(leasable.inner, "blob_name")


async def until(leasable, state):
    """Returns when the lease has a state."""
    for _ in range(MOST_ATTEMPTS):
        if (await lease_of(leasable))[1] == state:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"the lease is {await lease_of(leasable)}")


async def test_a_lease_is_acquired_renewed_changed_and_released(clients, leasable):
    assert await lease_of(leasable) == ("unlocked", "available", None)
    lease = clients.lease(leasable)
    await lease.acquire(15)
    assert await lease_of(leasable) == ("locked", "leased", "fixed")
    first = lease.id
    await lease.renew()
    assert lease.id == first
    proposed = other()
    await lease.change(proposed)
    assert lease.id == proposed
    # A repeated change is the same.
    await clients.lease(leasable, first).change(proposed)
    await lease.acquire(-1)
    assert await lease_of(leasable) == ("locked", "leased", "infinite")
    await lease.release()
    assert await lease_of(leasable) == ("unlocked", "available", None)


async def test_a_lease_may_have_a_proposed_id(leasable):
    proposed = other()
    lease = await leasable.acquire_lease(60, proposed)
    assert lease.id == proposed
    with rejected(ResourceExistsError, 409, PRESENT):
        await leasable.acquire_lease(60, other())
    await leasable.acquire_lease(60, proposed.upper())


@pytest.mark.parametrize("duration", [0, 14, 61, -2])
async def test_the_duration_of_a_lease_is_limited(leasable, duration):
    with rejected(HttpResponseError, 400, "InvalidHeaderValue"):
        await leasable.acquire_lease(duration)


async def test_the_id_of_a_lease_is_a_guid(leasable):
    with rejected(HttpResponseError, 400, "InvalidHeaderValue"):
        await leasable.acquire_lease(-1, "mine")


async def test_the_break_period_is_limited(leasable):
    lease = await leasable.acquire_lease()
    with rejected(HttpResponseError, 400, "InvalidHeaderValue"):
        await lease.break_lease(61)


async def test_operations_of_an_available_lease(clients, leasable):
    lease = clients.lease(leasable)
    for call, code in (
        (lease.renew, MISMATCH),
        (lease.release, MISMATCH),
        (lambda: lease.change(other()), NOT_PRESENT),
        (lease.break_lease, NOT_PRESENT),
    ):
        with rejected(ResourceExistsError, 409, code):
            await call()


async def test_operations_of_a_lease_of_another(clients, leasable):
    held = await leasable.acquire_lease()
    lease = clients.lease(leasable)
    for call, code in (
        (lease.acquire, PRESENT),
        (lease.renew, MISMATCH),
        (lease.release, MISMATCH),
        (lambda: lease.change(other()), MISMATCH),
    ):
        with rejected(ResourceExistsError, 409, code):
            await call()
    # Another may break it.
    assert await lease.break_lease(0) == 0
    assert await lease_of(leasable) == ("unlocked", "broken", None)
    with rejected(ResourceExistsError, 409, BROKEN):
        await held.renew()


async def test_operations_of_a_breaking_lease(clients, leasable):
    held = await leasable.acquire_lease()
    assert 0 < await held.break_lease(60) <= 60
    assert (await lease_of(leasable))[:2] == ("locked", "breaking")
    lease = clients.lease(leasable)
    for call, code in (
        (lease.acquire, PRESENT),
        (held.acquire, "LeaseIsBreakingAndCannotBeAcquired"),
        (held.renew, BROKEN),
        (lambda: held.change(other()), "LeaseIsBreakingAndCannotBeChanged"),
        (lease.renew, MISMATCH),
        (lease.release, MISMATCH),
        (lambda: lease.change(other()), MISMATCH),
    ):
        with rejected(ResourceExistsError, 409, code):
            await call()
    # The shorter of the two periods counts.
    assert 0 < await held.break_lease() <= 60
    assert 0 < await held.break_lease(5) <= 5
    assert 0 < await held.break_lease(60) <= 5
    await held.release()
    assert await lease_of(leasable) == ("unlocked", "available", None)


async def test_a_lease_is_broken_after_its_period(clients, leasable):
    held = await leasable.acquire_lease()
    await held.break_lease(1)
    await until(leasable, "broken")
    lease = clients.lease(leasable)
    for call, code in (
        (held.renew, BROKEN),
        (lease.renew, MISMATCH),
        (lambda: held.change(other()), NOT_PRESENT),
        (lease.release, MISMATCH),
    ):
        with rejected(ResourceExistsError, 409, code):
            await call()
    assert await held.break_lease() == 0 and await held.break_lease(30) == 0
    await lease.acquire(15)
    assert await lease_of(leasable) == ("locked", "leased", "fixed")


async def test_a_broken_lease_is_acquired_or_released_by_its_id(leasable):
    held = await leasable.acquire_lease()
    # An infinite one breaks at once.
    assert await held.break_lease() == 0
    await held.acquire(20)
    assert await lease_of(leasable) == ("locked", "leased", "fixed")
    assert 0 < await held.break_lease() <= 20
    await held.break_lease(0)
    await held.release()
    assert await lease_of(leasable) == ("unlocked", "available", None)


async def test_a_lease_keeps_the_etag(leasable):
    describe = "get_blob_properties" if is_blob(leasable) else "get_container_properties"
    before = await getattr(leasable, describe)()
    lease = await leasable.acquire_lease()
    assert (lease.etag, lease.last_modified) == (before.etag, before.last_modified)
    await lease.renew()
    await lease.change(other())
    assert lease.etag == before.etag
    await lease.break_lease(0)
    assert (await getattr(leasable, describe)()).etag == before.etag


async def test_a_lease_has_conditions(leasable):
    for condition in (
        {"if_modified_since": NOW + 24 * HOUR},
        {"if_unmodified_since": NOW - 24 * HOUR},
    ):
        with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
            await leasable.acquire_lease(**condition)
    lease = await leasable.acquire_lease(if_unmodified_since=NOW + 24 * HOUR)
    with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
        await lease.renew(if_modified_since=NOW + 24 * HOUR)
    with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
        await lease.release(if_unmodified_since=NOW - 24 * HOUR)
    await lease.release(if_modified_since=NOW - 24 * HOUR)


def writes(blob):
    """The calls that change a blob, by their options."""
    return [
        lambda **options: blob.upload_blob(b"y", overwrite=True, **options),
        lambda **options: blob.stage_block("a", b"y", **options),
        lambda **options: blob.commit_block_list([BlobBlock("a")], **options),
        lambda **options: blob.set_blob_metadata({"a": "b"}, **options),
        lambda **options: blob.set_http_headers(ContentSettings("a/b"), **options),
        lambda **options: blob.set_blob_tags({"a": "b"}, **options),
        blob.delete_blob,
    ]


def reads(blob):
    """The calls that read a blob, by their options."""
    return [blob.download_blob, blob.get_blob_properties, blob.get_block_list, blob.get_blob_tags]


async def test_a_leased_blob_is_written_by_its_lease_only(blob):
    await blob.upload_blob(b"x")
    lease = await blob.acquire_lease()
    for call in writes(blob):
        with rejected(HttpResponseError, 412, "LeaseIdMissing"):
            await call()
        with rejected(HttpResponseError, 412, "LeaseIdMismatchWithBlobOperation"):
            await call(lease=other())
    for call in reads(blob):
        await call()
        await call(lease=lease)
        with rejected(HttpResponseError, 412, "LeaseIdMismatchWithBlobOperation"):
            await call(lease=other())
    for call in writes(blob):
        await call(lease=lease)
    assert not await blob.exists()


async def test_a_blob_without_a_lease_rejects_the_id_of_one(blob):
    with rejected(HttpResponseError, 412, "LeaseNotPresentWithBlobOperation"):
        await blob.upload_blob(b"x", lease=other())
    await blob.upload_blob(b"x")
    for call in writes(blob) + reads(blob):
        with rejected(HttpResponseError, 412, "LeaseNotPresentWithBlobOperation"):
            await call(lease=other())
    assert await blob.read() == b"x"


async def test_a_broken_lease_ends_with_the_next_write(blob):
    await blob.upload_blob(b"x")
    lease = await blob.acquire_lease()
    await lease.break_lease(0)
    with rejected(HttpResponseError, 412, "LeaseLost"):
        await blob.upload_blob(b"y", overwrite=True, lease=lease)
    await blob.upload_blob(b"y", overwrite=True)
    assert await lease_of(blob) == ("unlocked", "available", None)


async def test_a_breaking_lease_protects_its_blob(blob):
    await blob.upload_blob(b"x")
    lease = await blob.acquire_lease()
    await lease.break_lease(60)
    with rejected(HttpResponseError, 412, "LeaseIdMissing"):
        await blob.upload_blob(b"y", overwrite=True)
    await blob.upload_blob(b"y", overwrite=True, lease=lease)
    assert (await lease_of(blob))[1] == "breaking"


async def test_snapshots_need_no_lease_but_the_right_one(blob):
    await blob.upload_blob(b"x")
    lease = await blob.acquire_lease()
    await blob.create_snapshot()
    await blob.create_snapshot(lease=lease)
    with rejected(HttpResponseError, 412, "LeaseIdMismatchWithBlobOperation"):
        await blob.create_snapshot(lease=other())


async def test_a_leased_container_is_deleted_by_its_lease_only(container, blob):
    lease = await container.acquire_lease()
    await blob.upload_blob(b"x")
    await container.set_container_metadata({"a": "b"})
    await container.set_container_metadata({"a": "b"}, lease=lease)
    mismatch = "LeaseIdMismatchWithContainerOperation"
    with rejected(HttpResponseError, 412, mismatch):
        await container.set_container_metadata({"a": "b"}, lease=other())
    with rejected(HttpResponseError, 412, mismatch):
        await container.get_container_properties(lease=other())
    with rejected(HttpResponseError, 412, "LeaseIdMissing"):
        await container.delete_container()
    with rejected(HttpResponseError, 412, mismatch):
        await container.delete_container(lease=other())
    await container.delete_container(lease=lease)


async def test_a_container_without_a_lease_rejects_the_id_of_one(container):
    not_present = "LeaseNotPresentWithContainerOperation"
    for call in (
        container.get_container_properties,
        lambda **options: container.set_container_metadata({}, **options),
        container.delete_container,
    ):
        with rejected(HttpResponseError, 412, not_present):
            await call(lease=other())


async def test_a_missing_blob_has_no_lease(clients, blob):
    lease = clients.lease(blob)
    for call in (lease.acquire, lease.renew, lease.release, lease.break_lease):
        with rejected(ResourceNotFoundError, 404, "BlobNotFound"):
            await call()
