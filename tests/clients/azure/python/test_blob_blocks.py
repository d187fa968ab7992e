"""Block blobs from blocks: staged, committed, listed, copied from an address."""

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
from azure.storage.blob import BlobBlock, ContentSettings, StandardBlobTier

from azure_errors import rejected, rewriting
from blob_signatures import of_blob

SAME = MatchConditions.IfNotModified


def latest(*names):
    """Blocks to commit, staged ones first."""
    return [BlobBlock(name) for name in names]


def as_state(name, state):
    """The option that selects a block by its state: the library writes `Latest` for every state."""
    block = base64.b64encode(name.encode()).decode()
    written = f"<Latest>{block}</Latest>".encode(), f"<{state}>{block}</{state}>".encode()
    return rewriting(written)


async def blocks(blob, kind="all"):
    """The committed and the uncommitted blocks, as names and sizes."""
    lists = await blob.get_block_list(kind)
    return tuple([(block.id, block.size) for block in one] for one in lists)


async def test_staged_blocks_are_a_blob_after_their_commit(blob):
    await blob.stage_block("a1", b"AAA")
    await blob.stage_block("a2", b"BBBB", validate_content=True)
    assert not await blob.exists()
    assert await blocks(blob) == ([], [("a1", 3), ("a2", 4)])
    made = await blob.commit_block_list(latest("a2", "a1"))
    assert await blob.read() == b"BBBBAAA"
    assert await blocks(blob) == ([("a2", 4), ("a1", 3)], [])
    got = await blob.get_blob_properties()
    assert (got.etag, got.size) == (made["etag"], 7)
    # Nothing computes the MD5 of the whole.
    assert got.content_settings.content_md5 is None


async def test_a_commit_has_the_properties_of_the_blob(blob):
    await blob.upload_blob(b"old", metadata={"old": "1"}, tags={"old": "1"})
    await blob.stage_block("a", b"x")
    settings = ContentSettings("text/plain", cache_control="no-cache")
    await blob.commit_block_list(
        latest("a"),
        metadata={"Owner": "a b"},
        tags={"k": "v"},
        content_settings=settings,
        standard_blob_tier=StandardBlobTier.COOL,
        validate_content=True,
    )
    got = await blob.get_blob_properties()
    assert (got.metadata, got.tag_count, got.blob_tier) == ({"Owner": "a b"}, 1, "Cool")
    assert got.content_settings.content_type == "text/plain"
    assert got.content_settings.cache_control == "no-cache"
    await blob.commit_block_list(latest("a"))
    got = await blob.get_blob_properties()
    assert (got.metadata, got.tag_count, got.blob_tier) == ({}, None, "Cool")
    assert got.content_settings.content_type == "application/octet-stream"


async def test_blocks_are_selected_by_their_state(blob):
    for name in ("a", "b"):
        await blob.stage_block(name, b"1")
    await blob.commit_block_list(latest("a", "b"))
    await blob.stage_block("a", b"2")
    assert await blocks(blob) == ([("a", 1), ("b", 1)], [("a", 1)])
    assert await blocks(blob, "committed") == ([("a", 1), ("b", 1)], [])
    assert await blocks(blob, "uncommitted") == ([], [("a", 1)])
    await blob.commit_block_list(latest("a", "b"), **as_state("a", "Committed"))
    assert await blob.read() == b"11"
    # The commit discards what it does not name.
    with rejected(HttpResponseError, 400, "InvalidBlockList"):
        await blob.commit_block_list(latest("a"), **as_state("a", "Uncommitted"))
    await blob.stage_block("a", b"3")
    await blob.commit_block_list(latest("a"), **as_state("a", "Uncommitted"))
    assert await blob.read() == b"3"
    with rejected(HttpResponseError, 400, "InvalidBlockList"):
        await blob.commit_block_list(latest("b"), **as_state("b", "Committed"))


async def test_a_block_may_repeat_and_be_staged_again(blob):
    await blob.stage_block("a", b"old")
    await blob.stage_block("a", b"new")
    await blob.stage_block("b", b"-")
    await blob.commit_block_list(latest("a", "b", "a"))
    assert await blob.read() == b"new-new"
    assert await blocks(blob) == ([("a", 3), ("b", 1), ("a", 3)], [])


async def test_a_commit_of_no_blocks_is_an_empty_blob(blob):
    await blob.commit_block_list([])
    assert await blob.read() == b"" and await blocks(blob) == ([], [])


async def test_a_commit_may_be_the_first_or_conditional(blob):
    await blob.stage_block("a", b"1")
    made = await blob.commit_block_list(latest("a"), match_condition=MatchConditions.IfMissing)
    with rejected(ResourceExistsError, 409, "BlobAlreadyExists"):
        await blob.commit_block_list(latest("a"), match_condition=MatchConditions.IfMissing)
    with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
        await blob.commit_block_list(latest("a"), etag='"0x1"', match_condition=SAME)
    await blob.commit_block_list(latest("a"), etag=made["etag"], match_condition=SAME)


