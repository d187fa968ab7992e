"""Lists of blobs: by prefix, by delimiter, page by page; blobs found by their tags."""

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobType, ContentSettings, StandardBlobTier

from azure_errors import rejected

NAMES = ["B", "a", "a/b", "a/c/d", "ab", "z", "é"]


@pytest.fixture
async def filled(container):
    """A container with a blob of each name, made in another order."""
    for name in reversed(NAMES):
        await container.upload_blob(name, name.encode(), metadata={"is": "here"})
    return container


def names(found):
    """The names in a list."""
    return [one.name for one in found]


async def test_blobs_are_listed_in_the_order_of_their_names(filled):
    assert names(await filled.list_blobs()) == NAMES
    assert await filled.list_blob_names() == NAMES
    assert names(await filled.list_blobs(name_starts_with="a")) == ["a", "a/b", "a/c/d", "ab"]
    assert await filled.list_blob_names(name_starts_with="a/") == ["a/b", "a/c/d"]
    assert await filled.list_blobs(name_starts_with="none") == []


async def test_blobs_are_listed_page_by_page(filled):
    pages = await filled.pages("list_blobs", results_per_page=3)
    assert [names(page) for page in pages] == [NAMES[:3], NAMES[3:6], NAMES[6:]]
    first, token = await filled.page("list_blobs", results_per_page=2)
    rest, end = await filled.page("list_blobs", token=token)
    assert names(first + rest) == NAMES and not end
    of_names = await filled.pages("list_blob_names", results_per_page=4)
    assert of_names == [NAMES[:4], NAMES[4:]]


async def test_a_page_goes_on_where_the_last_one_ended(filled):
    first, token = await filled.page("list_blobs", results_per_page=3)
    await filled.upload_blob("0", b"before")
    await filled.delete_blob("B")
    await filled.upload_blob("aa", b"after")
    rest, _ = await filled.page("list_blobs", token=token)
    assert names(rest) == ["a/c/d", "aa", "ab", "z", "é"]


@pytest.mark.parametrize("results", [0, -1])
async def test_the_page_size_of_blobs_is_limited(container, results):
    with rejected(HttpResponseError, 400, "OutOfRangeQueryParameterValue"):
        await container.pages("list_blobs", results_per_page=results)


async def test_blobs_may_be_listed_from_a_name(filled):
    assert names(await filled.list_blobs(start_from="a/c")) == ["a/c/d", "ab", "z", "é"]
    assert await filled.list_blob_names(start_from="a/c/d") == ["a/c/d", "ab", "z", "é"]


async def test_a_delimiter_makes_one_item_of_what_is_below(filled):
    found = await filled.walk_blobs()
    # The library puts the prefixes of a page first; the service has them in the order of names.
    assert names(found) == ["a/", "B", "a", "ab", "z", "é"]
    assert [type(one).__name__ == "BlobPrefix" for one in found] == [True] + [False] * 5
    assert names(await filled.walk_blobs(name_starts_with="a/")) == ["a/c/", "a/b"]
    of_b = await filled.walk_blobs(delimiter="b")
    assert names(of_b) == ["a/b", "ab", "B", "a", "a/c/d", "z", "é"]
    pages = await filled.pages("walk_blobs", results_per_page=1)
    assert [names(page) for page in pages] == [["B"], ["a"], ["a/"], ["ab"], ["z"], ["é"]]


async def test_a_prefix_is_walked_into(filled):
    prefix = (await filled.walk_blobs())[0]
    if hasattr(prefix, "__aiter__"):
        assert names([one async for one in prefix]) == ["a/c/", "a/b"]
    else:
        assert names(prefix) == ["a/c/", "a/b"]


async def test_a_listed_blob_has_its_properties(container, blob):
    settings = ContentSettings(
        "text/plain", "identity", "en", content_disposition="inline", cache_control="no-cache"
    )
    await blob.upload_blob(
        b"x", content_settings=settings, standard_blob_tier=StandardBlobTier.COOL, tags={"k": "v"}
    )
    lease = await blob.acquire_lease()
    got = await blob.get_blob_properties()
    (listed,) = await container.list_blobs()
    assert listed.etag.strip('"') == got.etag.strip('"')
    assert (listed.name, listed.container, listed.size) == ("blob", container.container_name, 1)
    for field in ("last_modified", "creation_time", "blob_type", "blob_tier", "tag_count"):
        assert getattr(listed, field) == getattr(got, field), field
    assert (listed.server_encrypted, listed.deleted, listed.snapshot) == (True, None, None)
    for field in ("status", "state", "duration"):
        assert getattr(listed.lease, field) == getattr(got.lease, field), field
    for field in vars(settings):
        kept = getattr(listed.content_settings, field)
        assert kept == getattr(got.content_settings, field), field
    await lease.release()


