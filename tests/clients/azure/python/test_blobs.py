"""Blobs: uploaded, read, described, changed, deleted."""

import hashlib
import io

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import ContentSettings

from azure_errors import rejected
from blob_signatures import HOUR, NOW, of_blob

LONG_AGO = NOW - 24 * HOUR
LATER = NOW + 24 * HOUR
NAMES = [
    "plain", "with space", "a/b/c", "a//b", ".dot", "é ß 日本", "\U0001f600", "per%cent",
    "plus+sign", "q?uestion", "hash#", "amp&ersand", "quote'\"", "<tag>", "back\\slash", "semi;colon",
    "a:b", "~tilde", "UPPER", "x" * 1024,
]
SAME = MatchConditions.IfNotModified
OTHER = MatchConditions.IfModified
SETTINGS = {
    "content_type": "text/plain",
    "content_encoding": "identity",
    "content_language": "en",
    "content_disposition": "attachment",
    "cache_control": "max-age=5",
}


def settings_of(properties):
    """The HTTP properties that are set."""
    kept = properties.content_settings
    return {name: getattr(kept, name) for name in SETTINGS if getattr(kept, name) is not None}


def md5_of(data):
    """The MD5 of some bytes, as the library has it."""
    return bytearray(hashlib.md5(data).digest())


async def test_a_blob_is_uploaded_read_and_deleted(container, blob):
    assert not await blob.exists()
    made = await blob.upload_blob(b"hello world")
    assert bytes(made["content_md5"]) == md5_of(b"hello world")
    assert await blob.exists() and await blob.read() == b"hello world"
    got = await blob.get_blob_properties()
    assert (got.etag, got.last_modified) == (made["etag"], made["last_modified"])
    await blob.delete_blob()
    assert not await blob.exists()
    with rejected(ResourceNotFoundError, 404, "BlobNotFound"):
        await blob.delete_blob()


async def test_a_container_writes_reads_and_deletes_its_blobs(container):
    made = await container.upload_blob("a/b", b"one", metadata={"k": "v"})
    assert made.blob_name == "a/b"
    with rejected(ResourceExistsError, 409, "BlobAlreadyExists"):
        await container.upload_blob("a/b", b"two")
    assert await container.read("a/b") == b"one"
    await container.delete_blob("a/b")
    with rejected(ResourceNotFoundError, 404, "BlobNotFound"):
        await container.download_blob("a/b")


async def test_a_new_blob_has_the_properties_of_its_upload(blob):
    settings = ContentSettings(**SETTINGS)
    await blob.upload_blob(
        b"x", metadata={"Owner": "a b"}, tags={"k": "v w"}, content_settings=settings
    )
    got = await blob.get_blob_properties()
    read = (await blob.download_blob()).properties
    for one in (got, read):
        assert settings_of(one) == SETTINGS
        assert one.content_settings.content_md5 == md5_of(b"x")
        assert (one.metadata, one.tag_count, one.size) == ({"Owner": "a b"}, 1, 1)
        assert (one.blob_type, one.server_encrypted) == ("BlockBlob", True)
        assert (one.lease.status, one.lease.state, one.lease.duration) == (
            "unlocked",
            "available",
            None,
        )
        assert one.etag == got.etag and one.creation_time == got.creation_time
        assert one.copy.id is None and one.snapshot is None
    assert (got.blob_tier, got.blob_tier_inferred) == ("Hot", True)
    assert (got.name, got.container) == ("blob", blob.container_name)


async def test_an_upload_replaces_a_blob_whole_if_it_may(blob):
    settings = ContentSettings(**SETTINGS)
    first = await blob.upload_blob(
        b"one", metadata={"a": "b"}, tags={"a": "b"}, content_settings=settings
    )
    with rejected(ResourceExistsError, 409, "BlobAlreadyExists"):
        await blob.upload_blob(b"two")
    assert await blob.read() == b"one"
    second = await blob.upload_blob(b"two", overwrite=True)
    assert second["etag"] != first["etag"]
    got = await blob.get_blob_properties()
    assert (got.metadata, got.tag_count, got.size) == ({}, None, 3)
    assert settings_of(got) == {"content_type": "application/octet-stream"}