async def test_a_blob_of_blocks_only_is_no_blob(container, blob):
    await blob.stage_block("a", b"x")
    for call in (
        blob.download_blob,
        blob.get_blob_properties,
        lambda: blob.set_blob_metadata({"a": "b"}),
        blob.create_snapshot,
        blob.get_blob_tags,
    ):
        with rejected(ResourceNotFoundError, 404, "BlobNotFound"):
            await call()
    assert await container.list_blobs() == []
    (listed,) = await container.list_blobs(include=["uncommittedblobs"])
    assert (listed.name, listed.size) == ("blob", 0)
    await blob.delete_blob()
    assert await container.list_blobs(include=["uncommittedblobs"]) == []


async def test_an_upload_discards_staged_blocks(blob):
    await blob.stage_block("a", b"x")
    await blob.upload_blob(b"whole")
    assert await blocks(blob) == ([], [])
    with rejected(HttpResponseError, 400, "InvalidBlockList"):
        await blob.commit_block_list(latest("a"))
    assert await blob.read() == b"whole"


async def test_staging_keeps_the_blob_as_it_is(blob):
    made = await blob.upload_blob(b"whole")
    await blob.stage_block("a", b"x")
    got = await blob.get_blob_properties()
    assert (got.etag, got.last_modified) == (made["etag"], made["last_modified"])
    assert await blob.read() == b"whole"


async def test_ids_of_staged_blocks_have_one_length(blob):
    await blob.stage_block("long", b"x")
    with rejected(HttpResponseError, 400, "InvalidBlobOrBlock"):
        await blob.stage_block("longer id", b"x")
    with rejected(HttpResponseError, 400, "InvalidQueryParameterValue"):
        await blob.stage_block("x" * 65, b"x")


async def test_wrong_blocks_are_rejected(blob):
    with rejected(HttpResponseError, 400, "InvalidHeaderValue"):
        await blob.stage_block("a", b"")
    with rejected(HttpResponseError, 400, "Md5Mismatch"):
        wrong = {"Content-MD5": base64.b64encode(b"0" * 16).decode()}
        await blob.stage_block("a", b"x", headers=wrong)
    with rejected(HttpResponseError, 400, "InvalidBlockList"):
        await blob.commit_block_list(latest("missing"))
    with rejected(ResourceNotFoundError, 404, "BlobNotFound"):
        await blob.get_block_list("all")


async def test_blocks_of_snapshots_are_listed(container, blob):
    await blob.stage_block("a", b"x")
    await blob.commit_block_list(latest("a"))
    created = await blob.create_snapshot()
    await blob.upload_blob(b"y", overwrite=True)
    assert await blocks(blob) == ([], [])
    snapshot = container.within("blob", snapshot=created["snapshot"])
    assert await blocks(snapshot, "committed") == ([("a", 1)], [])


async def test_a_block_is_copied_from_an_address(container, blob):
    source = container.within("source")
    made = await source.upload_blob(b"0123456789")
    url = f"{source.url}?{of_blob(container.container_name, 'source', 'r')}"
    await blob.stage_block_from_url("a", url)
    await blob.stage_block_from_url("b", url, source_offset=2, source_length=3)
    assert await blocks(blob) == ([], [("a", 10), ("b", 3)])
    await blob.commit_block_list(latest("b", "a"))
    assert await blob.read() == b"2340123456789"
    md5 = bytearray(base64.b64decode("AAAAAAAAAAAAAAAAAAAAAA=="))
    with rejected(HttpResponseError, 400, "Md5Mismatch"):
        await blob.stage_block_from_url("a", url, source_content_md5=md5)
    assert made["content_md5"]
    await blob.stage_block_from_url("a", url, source_content_md5=made["content_md5"])
    with rejected(ResourceNotFoundError, 404, "BlobNotFound", "CannotVerifyCopySource"):
        await blob.stage_block_from_url("a", container.within("missing").url)


@pytest.mark.parametrize("size", [1024 * 1024 + 1, 5_000_000])
async def test_a_large_blob_is_uploaded_in_blocks(clients, container, size):
    options = {"max_single_put_size": 1024 * 1024, "max_block_size": 1024 * 1024}
    blob = clients.blob(container.container_name, "large", **options)
    data = os.urandom(size)
    seen = []

    async def progress(current, total):
        seen.append((current, total))

    if type(blob.inner).__module__.split(".")[3] == "aio":
        await blob.upload_blob(data, max_concurrency=4, progress_hook=progress)
    else:
        hook = lambda current, total: seen.append((current, total))  # noqa: E731
        await blob.upload_blob(data, max_concurrency=4, progress_hook=hook)
    assert await blob.read(max_concurrency=2) == data
    committed, staged = await blocks(blob)
    assert len(committed) == -(-size // (1024 * 1024)) and staged == []
    assert seen[-1] == (size, size)


async def test_writers_stage_blocks_of_one_blob_at_once(clients, container):
    names = [f"{number:03}" for number in range(24)]

    async def stage(name):
        writer = clients.blob(container.container_name, "shared")
        await writer.stage_block(name, name.encode())

    await asyncio.gather(*map(stage, names))
    shared = container.within("shared")
    await shared.commit_block_list(latest(*names))
    assert await shared.read() == "".join(names).encode()
