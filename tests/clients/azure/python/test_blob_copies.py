"""Copies of blobs, from the account and from an address with a signature."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import ContentSettings, StandardBlobTier

from azure_errors import code_of, rejected
from blob_signatures import HOUR, NOW, of_blob

SAME = MatchConditions.IfNotModified
SETTINGS = {"content_type": "text/plain", "cache_control": "no-cache"}


@pytest.fixture
async def source(container):
    """A blob to copy, with a name that its address has encoded."""
    source = container.within("dir/a b+c é%.txt")
    await source.upload_blob(
        b"hello", metadata={"a": "b"}, tags={"x": "y"}, content_settings=ContentSettings(**SETTINGS)
    )
    return source


def settings_of(properties):
    """The type and the cache control."""
    return {name: getattr(properties.content_settings, name) for name in SETTINGS}


async def test_a_copy_has_what_its_source_has_but_for_tags(source, blob):
    started = await blob.start_copy_from_url(source.url)
    assert started["copy_status"] == "success" and started["copy_id"]
    assert await blob.read() == b"hello"
    got = await blob.get_blob_properties()
    assert (got.metadata, settings_of(got), got.tag_count) == ({"a": "b"}, SETTINGS, None)
    assert (got.copy.id, got.copy.status) == (started["copy_id"], "success")
    assert got.copy.progress == "5/5" and got.copy.completion_time is not None
    assert got.copy.source.startswith(source.url)
    assert (got.etag, got.last_modified) == (started["etag"], started["last_modified"])
    await blob.upload_blob(b"new", overwrite=True)
    assert (await blob.get_blob_properties()).copy.id is None


async def test_a_copy_may_have_metadata_tags_and_a_tier_of_its_own(source, blob):
    await blob.start_copy_from_url(
        source.url,
        metadata={"c": "d"},
        tags={"k": "v"},
        standard_blob_tier=StandardBlobTier.COOL,
    )
    got = await blob.get_blob_properties()
    assert (got.metadata, got.blob_tier) == ({"c": "d"}, "Cool")
    assert await blob.get_blob_tags() == {"k": "v"}


async def test_a_copy_may_have_to_be_complete_when_it_is_answered(source, blob):
    started = await blob.start_copy_from_url(source.url, requires_sync=True, metadata={"c": "d"})
    assert started["copy_status"] == "success"
    assert await blob.read() == b"hello"
    assert (await blob.get_blob_properties()).metadata == {"c": "d"}
    # The tags of the source are an option.
    await blob.start_copy_from_url(source.url, requires_sync=True, tags="COPY")
    assert await blob.get_blob_tags() == {"x": "y"}


async def test_a_copy_replaces_its_destination_under_conditions(source, blob):
    made = await blob.upload_blob(b"old", metadata={"old": "1"})
    missing = {"match_condition": MatchConditions.IfMissing}
    with pytest.raises((ResourceExistsError, ResourceModifiedError)) as raised:
        await blob.start_copy_from_url(source.url, **missing)
    assert (raised.value.status_code, code_of(raised.value)) in [
        (409, "BlobAlreadyExists"),
        (412, "ConditionNotMet"),
    ]
    with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
        await blob.start_copy_from_url(source.url, etag='"0x1"', match_condition=SAME)
    await blob.start_copy_from_url(source.url, etag=made["etag"], match_condition=SAME)
    assert await blob.read() == b"hello"
    assert (await blob.get_blob_properties()).metadata == {"a": "b"}


async def test_the_source_of_a_copy_has_conditions(source, blob):
    etag = (await source.get_blob_properties()).etag
    for condition in (
        {"source_etag": '"0x1"', "source_match_condition": SAME},
        {"source_if_modified_since": NOW + 24 * HOUR},
        {"source_if_unmodified_since": NOW - 24 * HOUR},
    ):
        with rejected(HttpResponseError, 412, "SourceConditionNotMet"):
            await blob.start_copy_from_url(source.url, **condition)
    await blob.start_copy_from_url(source.url, source_etag=etag, source_match_condition=SAME)


async def test_a_lease_protects_the_destination_of_a_copy(source, blob):
    await blob.upload_blob(b"old")
    lease = await blob.acquire_lease()
    with rejected(HttpResponseError, 412, "LeaseIdMissing"):
        await blob.start_copy_from_url(source.url)
    await blob.start_copy_from_url(source.url, destination_lease=lease)
    held = await source.acquire_lease()
    await blob.start_copy_from_url(source.url, destination_lease=lease)
    await held.release()


async def test_copies_of_each_type_are_of_that_type(container):
    log, disk = container.within("log"), container.within("disk")
    await log.create_append_blob()
    await log.append_block(b"x")
    await disk.create_page_blob(1024, sequence_number=7)
    await disk.upload_page(b"x" * 512, 512, 512)
    copies = container.within("log copy"), container.within("disk copy")
    await copies[0].start_copy_from_url(log.url, seal_destination_blob=True)
    await copies[1].start_copy_from_url(disk.url)
    of_log, of_disk = [await copy.get_blob_properties() for copy in copies]
    assert (of_log.blob_type, of_log.is_append_blob_sealed) == ("AppendBlob", True)
    assert (of_disk.blob_type, of_disk.page_blob_sequence_number) == ("PageBlob", 7)
    assert await copies[1].read() == bytes(512) + b"x" * 512
    with rejected(ResourceExistsError, 409, "InvalidBlobType"):
        await copies[0].start_copy_from_url(disk.url)


async def test_a_copy_that_is_complete_is_not_aborted(source, blob):
    started = await blob.start_copy_from_url(source.url)
    with rejected(ResourceExistsError, 409, "NoPendingCopyOperation"):
        await blob.abort_copy(started)
    with rejected(ResourceExistsError, 409, "NoPendingCopyOperation"):
        await blob.abort_copy(await blob.get_blob_properties())


async def test_a_missing_source_is_reported(container, blob):
    for url in (container.within("missing").url, f"{container.url}-missing/blob"):
        with pytest.raises(ResourceNotFoundError) as raised:
            await blob.start_copy_from_url(url)
        assert raised.value.status_code == 404
    assert not await blob.exists()


async def test_a_source_of_another_server_is_rejected(blob):
    with pytest.raises(HttpResponseError) as raised:
        await blob.start_copy_from_url("http://127.0.0.1:1/other/container/blob")
    assert (raised.value.status_code, code_of(raised.value)) in [
        (400, "CannotVerifyCopySource"),
        (400, "CopyAcrossAccountsNotSupported"),
        (403, "CannotVerifyCopySource"),
        (404, "CannotVerifyCopySource"),
    ]
    assert not await blob.exists()


async def test_a_blob_is_written_from_an_address(container, source, blob):
    url = f"{source.url}?{of_blob(container.container_name, source.blob_name, 'r')}"
    await blob.upload_blob_from_url(url, metadata={"c": "d"}, tags={"k": "v"})
    assert await blob.read() == b"hello"
    got = await blob.get_blob_properties()
    assert (got.metadata, settings_of(got)) == ({"c": "d"}, SETTINGS)
    assert await blob.get_blob_tags() == {"k": "v"}
    with rejected(ResourceExistsError, 409, "BlobAlreadyExists"):
        await blob.upload_blob_from_url(url)
    cool = StandardBlobTier.COOL
    await blob.upload_blob_from_url(source.url, overwrite=True, standard_blob_tier=cool)
    assert (await blob.get_blob_properties()).blob_tier == "Cool"


async def test_the_source_of_a_write_has_conditions(source, blob):
    with rejected(HttpResponseError, 412, "SourceConditionNotMet"):
        await blob.upload_blob_from_url(
            source.url, source_etag='"0x1"', source_match_condition=SAME
        )
    with rejected(ResourceNotFoundError, 404, "BlobNotFound", "CannotVerifyCopySource"):
        await blob.upload_blob_from_url(f"{source.url}-missing")
    assert not await blob.exists()


async def test_a_source_that_the_caller_may_not_read_is_no_source(clients, source, blob):
    name = source.container_name
    signed = clients.blob(name, "blob", of_blob(name, "blob"))
    for url in (source.url, f"{source.url}?{of_blob(name, source.blob_name, 'd')}"):
        with pytest.raises(HttpResponseError) as raised:
            await signed.start_copy_from_url(url)
        assert raised.value.status_code in (401, 403, 404)
    assert not await blob.exists()