async def test_a_list_has_what_it_includes_and_no_more(container, blob):
    await blob.upload_blob(b"x", metadata={"Owner": "a b"}, tags={"k": "v w"})
    copy = container.within("copy")
    await copy.start_copy_from_url(blob.url)
    plain = await container.list_blobs()
    assert [one.metadata for one in plain] == [{}, {}]
    assert [one.tags for one in plain] == [None, None]
    assert [one.copy.id for one in plain] == [None, None]
    first, second = await container.list_blobs(include=["metadata", "tags", "copy"])
    assert (first.metadata, first.tags, first.copy.id) == ({"Owner": "a b"}, {"k": "v w"}, None)
    assert (second.metadata, second.tags) == ({"Owner": "a b"}, None)
    assert (second.copy.status, second.copy.progress) == ("success", "1/1")
    assert second.copy.source.startswith(blob.url)


async def test_blobs_of_each_type_are_listed_with_their_properties(container):
    log, disk = container.within("log"), container.within("disk")
    await log.create_append_blob()
    await log.seal_append_blob()
    await disk.create_page_blob(512, sequence_number=7)
    listed = {one.name: one for one in await container.list_blobs()}
    assert (listed["log"].blob_type, listed["log"].is_append_blob_sealed) == ("AppendBlob", True)
    assert listed["disk"].blob_type == BlobType.PageBlob
    assert listed["disk"].page_blob_sequence_number == 7


async def test_snapshots_are_listed_before_their_blob(container, blob):
    await blob.upload_blob(b"1")
    created = [(await blob.create_snapshot())["snapshot"] for _ in range(2)]
    await container.upload_blob("after", b"2")
    listed = await container.list_blobs(include=["snapshots"])
    assert [(one.name, one.snapshot) for one in listed] == [
        ("after", None),
        ("blob", created[0]),
        ("blob", created[1]),
        ("blob", None),
    ]
    pages = await container.pages("list_blobs", include=["snapshots"], results_per_page=1)
    assert [one.snapshot for page in pages for one in page] == [None, *created, None]
    with rejected(HttpResponseError, 400, "InvalidQueryParameterValue"):
        await container.walk_blobs(include=["snapshots"])


async def test_every_dataset_may_be_included(filled):
    everything = [
        "snapshots", "metadata", "uncommittedblobs", "copy", "deleted", "deletedwithversions",
        "tags", "versions", "immutabilitypolicy", "legalhold",
    ]
    listed = await filled.list_blobs(include=everything)
    assert names(listed) == NAMES
    assert not any(one.has_legal_hold or one.deleted or one.version_id for one in listed)


async def test_names_that_no_xml_can_hold_are_listed(container):
    hard = ["bell\x07", "bell\x07/below", "\ufffe", "]]>", "&amp;", "%41", " both sides "]
    for name in hard:
        await container.upload_blob(name, b"x")
    assert names(await container.list_blobs()) == sorted(hard, key=str.encode)
    # This method of the library does not decode those that the service had to encode.
    assert set(await container.list_blob_names()) >= {"]]>", "&amp;", "%41", " both sides "}
    assert "bell\x07/" in names(await container.walk_blobs())


async def test_blobs_are_found_by_their_tags(clients, container, name):
    for number, tags in enumerate([{"state": "open"}, {"state": "open", "of": "x"}, {"of": "y"}]):
        await container.upload_blob(f"b{number}", b"x", tags=tags)
    found = await container.find_blobs_by_tags("\"state\" = 'open'")
    assert [(one.name, one.container_name) for one in found] == [("b0", name), ("b1", name)]
    both = await container.find_blobs_by_tags("\"state\" = 'open' AND \"of\" >= 'x'")
    assert [(one.name, one.tags) for one in both] == [("b1", {"state": "open", "of": "x"})]
    assert names(await container.find_blobs_by_tags("\"of\" > 'x' and \"of\" <= 'z'")) == ["b2"]
    pages = await container.pages("find_blobs_by_tags", "\"of\" > 'a'", results_per_page=1)
    assert [names(page) for page in pages if page] == [["b1"], ["b2"]]
    service = clients.blobs()
    everywhere = await service.find_blobs_by_tags(f"@container = '{name}' AND \"of\" < 'y'")
    assert [(one.name, one.container_name) for one in everywhere] == [("b1", name)]
    assert await service.find_blobs_by_tags("\"state\" = 'none'") == []
    with rejected(HttpResponseError, 400, "InvalidQueryParameterValue"):
        await container.find_blobs_by_tags("state is open")
