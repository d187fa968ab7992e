"""Copies of blobs, from the account and from an address with a signature."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import BlobBlock, ContentSettings, StandardBlobTier

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
    # The signature counts, although the key of the caller would be enough.
    sas = of_blob(name, source.blob_name, "r")
    for wrong in (of_blob(name, source.blob_name, "d"), sas.replace("sp=r", "sp=rw")):
        with pytest.raises(HttpResponseError) as raised:
            await blob.start_copy_from_url(f"{source.url}?{wrong}")
        assert raised.value.status_code == 403
    assert not await blob.exists()


async def test_a_token_for_the_source_is_not_supported(source, blob):
    token = {"source_authorization": "Bearer token"}
    for call in (
        lambda: blob.start_copy_from_url(source.url, requires_sync=True, **token),
        lambda: blob.upload_blob_from_url(source.url, **token),
        lambda: blob.stage_block_from_url("a", source.url, **token),
    ):
        with rejected(HttpResponseError, 400, "UnsupportedHeader"):
            await call()
    assert not await blob.exists()


async def test_a_write_from_an_address_may_have_properties_of_its_own(source, blob):
    other = ContentSettings("text/html")
    await blob.upload_blob_from_url(
        source.url, include_source_blob_properties=False, content_settings=other
    )
    got = await blob.get_blob_properties()
    assert settings_of(got) == {"content_type": "text/html", "cache_control": None}


async def test_the_source_of_a_copy_is_verified(source, blob):
    md5 = (await source.get_blob_properties()).content_settings.content_md5
    await blob.upload_blob_from_url(source.url, source_content_md5=md5)
    etag = (await blob.get_blob_properties()).etag
    with rejected(HttpResponseError, 400, "Md5Mismatch"):
        await blob.upload_blob_from_url(
            source.url, overwrite=True, source_content_md5=bytearray(16)
        )
    with rejected(HttpResponseError, 400, "Md5Mismatch"):
        wrong = {"x-ms-source-content-md5": "AAAAAAAAAAAAAAAAAAAAAA=="}
        await blob.start_copy_from_url(source.url, requires_sync=True, headers=wrong)
    assert (await blob.get_blob_properties()).etag == etag


async def test_a_write_from_an_address_is_no_copy(source, blob):
    await blob.upload_blob_from_url(source.url)
    got = await blob.get_blob_properties()
    assert (got.copy.id, got.metadata, settings_of(got)) == (None, {}, SETTINGS)


async def test_the_signature_of_the_source_permits_to_read_it(clients, container, source, blob):
    name = source.container_name
    signed = clients.blob(name, "blob", of_blob(name, "blob"))
    url = f"{source.url}?{of_blob(name, source.blob_name, 'r')}"
    await signed.start_copy_from_url(url)
    assert await blob.read() == b"hello"
    await signed.start_copy_from_url(url, requires_sync=True)
    await signed.upload_blob_from_url(url, overwrite=True)
    await signed.stage_block_from_url("a", url)
    await signed.commit_block_list([BlobBlock("a")])
    assert await blob.read() == b"hello"
    log, disk = container.within("log"), container.within("disk")
    await log.create_append_blob()
    await disk.create_page_blob(512)
    await container.upload_blob("page", b"x" * 512)
    await clients.blob(name, "log", of_blob(name, "log")).append_block_from_url(url)
    page = f"{container.within('page').url}?{of_blob(name, 'page', 'r')}"
    signed_disk = clients.blob(name, "disk", of_blob(name, "disk"))
    await signed_disk.upload_pages_from_url(page, 0, 512, 0)
    assert (await log.read(), await disk.read()) == (b"hello", b"x" * 512)