@pytest.mark.parametrize("text", [*NAMES, "trailing/"])
async def test_any_name_of_a_blob_survives_a_round_trip(container, text):
    blob = container.within(text)
    await blob.upload_blob(text.encode())
    assert await blob.read() == text.encode()
    assert [one.name for one in await container.list_blobs()] == [text]
    assert await container.list_blob_names() == [text]
    await blob.delete_blob()
    assert await container.list_blobs() == []


@pytest.mark.parametrize("text", NAMES)
async def test_a_blob_of_any_name_is_signed_and_copied(clients, container, blob, name, text):
    await container.upload_blob(text, b"right")
    signed = clients.blob(name, text, of_blob(name, text, "r"))
    assert await signed.read() == b"right"
    await blob.start_copy_from_url(container.within(text).url)
    assert await blob.read() == b"right"
    await container.delete_blobs(text)
    assert not await signed.exists()


async def test_a_name_that_is_too_long_is_rejected(container):
    with rejected(HttpResponseError, 400, "InvalidUri", "InvalidResourceName", "OutOfRangeInput"):
        await container.within("x" * 1025).upload_blob(b"")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: b"", b""),
        (lambda: b"x", b"x"),
        (lambda: "text ä", "text ä".encode()),
        (lambda: io.BytesIO(b"a stream"), b"a stream"),
        (lambda: iter([b"a", b"b"]), b"ab"),
    ],
)
async def test_data_of_any_form_is_uploaded(blob, make, expected):
    await blob.upload_blob(make())
    assert await blob.read() == expected


async def test_a_range_of_a_blob_is_read(blob):
    await blob.upload_blob(b"0123456789")
    for offset, length, expected in [
        (0, 1, b"0"), (2, 3, b"234"), (9, 1, b"9"), (5, None, b"56789"), (8, 100, b"89"),
        (0, 10, b"0123456789"),
    ]:
        assert await blob.read(offset=offset, length=length) == expected
    got = (await blob.download_blob(offset=2, length=3)).properties
    assert (got.size, got.content_range) == (3, "bytes 2-4/10")
    # The stored MD5 is that of the whole blob.
    assert got.content_settings.content_md5 == md5_of(b"0123456789")


@pytest.mark.parametrize(("data", "offset"), [(b"01234", 5), (b"01234", 99), (b"", 1)])
async def test_a_range_after_the_end_is_rejected(blob, data, offset):
    await blob.upload_blob(data)
    with rejected(HttpResponseError, 416, "InvalidRange") as raised:
        await blob.download_blob(offset=offset, length=10)
    assert raised.value.response.headers["Content-Range"] == f"bytes */{len(data)}"


async def test_an_empty_blob_is_read(blob):
    await blob.upload_blob(b"")
    assert await blob.read() == b""
    assert (await blob.get_blob_properties()).size == 0


