"""Queries: filters, projections, pages."""

import datetime
import uuid

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EdmType, EntityProperty

from azure_errors import rejected

UTC = datetime.timezone.utc
ID = uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833")
WHEN = datetime.datetime(2026, 11, 21, 12, 0, 0, 250000, tzinfo=UTC)

ENTITIES = [
    {"PartitionKey": "a", "RowKey": "1", "n": 1, "s": "one", "b": True, "d": 0.5},
    {"PartitionKey": "a", "RowKey": "2", "n": 2, "s": "it's", "b": False, "d": 2.5},
    {"PartitionKey": "b", "RowKey": "1", "big": EntityProperty(2**40, EdmType.INT64), "id": ID},
    {"PartitionKey": "b", "RowKey": "2", "t": WHEN, "raw": b"\x01\xff"},
    {"PartitionKey": "c", "RowKey": "", "n": -3, "s": ""},
]


@pytest.fixture
async def filled(table):
    """A table with an entity for each type that filters compare."""
    for entity in ENTITIES:
        await table.create_entity(entity)
    return table


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("PartitionKey eq 'a'", ["a1", "a2"]),
        ("PartitionKey eq 'a' and RowKey eq '2'", ["a2"]),
        ("PartitionKey gt 'a'", ["b1", "b2", "c"]),
        ("PartitionKey ge 'a' and PartitionKey lt 'b'", ["a1", "a2"]),
        ("RowKey eq ''", ["c"]),
        ("n eq 1", ["a1"]),
        ("n gt 0", ["a1", "a2"]),
        ("n lt 0", ["c"]),
        ("n ne 1", ["a2", "c"]),
        ("s eq 'it''s'", ["a2"]),
        ("s ne ''", ["a1", "a2"]),
        ("b eq true", ["a1"]),
        ("b", ["a1"]),
        ("not (b eq true)", ["a2", "b1", "b2", "c"]),
        ("d ge 0.5 and d lt 2.5", ["a1"]),
        ("d lt 1e1", ["a1", "a2"]),
        ("big eq 1099511627776L", ["b1"]),
        ("big gt 5L", ["b1"]),
        (f"id eq guid'{ID}'", ["b1"]),
        ("t eq datetime'2026-11-21T12:00:00.25Z'", ["b2"]),
        ("t gt datetime'2026-11-21T12:00:00.2499999Z'", ["b2"]),
        ("t gt datetime'2026-11-21T12:00:00.25Z'", []),
        ("raw eq X'01ff'", ["b2"]),
        ("raw eq binary'01ff'", ["b2"]),
        ("raw lt X'02'", ["b2"]),
        ("(PartitionKey eq 'a' or PartitionKey eq 'c') and n lt 2", ["a1", "c"]),
        ("PartitionKey eq 'a' or PartitionKey eq 'b' and RowKey eq '1'", ["a1", "a2", "b1"]),
        ("missing eq 1 or missing ne 1", []),
        ("1 eq n", ["a1"]),
        ("true", ["a1", "a2", "b1", "b2", "c"]),
        ("", ["a1", "a2", "b1", "b2", "c"]),
        ("Timestamp gt datetime'2001-01-01T00:00:00Z'", ["a1", "a2", "b1", "b2", "c"]),
    ],
)
async def test_a_filter_selects_entities(filled, text, found):
    rows = await filled.query_entities(text)
    assert [row["PartitionKey"] + row["RowKey"] for row in rows] == found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("it's", ["a2"]), (1, ["a1"]), (2**40, ["b1"]), (0.5, ["a1"]), (True, ["a1"]),
        (WHEN, ["b2"]), (ID, ["b1"]), (b"\x01\xff", ["b2"]),
    ],
)
async def test_a_filter_takes_parameters_of_each_type(filled, value, found):
    names = {str: "s", int: "n", float: "d", bool: "b", bytes: "raw", uuid.UUID: "id"}
    name = "big" if value == 2**40 else names.get(type(value), "t")
    rows = await filled.query_entities(f"{name} eq @value", parameters={"value": value})
    assert [row["PartitionKey"] + row["RowKey"] for row in rows] == found


