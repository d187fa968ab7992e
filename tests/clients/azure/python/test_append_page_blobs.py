"""Append blobs and page blobs: created, written, described, rejected by rule."""

import asyncio
import base64
import os

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import BlobType, ContentSettings, PremiumPageBlobTier, SequenceNumberAction

from azure_errors import rejected
from blob_signatures import HOUR, NOW, of_blob

PAGE = 512


@pytest.fixture
async def log(container):
    """The client of an empty append blob."""
    log = container.within("log")
    await log.create_append_blob()
    return log


@pytest.fixture
async def disk(container):
    """The client of a page blob of eight pages."""
    disk = container.within("disk")
    await disk.create_page_blob(8 * PAGE, sequence_number=7)
    return disk


async def ranges(disk, **options):
    """The ranges of pages: the first byte, the last, and whether it is cleared."""
    found = await disk.list_page_ranges(**options)
    return [(one.start, one.end, one.cleared) for one in found]


async def test_blocks_are_appended_at_the_end(log):
    first = await log.append_block(b"one")
    assert (first["blob_append_offset"], first["blob_committed_block_count"]) == ("0", 1)
    second = await log.append_block("two", validate_content=True)
    assert (second["blob_append_offset"], second["blob_committed_block_count"]) == ("3", 2)
    assert first["etag"] != second["etag"]
    got = await log.get_blob_properties()
    assert (got.blob_type, got.size, got.append_blob_committed_block_count) == ("AppendBlob", 6, 2)
    assert got.etag == second["etag"] and await log.read() == b"onetwo"


async def test_an_append_blob_has_the_properties_of_its_creation(container):
    log = container.within("log")
    settings = ContentSettings("text/plain", cache_control="no-cache")
    await log.create_append_blob(settings, {"Owner": "a b"}, tags={"k": "v"})
    got = await log.get_blob_properties()
    assert (got.content_settings.content_type, got.content_settings.cache_control) == (
        "text/plain",
        "no-cache",
    )
    assert (got.metadata, got.tag_count, got.size) == ({"Owner": "a b"}, 1, 0)
    await log.append_block(b"x")
    await log.create_append_blob()
    got = await log.get_blob_properties()
    assert (got.metadata, got.size, got.append_blob_committed_block_count) == ({}, 0, 0)


async def test_an_append_has_conditions(log):
    await log.append_block(b"one", appendpos_condition=0, maxsize_condition=3)
    with rejected(HttpResponseError, 412, "AppendPositionConditionNotMet"):
        await log.append_block(b"x", appendpos_condition=0)
    for most in (2, 3):
        with rejected(HttpResponseError, 412, "MaxBlobSizeConditionNotMet"):
            await log.append_block(b"x", maxsize_condition=most)
    await log.append_block(b"x", appendpos_condition=3, maxsize_condition=4)
    assert await log.read() == b"onex"


async def test_a_sealed_blob_is_not_appended_to(log):
    await log.append_block(b"x")
    with rejected(HttpResponseError, 412, "AppendPositionConditionNotMet"):
        await log.seal_append_blob(appendpos_condition=0)
    before = (await log.get_blob_properties()).etag
    for _ in range(2):
        sealed = await log.seal_append_blob()
        assert (sealed["blob_sealed"], sealed["etag"]) == (True, before)
    assert (await log.get_blob_properties()).is_append_blob_sealed
    with rejected(ResourceExistsError, 409, "BlobIsSealed"):
        await log.append_block(b"y")
    await log.set_blob_metadata({"a": "b"})
    assert await log.read() == b"x"


async def test_appends_of_many_writers_are_all_kept_whole(clients, container, log):
    async def append(number):
        writer = clients.blob(container.container_name, "log")
        for _ in range(4):
            await writer.append_block(f"{number:02};" * 10)

    await asyncio.gather(*map(append, range(8)))
    data = (await log.read()).decode()
    pieces = [data[start : start + 30] for start in range(0, len(data), 30)]
    assert sorted(pieces) == sorted(f"{number:02};" * 10 for number in range(8) for _ in range(4))
    assert (await log.get_blob_properties()).append_blob_committed_block_count == 32


