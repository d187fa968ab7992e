"""One entity: inserted, read, updated, merged, replaced, deleted, under conditions."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import UpdateMode

from azure_errors import rejected

KEYS = {"PartitionKey": "p", "RowKey": "r"}


def same(etag):
    """The condition that an entity still has `etag`."""
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


async def test_an_insert_returns_the_etag_of_the_entity(table):
    made = await table.create_entity({**KEYS, "x": 1})
    entity = await table.get_entity("p", "r")
    assert entity == {**KEYS, "x": 1}
    assert made["etag"] == entity.metadata["etag"]
    assert entity.metadata["etag"].startswith("W/\"datetime'")
    assert entity.metadata["timestamp"] is not None


async def test_a_second_insert_of_a_key_is_a_conflict(table):
    await table.create_entity(KEYS)
    with rejected(ResourceExistsError, 409, "EntityAlreadyExists"):
        await table.create_entity(KEYS)


@pytest.mark.parametrize("mode", [UpdateMode.MERGE, UpdateMode.REPLACE])
async def test_an_update_merges_or_replaces(table, mode):
    made = await table.create_entity({**KEYS, "kept": 1, "changed": 1})
    updated = await table.update_entity({**KEYS, "changed": 2}, mode=mode)
    entity = await table.get_entity("p", "r")
    kept = {"kept": 1} if mode == UpdateMode.MERGE else {}
    assert entity == {**KEYS, **kept, "changed": 2}
    assert updated["etag"] == entity.metadata["etag"] != made["etag"]


@pytest.mark.parametrize("mode", [UpdateMode.MERGE, UpdateMode.REPLACE])
async def test_an_update_of_a_missing_entity_is_not_found(table, mode):
    with rejected(ResourceNotFoundError, 404, "ResourceNotFound"):
        await table.update_entity(KEYS, mode=mode)


@pytest.mark.parametrize("mode", [UpdateMode.MERGE, UpdateMode.REPLACE])
async def test_an_upsert_inserts_and_then_merges_or_replaces(table, mode):
    await table.upsert_entity({**KEYS, "kept": 1}, mode=mode)
    assert await table.get_entity("p", "r") == {**KEYS, "kept": 1}
    upserted = await table.upsert_entity({**KEYS, "more": 2}, mode=mode)
    entity = await table.get_entity("p", "r")
    kept = {"kept": 1} if mode == UpdateMode.MERGE else {}
    assert entity == {**KEYS, **kept, "more": 2}
    assert upserted["etag"] == entity.metadata["etag"]


@pytest.mark.parametrize("mode", [UpdateMode.MERGE, UpdateMode.REPLACE])
async def test_an_update_with_a_stale_etag_is_rejected(table, mode):
    made = await table.create_entity({**KEYS, "x": 1})
    changed = await table.update_entity({**KEYS, "x": 2}, mode=mode, **same(made["etag"]))
    with rejected(ResourceModifiedError, 412, "UpdateConditionNotSatisfied"):
        await table.update_entity({**KEYS, "x": 3}, mode=mode, **same(made["etag"]))
    entity = await table.get_entity("p", "r")
    assert entity["x"] == 2 and entity.metadata["etag"] == changed["etag"]


async def test_a_conditional_update_of_a_missing_entity_is_not_found(table):
    made = await table.create_entity(KEYS)
    await table.delete_entity("p", "r")
    with rejected(ResourceNotFoundError, 404, "ResourceNotFound"):
        await table.update_entity(KEYS, **same(made["etag"]))


async def test_an_empty_merge_returns_a_new_etag(table):
    made = await table.create_entity({**KEYS, "x": 1})
    merged = await table.update_entity(KEYS, mode=UpdateMode.MERGE)
    assert merged["etag"] != made["etag"]
    assert await table.get_entity("p", "r") == {**KEYS, "x": 1}


async def test_a_recreated_entity_has_a_new_etag(table):
    etags = set()
    for _ in range(5):
        etags.add((await table.create_entity(KEYS))["etag"])
        await table.delete_entity("p", "r")
    assert len(etags) == 5


async def test_a_delete_with_a_stale_etag_is_rejected(table):
    made = await table.create_entity({**KEYS, "x": 1})
    changed = await table.update_entity({**KEYS, "x": 2})
    with rejected(ResourceModifiedError, 412, "UpdateConditionNotSatisfied"):
        await table.delete_entity(KEYS, **same(made["etag"]))
    await table.delete_entity(KEYS, **same(changed["etag"]))
    with rejected(ResourceNotFoundError, 404, "ResourceNotFound"):
        await table.get_entity("p", "r")


async def test_a_delete_of_a_missing_entity_succeeds(table):
    responses = []
    hook = {"raw_response_hook": lambda answer: responses.append(answer.http_response)}
    await table.delete_entity("p", "r", **hook)
    assert [answer.status_code for answer in responses] == [404]


async def test_a_malformed_etag_is_rejected(table):
    await table.create_entity(KEYS)
    with rejected(HttpResponseError, 400, "InvalidInput"):
        await table.update_entity(KEYS, **same("no etag"))


async def test_every_operation_on_a_missing_table_is_not_found(clients, name):
    table = clients.table(name)
    calls = [
        lambda: table.create_entity(KEYS),
        lambda: table.get_entity("p", "r"),
        lambda: table.update_entity(KEYS),
        lambda: table.upsert_entity(KEYS),
        lambda: table.list_entities(),
        lambda: table.query_entities("PartitionKey eq 'p'"),
        lambda: table.get_table_access_policy(),
        lambda: table.set_table_access_policy({}),
    ]
    for call in calls:
        with rejected(ResourceNotFoundError, 404, "TableNotFound"):
            await call()


@pytest.mark.parametrize(
    "key",
    [
        "it's", "''", "a b", " lead", "100%", "%27", "a+b", "a&b=c", "a,b", "(a)", "ä€", "日本",
        "\U0001f600", "", "a;b", "a:b", "@", "~!*$", '"', "<x>", "a|b^c`{}[]", "\u00a0",
    ],
)
async def test_unusual_keys_are_inserted_read_updated_queried_and_deleted(table, key):
    entity = {"PartitionKey": key, "RowKey": key, "x": 1}
    await table.create_entity(entity)
    assert await table.get_entity(key, key) == entity
    await table.update_entity({**entity, "x": 2})
    await table.upsert_entity({**entity, "x": 3}, mode=UpdateMode.REPLACE)
    expected = {"key": key}
    found = await table.query_entities(
        "PartitionKey eq @key and RowKey eq @key", parameters=expected
    )
    assert [one["x"] for one in found] == [3]
    await table.submit_transaction([("update", {**entity, "x": 4}), ])
    assert (await table.get_entity(key, key))["x"] == 4
    await table.delete_entity(key, key)
    assert await table.list_entities() == []


@pytest.mark.parametrize("key", ["a/b", "a\\b", "a#b", "a?b", "a\tb", "a\u0000b", "a\u0080b"])
async def test_a_key_with_a_forbidden_character_is_rejected(table, key):
    for entity in ({"PartitionKey": key, "RowKey": "r"}, {"PartitionKey": "p", "RowKey": key}):
        with rejected(HttpResponseError, 400, "OutOfRangeInput"):
            await table.create_entity(entity)
    assert await table.list_entities() == []


async def test_an_entity_without_a_key_is_rejected(table):
    for entity in ({"PartitionKey": "p"}, {"RowKey": "r"}):
        with pytest.raises(ValueError, match="must be present"):
            await table.create_entity(entity)


async def test_the_size_of_a_key_is_limited(table):
    long = "k" * 512
    await table.create_entity({"PartitionKey": long, "RowKey": long})
    assert (await table.get_entity(long, long))["RowKey"] == long
    with rejected(HttpResponseError, 400, "PropertyValueTooLarge"):
        await table.create_entity({"PartitionKey": "p", "RowKey": "k" * 1025})


async def test_252_properties_fit_and_253_do_not(table):
    entity = {**KEYS, **{f"p{number}": number for number in range(252)}}
    await table.create_entity(entity)
    assert await table.get_entity("p", "r") == entity
    with rejected(HttpResponseError, 400, "TooManyProperties"):
        await table.upsert_entity({**KEYS, **{f"q{number}": number for number in range(253)}})
    with rejected(HttpResponseError, 400, "TooManyProperties"):
        await table.update_entity({**KEYS, "one_more": 1}, mode=UpdateMode.MERGE)


async def test_a_property_of_64_kib_fits_and_a_larger_one_does_not(table):
    fits = {"text": "x" * 32768, "bytes": b"x" * 65536}
    await table.create_entity({**KEYS, **fits})
    assert await table.get_entity("p", "r") == {**KEYS, **fits}
    for large in ("x" * 32769, b"x" * 65537):
        with rejected(HttpResponseError, 400, "PropertyValueTooLarge"):
            await table.upsert_entity({**KEYS, "large": large})


async def test_an_entity_of_a_mebibyte_is_rejected_also_by_a_merge(table):
    half = {f"a{number}": b"x" * 65000 for number in range(8)}
    await table.create_entity({**KEYS, **half})
    other = {f"b{number}": b"x" * 65000 for number in range(9)}
    for call in (
        lambda: table.update_entity({**KEYS, **other}, mode=UpdateMode.MERGE),
        lambda: table.create_entity({"PartitionKey": "p", "RowKey": "s", **half, **other}),
    ):
        with rejected(HttpResponseError, 400, "EntityTooLarge"):
            await call()
    assert await table.get_entity("p", "r") == {**KEYS, **half}


@pytest.mark.parametrize("bad", ["a-b", "1a", "a b", ""])
async def test_a_property_with_a_wrong_name_is_rejected(table, bad):
    with rejected(HttpResponseError, 400, "PropertyNameInvalid"):
        await table.create_entity({**KEYS, bad: 1})


async def test_a_property_name_of_255_characters_fits_and_a_longer_one_does_not(table):
    await table.create_entity({**KEYS, "n" * 255: 1, "Ünï_Code": 2})
    assert await table.get_entity("p", "r") == {**KEYS, "n" * 255: 1, "Ünï_Code": 2}
    with rejected(HttpResponseError, 400, "PropertyNameTooLong"):
        await table.upsert_entity({**KEYS, "n" * 256: 1})