@pytest.mark.parametrize(
    "text",
    [
        "aaa bbb ccc", "n eq", "n eq 'a", "(n eq 1", "n eq 1)", "startswith(s, 'o')", "n eq null",
        "n add 1 eq 2", "t eq datetime'soon'", "id eq guid'12'", "raw eq X'0'", "n EQ 1", "1 eq 1",
    ],
)
async def test_a_malformed_filter_is_rejected(filled, text):
    with rejected(HttpResponseError, 400, "InvalidInput"):
        await filled.query_entities(text)


async def test_a_syntax_error_has_its_position(filled):
    with rejected(HttpResponseError, 400, "InvalidInput") as raised:
        await filled.query_entities("aaa bbb ccc")
    assert "Syntax error at position" in raised.value.message
    assert "in 'aaa bbb ccc'." in raised.value.message


async def test_a_projection_returns_only_the_selected_properties(filled):
    rows = await filled.list_entities(select=["PartitionKey", "s"])
    assert rows[0] == {"PartitionKey": "a", "s": "one"}
    assert rows[0].metadata["etag"]
    entity = await filled.get_entity("a", "1", select="s")
    assert entity == {"s": "one"}


async def test_a_projection_returns_null_for_missing_properties(filled):
    assert await filled.get_entity("a", "1", select=["n", "absent"]) == {"n": 1, "absent": None}
    rows = await filled.list_entities(select="big")
    assert [dict(row) for row in rows][0] == {"big": None}
    assert len(rows) == 5


async def test_the_metadata_of_a_projection_names_it(filled, name, target):
    responses = []
    hook = {"raw_response_hook": lambda answer: responses.append(answer.http_response.json())}
    await filled.list_entities(select=["s", "n"], **hook)
    assert responses[0]["odata.metadata"] == f"{target.table}/$metadata#{name}&$select=s,n"


async def test_a_projection_keeps_the_types_of_properties(filled):
    assert await filled.get_entity("b", "1", select=["big", "id"]) == {
        "big": EntityProperty(2**40, EdmType.INT64),
        "id": ID,
    }


@pytest.fixture
async def many(table):
    """A table with 2,100 entities in three partitions."""
    for partition in "abc":
        for begin in range(0, 700, 100):
            rows = [f"{number:04}" for number in range(begin, begin + 100)]
            upserts = [{"PartitionKey": partition, "RowKey": row, "n": int(row)} for row in rows]
            await table.submit_transaction([("upsert", entity) for entity in upserts])
    return table


async def test_pages_follow_each_other_without_gap_or_repetition(many):
    pages = await many.pages("list_entities", results_per_page=150)
    assert [len(page) for page in pages] == [150] * 14
    keys = [(row["PartitionKey"], row["RowKey"]) for page in pages for row in page]
    assert keys == sorted(keys) and len(set(keys)) == 2100


async def test_a_page_has_1000_entities_by_default(many):
    pages = await many.pages("list_entities")
    assert [len(page) for page in pages] == [1000, 1000, 100]
    assert len(await many.query_entities("n ge 350")) == 1050


async def test_a_page_of_more_than_1000_is_rejected(many):
    with rejected(HttpResponseError, 400, "InvalidInput"):
        await many.pages("list_entities", results_per_page=1001)


async def test_a_query_continues_from_a_token_past_deleted_entities(many):
    expected = ("query_entities", "PartitionKey eq 'b'")
    first, token = await many.page(*expected, results_per_page=10)
    assert first[-1]["RowKey"] == "0009"
    await many.delete_entity("b", "0010")
    second, token = await many.page(*expected, results_per_page=10, token=token)
    assert [second[0]["RowKey"], second[-1]["RowKey"]] == ["0011", "0020"]


async def test_a_query_that_ends_on_a_full_page_ends(many):
    pages = await many.pages("query_entities", "PartitionKey eq 'c'", results_per_page=350)
    assert [len(page) for page in pages if page] == [350, 350]


async def test_entities_are_in_the_order_of_their_keys(table):
    keys = ["", "A", "a", "ab", "b", "é", "日", "\U0001f600", "\ufb01"]
    for key in keys:
        await table.create_entity({"PartitionKey": "p", "RowKey": key})
    got = [row["RowKey"] for row in await table.list_entities()]
    # By UTF-16 code unit: what is beyond the first plane comes before U+FB01.
    assert got == sorted(keys, key=lambda key: key.encode("utf-16-be"))