async def test_uploads_append_or_overwrite(clients, container):
    blob = clients.blob(container.container_name, "log", max_block_size=1000)
    await blob.upload_blob(b"a" * 2500, blob_type=BlobType.AppendBlob)
    await blob.upload_blob(b"b" * 10, blob_type=BlobType.AppendBlob)
    assert await blob.read() == b"a" * 2500 + b"b" * 10
    assert (await blob.get_blob_properties()).append_blob_committed_block_count == 4
    await blob.upload_blob(b"c", blob_type=BlobType.AppendBlob, overwrite=True)
    assert await blob.read() == b"c"


async def test_a_block_is_appended_from_an_address(container, log):
    source = container.within("source")
    await source.upload_blob(b"0123456789")
    url = f"{source.url}?{of_blob(container.container_name, 'source', 'r')}"
    first = await log.append_block_from_url(url)
    assert (first["blob_append_offset"], first["blob_committed_block_count"]) == ("0", 1)
    await log.append_block_from_url(url, source_offset=2, source_length=3, appendpos_condition=10)
    assert await log.read() == b"0123456789234"
    with rejected(HttpResponseError, 412, "AppendPositionConditionNotMet"):
        await log.append_block_from_url(url, appendpos_condition=1)
    with rejected(HttpResponseError, 412, "MaxBlobSizeConditionNotMet"):
        await log.append_block_from_url(url, maxsize_condition=20)
    with rejected(ResourceNotFoundError, 404, "BlobNotFound", "CannotVerifyCopySource"):
        await log.append_block_from_url(container.within("missing").url)


async def test_wrong_appends_are_rejected(log):
    with rejected(HttpResponseError, 400, "Md5Mismatch"):
        wrong = {"Content-MD5": base64.b64encode(b"0" * 16).decode()}
        await log.append_block(b"x", headers=wrong)
    with rejected(ResourceExistsError, 409, "InvalidBlobType"):
        await log.upload_page(b"x" * PAGE, 0, PAGE)
    with rejected(ResourceExistsError, 409, "InvalidBlobType"):
        await log.get_block_list()
    assert await log.read() == b""


async def test_a_page_blob_reads_as_zeros_until_it_is_written(disk):
    got = await disk.get_blob_properties()
    assert (got.blob_type, got.size, got.page_blob_sequence_number) == ("PageBlob", 8 * PAGE, 7)
    assert await disk.read() == bytes(8 * PAGE) and await ranges(disk) == []
    written = await disk.upload_page(b"x" * PAGE, PAGE, PAGE)
    assert written["blob_sequence_number"] == 7
    await disk.upload_page(b"y" * 2 * PAGE, 4 * PAGE, 2 * PAGE, validate_content=True)
    assert await disk.read(offset=PAGE, length=PAGE) == b"x" * PAGE
    assert await disk.read(offset=0, length=PAGE) == bytes(PAGE)
    assert await ranges(disk) == [(512, 1023, False), (2048, 3071, False)]
    assert (await disk.get_blob_properties()).etag != got.etag


async def test_a_page_blob_has_the_properties_of_its_creation(container):
    disk = container.within("disk")
    settings = ContentSettings("application/x-disk")
    await disk.create_page_blob(PAGE, settings, {"Owner": "a b"}, tags={"k": "v"})
    got = await disk.get_blob_properties()
    assert got.content_settings.content_type == "application/x-disk"
    assert (got.metadata, got.tag_count) == ({"Owner": "a b"}, 1)
    assert got.page_blob_sequence_number == 0


async def test_pages_are_cleared(disk):
    await disk.upload_page(b"x" * 4 * PAGE, 0, 4 * PAGE)
    await disk.clear_page(PAGE, 2 * PAGE)
    assert await ranges(disk) == [(0, 511, False), (1536, 2047, False)]
    assert await disk.read() == b"x" * PAGE + bytes(2 * PAGE) + b"x" * PAGE + bytes(4 * PAGE)
    await disk.clear_page(0, 8 * PAGE)
    assert await ranges(disk) == []


async def test_ranges_of_pages_are_listed_in_part_and_page_by_page(disk):
    for number in (0, 2, 4, 6):
        await disk.upload_page(b"x" * PAGE, number * PAGE, PAGE)
    assert await ranges(disk, offset=2 * PAGE, length=3 * PAGE) == [
        (1024, 1535, False),
        (2048, 2559, False),
    ]
    pages = await disk.pages("list_page_ranges", results_per_page=3)
    assert [[one.start for one in page] for page in pages] == [[0, 1024, 2048], [3072]]
    with pytest.deprecated_call():
        found, cleared = await disk.get_page_ranges()
    assert [one["start"] for one in found] == [0, 1024, 2048, 3072] and cleared == []


