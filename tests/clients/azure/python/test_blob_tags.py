"""Tags and access tiers of blobs."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError
from azure.storage.blob import BlobType, RehydratePriority, StandardBlobTier

from azure_errors import code_of, rejected
from blob_signatures import HOUR, NOW


async def test_tags_are_replaced_whole_and_keep_the_etag(blob):
    made = await blob.upload_blob(b"x", tags={"first": "1"})
    assert await blob.get_blob_tags() == {"first": "1"}
    tags = {"a b": "+-./:=_ ", "empty": "", "Case": "Kept"}
    await blob.set_blob_tags(tags)
    assert await blob.get_blob_tags() == tags
    got = await blob.get_blob_properties()
    assert (got.tag_count, got.etag) == (3, made["etag"])
    await blob.set_blob_tags()
    assert await blob.get_blob_tags() == {}
    assert (await blob.get_blob_properties()).tag_count is None


async def test_tags_are_set_and_read_by_conditions_on_the_blob(blob):
    made = await blob.upload_blob(b"x")
    same = {"etag": made["etag"], "match_condition": MatchConditions.IfNotModified}
    other = {"etag": '"0x8D0000000000001"', "match_condition": MatchConditions.IfNotModified}
    await blob.set_blob_tags({"a": "1"}, **same)
    with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
        await blob.set_blob_tags({"a": "2"}, **other)
    assert await blob.get_blob_tags(**same) == {"a": "1"}
    with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
        await blob.get_blob_tags(if_unmodified_since=NOW - 24 * HOUR)


@pytest.mark.parametrize(
    "tags",
    [
        {f"t{number}": "x" for number in range(11)},
        {"": "x"},
        {"k" * 129: "x"},
        {"k": "x" * 257},
        {"k!": "x"},
        {"k": "ä"},
    ],
)
async def test_wrong_tags_are_rejected(blob, tags):
    await blob.upload_blob(b"x", tags={"kept": "1"})
    codes = ("InvalidTag", "InvalidTags", "EmptyTagName", "TagsTooLarge", "InvalidXmlDocument")
    with rejected(HttpResponseError, 400, *codes):
        await blob.set_blob_tags(tags)
    if all(tags):
        with rejected(HttpResponseError, 400, *codes):
            await blob.upload_blob(b"y", overwrite=True, tags=tags)
    assert await blob.get_blob_tags() == {"kept": "1"} and await blob.read() == b"x"


async def test_the_most_tags_fit(blob):
    await blob.upload_blob(b"x")
    tags = {f"{number}" * 128: "v" * 256 for number in range(10)}
    await blob.set_blob_tags(tags, validate_content=True)
    assert await blob.get_blob_tags() == tags


async def test_tags_are_conditions(blob):
    await blob.upload_blob(b"x", tags={"state": "open"})
    is_open, is_shut = "\"state\" = 'open'", "\"state\" = 'shut'"
    for call in (
        blob.download_blob,
        blob.get_blob_properties,
        blob.get_blob_tags,
        lambda **options: blob.set_blob_tags({"state": "open"}, **options),
        lambda **options: blob.set_blob_metadata({"a": "b"}, **options),
        lambda **options: blob.set_standard_blob_tier("Cool", **options),
        lambda **options: blob.upload_blob(b"y", overwrite=True, **options),
    ):
        with rejected(ResourceModifiedError, 412, "ConditionNotMet"):
            await call(if_tags_match_condition=is_shut)
    await blob.set_blob_tags({"state": "shut"}, if_tags_match_condition=is_open)
    await blob.delete_blob(if_tags_match_condition=is_shut)


async def test_tags_of_other_types_are_set(container):
    log, disk = container.within("log"), container.within("disk")
    await log.create_append_blob(tags={"a": "b"})
    await disk.create_page_blob(512)
    for blob in (log, disk):
        await blob.set_blob_tags({"c": "d"})
        assert await blob.get_blob_tags() == {"c": "d"}


async def test_a_tier_is_set_and_kept(blob):
    made = await blob.upload_blob(b"x", standard_blob_tier=StandardBlobTier.COOL)
    got = await blob.get_blob_properties()
    assert (got.blob_tier, got.blob_tier_inferred) == ("Cool", None)
    for tier in (StandardBlobTier.HOT, StandardBlobTier.COLD, "Cool"):
        await blob.set_standard_blob_tier(tier)
        got = await blob.get_blob_properties()
        assert got.blob_tier == getattr(tier, "value", tier) and got.etag == made["etag"]
    assert got.blob_tier_change_time is not None
    await blob.upload_blob(b"y", overwrite=True)
    assert (await blob.get_blob_properties()).blob_tier == "Cool"


async def test_an_archived_blob_is_not_read_or_written(container, blob):
    await blob.upload_blob(b"x")
    await blob.set_standard_blob_tier(StandardBlobTier.ARCHIVE)
    assert (await blob.get_blob_properties()).blob_tier == "Archive"
    for call in (
        blob.download_blob,
        lambda: blob.upload_blob(b"y", overwrite=True),
        lambda: blob.commit_block_list([]),
        blob.create_snapshot,
    ):
        with rejected(ResourceExistsError, 409, "BlobArchived"):
            await call()
    await blob.set_blob_tags({"a": "b"})
    assert [one.blob_tier for one in await container.list_blobs()] == ["Archive"]
    high = RehydratePriority.HIGH
    await blob.set_standard_blob_tier(StandardBlobTier.HOT, rehydrate_priority=high)
    assert await blob.read() == b"x"


async def test_wrong_tiers_are_rejected(container, blob):
    await blob.upload_blob(b"x")
    with rejected(HttpResponseError, 400, "InvalidHeaderValue", "InvalidBlobTier"):
        await blob.set_standard_blob_tier("Lukewarm")
    log = container.within("log")
    await log.upload_blob(b"x", blob_type=BlobType.AppendBlob)
    with rejected(ResourceExistsError, 409, "InvalidBlobType"):
        await log.set_standard_blob_tier(StandardBlobTier.COOL)


async def test_the_time_of_a_tier_is_a_condition_to_delete(blob):
    await blob.upload_blob(b"x", standard_blob_tier=StandardBlobTier.COOL)
    for condition in (
        {"access_tier_if_modified_since": NOW + 24 * HOUR},
        {"access_tier_if_unmodified_since": NOW - 24 * HOUR},
    ):
        with pytest.raises(HttpResponseError) as raised:
            await blob.delete_blob(**condition)
        assert (raised.value.status_code, code_of(raised.value)) in [
            (412, "ConditionNotMet"),
            (400, "UnsupportedHeader"),
        ]
    assert await blob.exists()