async def test_checksums_are_verified_at_both_ends(blob):
    await blob.upload_blob(b"0123456789", validate_content=True)
    assert await blob.read(validate_content=True) == b"0123456789"
    assert await blob.read(offset=2, length=3, validate_content=True) == b"234"
    wrong = {"headers": {"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}}
    with rejected(HttpResponseError, 400, "Md5Mismatch"):
        await blob.upload_blob(b"x", overwrite=True, **wrong)
    with rejected(HttpResponseError, 400, "InvalidMd5"):
        await blob.upload_blob(b"x", overwrite=True, headers={"Content-MD5": "AAAA"})
    with rejected(HttpResponseError, 400, "Crc64Mismatch"):
        await blob.upload_blob(b"x", overwrite=True, headers={"x-ms-content-crc64": "AAAAAAAAAAA="})
    both = {**wrong["headers"], "x-ms-content-crc64": "vo7q9sPVKY0="}
    with rejected(HttpResponseError, 400, "BothCrc64AndMd5HeaderPresent"):
        await blob.upload_blob(b"x", overwrite=True, headers=both)
    assert await blob.read() == b"0123456789"
    await blob.upload_blob(
        b"hello world", overwrite=True, headers={"x-ms-content-crc64": "vo7q9sPVKY0="}
    )


async def test_a_large_blob_is_read_in_parts(clients, container, name):
    data = bytes(number % 251 for number in range(3_000_000))
    small = 256 * 1024
    parts = clients.blob(name, "large", max_single_get_size=small, max_chunk_get_size=small)
    await parts.upload_blob(data)
    assert await parts.read(max_concurrency=4) == data
    chunks = await (await parts.download_blob()).chunks()
    assert b"".join(chunks) == data and len(chunks) > 1
    into = io.BytesIO()
    assert await (await parts.download_blob(offset=1000)).readinto(into) == len(data) - 1000
    assert into.getvalue() == data[1000:]


async def test_a_read_fails_when_the_blob_changes_under_it(clients, container, name):
    parts = clients.blob(name, "changed", max_single_get_size=1024, max_chunk_get_size=1024)
    await parts.upload_blob(b"a" * 5000)
    reading = await parts.download_blob()
    await parts.upload_blob(b"b" * 5000, overwrite=True)
    with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
        await reading.readall()


async def test_reads_have_conditions(blob):
    first = await blob.upload_blob(b"1")
    second = await blob.upload_blob(b"2", overwrite=True)
    for call in (blob.download_blob, blob.get_blob_properties):
        with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
            await call(etag=first["etag"], match_condition=SAME)
        with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
            await call(if_unmodified_since=LONG_AGO)
        with rejected(ResourceModifiedError, 304, "ConditionNotMet"):
            await call(etag=second["etag"], match_condition=OTHER)
        with rejected(ResourceModifiedError, 304, "ConditionNotMet"):
            await call(if_modified_since=LATER)
        # Either of the two is enough.
        await call(etag=second["etag"], match_condition=OTHER, if_modified_since=LONG_AGO)
        await call(etag=second["etag"], match_condition=SAME, if_unmodified_since=LATER)
        await call(etag=first["etag"], match_condition=OTHER)


async def test_writes_have_conditions(blob):
    first = await blob.upload_blob(b"1")
    second = await blob.upload_blob(b"2", overwrite=True)
    for condition in (
        {"etag": first["etag"], "match_condition": SAME},
        {"etag": second["etag"], "match_condition": OTHER},
        {"if_modified_since": LATER},
        {"if_unmodified_since": LONG_AGO},
        {"if_tags_match_condition": "\"a\" = 'b'"},
    ):
        for call in (
            lambda **options: blob.upload_blob(b"3", overwrite=True, **options),
            lambda **options: blob.set_blob_metadata({"a": "b"}, **options),
            lambda **options: blob.set_http_headers(ContentSettings("a/b"), **options),
            blob.create_snapshot,
            blob.acquire_lease,
            blob.delete_blob,
        ):
            with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
                await call(**condition)
    assert (await blob.get_blob_properties()).etag == second["etag"]
    await blob.upload_blob(b"3", overwrite=True, etag=second["etag"], match_condition=SAME)
    await blob.delete_blob(match_condition=MatchConditions.IfPresent)


async def test_conditions_that_no_call_can_meet_are_rejected(blob):
    await blob.upload_blob(b"x")
    etag = (await blob.get_blob_properties()).etag
    with rejected(HttpResponseError, 400, "UnsatisfiableCondition"):
        await blob.download_blob(match_condition=MatchConditions.IfMissing)
    several = {"If-Match": f'"0x1", {etag}'}
    await blob.get_blob_properties(headers=several)
    both = {"If-Match": etag, "If-None-Match": '"0x1"'}
    for headers in (several, both):
        with rejected(HttpResponseError, 400, "MultipleConditionHeadersNotSupported"):
            await blob.set_blob_metadata({"a": "b"}, headers=headers)


async def test_calls_may_have_a_timeout(container, blob):
    await blob.upload_blob(b"x", timeout=30)
    assert await blob.read(timeout=30) == b"x"
    assert len(await container.list_blobs(timeout=30)) == 1
    await container.delete_blobs("blob", timeout=30)


async def test_a_write_of_a_missing_blob_has_conditions(blob):
    with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
        await blob.upload_blob(b"1", overwrite=True, etag='"0x1"', match_condition=SAME)
    with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
        await blob.upload_blob(b"1", overwrite=True, match_condition=MatchConditions.IfPresent)
    with rejected(ResourceNotFoundError, 404, "BlobNotFound"):
        await blob.set_blob_metadata({}, etag='"0x1"', match_condition=SAME)
    await blob.upload_blob(b"1", match_condition=MatchConditions.IfMissing)


async def test_metadata_of_a_blob_is_replaced_whole(blob):
    made = await blob.upload_blob(b"x", metadata={"first": "1"})
    changed = await blob.set_blob_metadata({"UPPER": "v", "snake_case": "two words"})
    got = await blob.get_blob_properties()
    assert got.metadata == {"UPPER": "v", "snake_case": "two words"}
    assert got.etag == changed["etag"] != made["etag"]
    await blob.set_blob_metadata()
    assert (await blob.get_blob_properties()).metadata == {}
    with rejected(HttpResponseError, 400, "InvalidMetadata"):
        await blob.set_blob_metadata({"1st": "x"})
    with rejected(HttpResponseError, 400, "MetadataTooLarge"):
        await blob.set_blob_metadata({f"n{number}": "x" * 1024 for number in range(9)})


async def test_http_properties_are_replaced_whole(blob):
    await blob.upload_blob(b"x", content_settings=ContentSettings(**SETTINGS), metadata={"a": "b"})
    changed = await blob.set_http_headers(ContentSettings(content_language="de"))
    got = await blob.get_blob_properties()
    kept = {name: value for name, value in settings_of(got).items() if name != "content_type"}
    assert kept == {"content_language": "de"} and got.content_settings.content_md5 is None
    assert (got.metadata, got.etag) == ({"a": "b"}, changed["etag"])
    await blob.set_http_headers(ContentSettings(**SETTINGS, content_md5=md5_of(b"x")))
    got = await blob.get_blob_properties()
    assert settings_of(got) == SETTINGS and got.content_settings.content_md5 == md5_of(b"x")


async def test_every_operation_on_a_missing_blob_is_not_found(blob):
    for call in (
        blob.download_blob,
        blob.get_blob_properties,
        blob.delete_blob,
        blob.undelete_blob,
        lambda: blob.set_blob_metadata({"a": "b"}),
        lambda: blob.set_http_headers(ContentSettings("a/b")),
        blob.create_snapshot,
        blob.acquire_lease,
        lambda: blob.set_standard_blob_tier("Cool"),
        lambda: blob.set_blob_tags({"a": "b"}),
        blob.get_blob_tags,
        blob.get_block_list,
        blob.list_page_ranges,
        lambda: blob.append_block(b"x"),
        lambda: blob.upload_page(b"x" * 512, 0, 512),
        blob.seal_append_blob,
        lambda: blob.resize_blob(512),
        lambda: blob.abort_copy("7f7f6ff4-3c2b-4d3c-9d0e-54fa0c8d7c4e"),
    ):
        with rejected(ResourceNotFoundError, 404, "BlobNotFound"):
            await call()
    assert not await blob.exists()


async def test_a_blob_keeps_its_type(blob):
    await blob.upload_blob(b"x")
    for call in (
        blob.create_append_blob,
        lambda: blob.create_page_blob(512),
        lambda: blob.append_block(b"x"),
        lambda: blob.upload_page(b"x" * 512, 0, 512),
        blob.seal_append_blob,
        lambda: blob.resize_blob(512),
        blob.list_page_ranges,
    ):
        with rejected(ResourceExistsError, 409, "InvalidBlobType"):
            await call()
    await blob.delete_blob()
    await blob.create_append_blob()
    with rejected(ResourceExistsError, 409, "InvalidBlobType"):
        await blob.upload_blob(b"x", overwrite=True)
    with rejected(ResourceExistsError, 409, "InvalidBlobType"):
        await blob.stage_block("a", b"x")


async def test_a_blob_names_its_account(blob):
    await blob.upload_blob(b"x")
    assert (await blob.get_account_information())["account_kind"] == "StorageV2"


async def test_a_name_that_ends_in_a_slash_is_signed_and_copied(clients, container, blob, name):
    await container.upload_blob("dir/a/", b"right")
    await container.upload_blob("dir/a", b"wrong")
    signed = clients.blob(name, "dir/a/", of_blob(name, "dir/a/", "r"))
    assert await signed.read() == b"right"
    await blob.start_copy_from_url(container.within("dir/a/").url)
    assert await blob.read() == b"right"
    await container.delete_blobs("dir/a/")
    assert await container.list_blob_names() == ["blob", "dir/a"]