async def test_changes_of_pages_since_a_snapshot_are_listed(container, disk):
    await disk.upload_page(b"x" * PAGE, 0, PAGE)
    await disk.upload_page(b"x" * PAGE, 2 * PAGE, PAGE)
    before = (await disk.create_snapshot())["snapshot"]
    await disk.upload_page(b"y" * PAGE, 6 * PAGE, PAGE)
    await disk.clear_page(2 * PAGE, PAGE)
    assert await ranges(disk, previous_snapshot=before) == [
        (1024, 1535, True),
        (3072, 3583, False),
    ]
    snapshot = container.within("disk", snapshot=before)
    assert await ranges(snapshot) == [(0, 511, False), (1024, 1535, False)]
    with rejected(ResourceExistsError, 409, "PreviousSnapshotNotFound"):
        await ranges(disk, previous_snapshot="2020-01-01T00:00:00.0000000Z")


async def test_changes_of_a_managed_disk_are_rejected(disk):
    before = (await disk.create_snapshot())["snapshot"]
    with pytest.raises(HttpResponseError) as raised:
        await disk.get_page_range_diff_for_managed_disk(f"{disk.url}?snapshot={before}")
    error = raised.value
    assert (error.status_code, error.error_code) in [
        (409, "PreviousSnapshotOperationNotSupported"),
        (400, "UnsupportedHeader"),
    ]


async def test_a_page_blob_is_resized(disk):
    await disk.upload_page(b"x" * PAGE, 7 * PAGE, PAGE)
    changed = await disk.resize_blob(4 * PAGE)
    assert changed["blob_sequence_number"] == 7
    got = await disk.get_blob_properties()
    assert (got.size, got.etag) == (4 * PAGE, changed["etag"])
    await disk.resize_blob(8 * PAGE)
    assert await disk.read() == bytes(8 * PAGE)
    with rejected(HttpResponseError, 400, "InvalidHeaderValue"):
        await disk.resize_blob(PAGE + 1)


async def test_the_sequence_number_changes_by_an_action(disk):
    for action, given, expected in [
        (SequenceNumberAction.Increment, None, 8),
        (SequenceNumberAction.Update, 3, 3),
        (SequenceNumberAction.Max, 9, 9),
        (SequenceNumberAction.Max, 4, 9),
    ]:
        changed = await disk.set_sequence_number(action, given)
        assert changed["blob_sequence_number"] == expected
        assert (await disk.get_blob_properties()).page_blob_sequence_number == expected


async def test_writes_of_pages_have_sequence_conditions(disk):
    data = b"x" * PAGE
    for condition in (
        {"if_sequence_number_lte": 6},
        {"if_sequence_number_lt": 7},
        {"if_sequence_number_eq": 8},
    ):
        with rejected(HttpResponseError, 412, "SequenceNumberConditionNotMet"):
            await disk.upload_page(data, 0, PAGE, **condition)
        with rejected(HttpResponseError, 412, "SequenceNumberConditionNotMet"):
            await disk.clear_page(0, PAGE, **condition)
    await disk.upload_page(data, 0, PAGE, if_sequence_number_lte=7)
    await disk.upload_page(data, 0, PAGE, if_sequence_number_lt=8)
    await disk.clear_page(0, PAGE, if_sequence_number_eq=7)


async def test_pages_outside_the_blob_are_rejected(container, disk):
    with rejected(HttpResponseError, 416, "InvalidPageRange"):
        await disk.upload_page(b"x" * PAGE, 8 * PAGE, PAGE)
    with rejected(HttpResponseError, 416, "InvalidPageRange"):
        await disk.clear_page(7 * PAGE, 2 * PAGE)
    with rejected(HttpResponseError, 400, "InvalidHeaderValue"):
        await container.within("odd").create_page_blob(PAGE + 1)
    with rejected(ResourceExistsError, 409, "InvalidBlobType"):
        await disk.append_block(b"x")


async def test_pages_are_copied_from_an_address(container, disk):
    source = container.within("source")
    data = os.urandom(4 * PAGE)
    await source.upload_blob(data)
    url = f"{source.url}?{of_blob(container.container_name, 'source', 'r')}"
    written = await disk.upload_pages_from_url(url, 2 * PAGE, 2 * PAGE, PAGE)
    assert written["blob_sequence_number"] == 7
    assert await disk.read(offset=2 * PAGE, length=2 * PAGE) == data[PAGE : 3 * PAGE]
    with rejected(HttpResponseError, 412, "SequenceNumberConditionNotMet"):
        await disk.upload_pages_from_url(url, 0, PAGE, 0, if_sequence_number_eq=1)


async def test_a_page_blob_is_uploaded_whole_without_its_empty_pages(clients, container):
    blob = clients.blob(container.container_name, "disk", max_page_size=2 * PAGE)
    data = os.urandom(2 * PAGE) + bytes(2 * PAGE) + os.urandom(PAGE)
    await blob.upload_blob(data, blob_type=BlobType.PageBlob, max_concurrency=2)
    assert await blob.read() == data
    assert await ranges(blob) == [(0, 1023, False), (2048, 2559, False)]
    with rejected(ResourceExistsError, 409, "BlobAlreadyExists"):
        await blob.upload_blob(data, blob_type=BlobType.PageBlob)


async def test_a_page_blob_has_a_premium_tier(container, disk):
    await disk.set_premium_page_blob_tier(PremiumPageBlobTier.P10)
    assert (await disk.get_blob_properties()).blob_tier == "P10"
    await container.set_premium_page_blob_tier_blobs(PremiumPageBlobTier.P20, "disk")
    assert (await disk.get_blob_properties()).blob_tier == "P20"


async def test_every_write_has_conditions(log, disk):
    past, future = NOW - 24 * HOUR, NOW + 24 * HOUR
    wrong = [
        {"etag": '"0x1"', "match_condition": MatchConditions.IfNotModified},
        {"if_modified_since": future},
        {"if_unmodified_since": past},
        {"if_tags_match_condition": "\"a\" = 'b'"},
    ]
    for call in (
        lambda **options: log.append_block(b"x", **options),
        lambda **options: disk.upload_page(b"x" * PAGE, 0, PAGE, **options),
        lambda **options: disk.clear_page(0, PAGE, **options),
        lambda **options: disk.resize_blob(PAGE, **options),
        lambda **options: disk.set_sequence_number("increment", **options),
    ):
        for condition in wrong:
            with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
                await call(**condition)
        await call(etag='"0x1"', match_condition=MatchConditions.IfModified)
    for condition in wrong[:3]:
        with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
            await log.seal_append_blob(**condition)
    for condition, status in zip(wrong, (412, 304, 412, 412)):
        with rejected(ResourceModifiedError, status, "ConditionNotMet"):
            await ranges(disk, **condition)


async def test_creations_have_conditions(log, disk):
    missing = {"match_condition": MatchConditions.IfMissing}
    with rejected(ResourceExistsError, 409, "BlobAlreadyExists"):
        await log.create_append_blob(**missing)
    with rejected(ResourceExistsError, 409, "BlobAlreadyExists"):
        await disk.create_page_blob(PAGE, **missing)
    assert (await disk.get_blob_properties()).size == 8 * PAGE


async def test_a_lease_protects_appends_and_pages(log, disk):
    for blob, call in (
        (log, lambda **options: log.append_block(b"x", **options)),
        (log, log.seal_append_blob),
        (disk, lambda **options: disk.upload_page(b"x" * PAGE, 0, PAGE, **options)),
        (disk, lambda **options: disk.clear_page(0, PAGE, **options)),
        (disk, lambda **options: disk.resize_blob(16 * PAGE, **options)),
        (disk, lambda **options: disk.set_sequence_number("increment", **options)),
    ):
        lease = await blob.acquire_lease()
        with rejected(HttpResponseError, 412, "LeaseIdMissing"):
            await call()
        await call(lease=lease)
        await lease.release()


async def test_more_than_4_mib_of_pages_are_rejected(container):
    disk = container.within("large")
    await disk.create_page_blob(8 * 1024 * 1024)
    size = 4 * 1024 * 1024
    await disk.upload_page(b"x" * size, PAGE, size)
    with rejected(HttpResponseError, 413, "RequestBodyTooLarge"):
        await disk.upload_page(b"x" * (size + PAGE), 0, size + PAGE)
    await disk.clear_page(0, 8 * 1024 * 1024)
