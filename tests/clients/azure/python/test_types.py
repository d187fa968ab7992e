"""Types of properties: what goes in comes out, at each level of metadata."""

import datetime
import math
import uuid

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EdmType, EntityProperty, UpdateMode

from azure_errors import rejected, rewriting

KEYS = {"PartitionKey": "p", "RowKey": "r"}
UTC = datetime.timezone.utc
LEVELS = ["nometadata", "minimalmetadata", "fullmetadata"]

EVERY_TYPE = {
    "text": "some text",
    "empty": "",
    "blanks": "  both sides  ",
    "emoji": "\U0001f600 ä €",
    "lines": "a\r\nb\tc\u2028",
    "small": 2**31 - 1,
    "least": -(2**31),
    "large": EntityProperty(2**63 - 1, EdmType.INT64),
    "lowest": EntityProperty(-(2**63), EdmType.INT64),
    "little": EntityProperty(7, EdmType.INT64),
    "ratio": 0.1,
    "whole": 3.0,
    "huge": 1.7976931348623157e308,
    "tiny": 5e-324,
    "minus": -0.0,
    "infinite": float("inf"),
    "below": float("-inf"),
    "yes": True,
    "no": False,
    "id": uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
    "bytes": bytes(range(256)),
    "no_bytes": b"",
}


def accept(level):
    """The option for a level of metadata."""
    return {"headers": {"Accept": f"application/json;odata={level}"}}


async def test_every_type_survives_a_round_trip(table):
    await table.create_entity({**KEYS, **EVERY_TYPE})
    got = await table.get_entity("p", "r")
    assert got == {**KEYS, **EVERY_TYPE}
    assert {name: type(value) for name, value in got.items() if name in EVERY_TYPE} == {
        name: type(value) for name, value in EVERY_TYPE.items()
    }
    assert math.copysign(1, got["minus"]) == -1
    assert await table.list_entities() == [got]


@pytest.mark.parametrize("level", LEVELS)
async def test_every_type_is_written_at_each_level_of_metadata(table, level):
    await table.create_entity({**KEYS, **EVERY_TYPE}, **accept(level))
    got = await table.get_entity("p", "r", **accept(level))
    if level != "nometadata":
        assert got == {**KEYS, **EVERY_TYPE}
        return
    # Without metadata the client has only the types of JSON itself.
    assert got["large"] == str(2**63 - 1)
    assert got["whole"] == 3.0 and isinstance(got["whole"], float)
    assert got["small"] == 2**31 - 1
    assert got["id"] == "c9da6455-213d-42c9-9a79-3e9149a57833"
    assert got["infinite"] == "Infinity"
    assert got["yes"] is True


@pytest.mark.parametrize("level", LEVELS)
async def test_control_data_matches_each_metadata_level(table, name, level, target):
    await table.create_entity({**KEYS, "n": EntityProperty(1, EdmType.INT64), "d": 1.5})
    responses = []
    hook = {"raw_response_hook": lambda answer: responses.append(answer.http_response)}
    got = await table.get_entity("p", "r", **accept(level), **hook)
    body = responses[0].json()
    etag = responses[0].headers["ETag"]
    keys = {"PartitionKey", "RowKey", "Timestamp", "n", "d"}
    if level != "nometadata":
        keys |= {"odata.metadata", "odata.etag", "n@odata.type"}
        assert body["odata.metadata"] == f"{target.table}/$metadata#{name}/@Element"
        assert body["odata.etag"] == etag == got.metadata["etag"]
    if level == "fullmetadata":
        keys |= {"odata.type", "odata.id", "odata.editLink", "Timestamp@odata.type"}
        address = f"{name}(PartitionKey='p',RowKey='r')"
        assert body["odata.type"] == f"devstoreaccount1.{name}"
        assert body["odata.id"] == f"{target.table}/{address}"
        assert body["odata.editLink"] == address
        assert got.metadata["id"] == body["odata.id"]
    assert set(body) == keys
    content = responses[0].headers["Content-Type"].replace(" ", "")
    assert content == f"application/json;odata={level};streaming=true;charset=utf-8"


@pytest.mark.parametrize("level", LEVELS)
async def test_a_page_has_the_control_data_of_its_level(table, name, level, target):
    await table.create_entity({**KEYS, "n": EntityProperty(1, EdmType.INT64)})
    responses = []
    hook = {"raw_response_hook": lambda answer: responses.append(answer.http_response)}
    await table.list_entities(**accept(level), **hook)
    body = responses[0].json()
    assert len(body["value"]) == 1
    assert ("odata.etag" in body["value"][0]) == (level != "nometadata")
    assert ("odata.id" in body["value"][0]) == (level == "fullmetadata")
    expected = None if level == "nometadata" else f"{target.table}/$metadata#{name}"
    assert body.get("odata.metadata") == expected
    assert "ETag" not in responses[0].headers


async def test_not_a_number_is_a_double(table):
    await table.create_entity({**KEYS, "nan": float("nan")})
    got = (await table.get_entity("p", "r"))["nan"]
    assert isinstance(got, float) and math.isnan(got)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("2026-11-21T12:00:00Z", "2026-11-21T12:00:00Z"),
        ("2026-11-21T12:00:00.000Z", "2026-11-21T12:00:00Z"),
        ("2026-11-21T12:00:00.2000000Z", "2026-11-21T12:00:00.2Z"),
        ("2026-11-21T12:00:00.1234567Z", "2026-11-21T12:00:00.1234567Z"),
        ("1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
    ],
)
async def test_a_datetime_has_100_ns_resolution_and_no_trailing_zeros(table, sent, kept):
    await table.create_entity({**KEYS, "t": EntityProperty(sent, EdmType.DATETIME)})
    assert (await table.get_entity("p", "r"))["t"].tables_service_value == kept


async def test_a_python_time_survives_a_round_trip(table):
    time = datetime.datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)
    await table.create_entity({**KEYS, "t": time})
    got = await table.get_entity("p", "r")
    assert got["t"] == time
    await table.update_entity(got, mode=UpdateMode.REPLACE)
    assert (await table.get_entity("p", "r"))["t"] == time


async def test_null_is_not_stored(table):
    await table.create_entity({**KEYS, "x": 1, "none": None})
    assert await table.get_entity("p", "r") == {**KEYS, "x": 1}
    await table.update_entity({**KEYS, "x": None}, mode=UpdateMode.MERGE)
    assert await table.get_entity("p", "r") == {**KEYS, "x": 1}


async def test_a_property_may_change_its_type_and_names_differ_by_case(table):
    await table.create_entity({**KEYS, "x": EntityProperty(1, EdmType.INT64), "X": "other"})
    await table.update_entity({**KEYS, "x": "text"}, mode=UpdateMode.MERGE)
    assert await table.get_entity("p", "r") == {**KEYS, "x": "text", "X": "other"}


# What the library would reject itself goes in as two plain texts.
ONLY_TEXT = rewriting((b'"x@odata.type@odata.type": "Edm.String"', b'"y": 1'))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("no guid", "Edm.Guid"),
        (str(2**63), "Edm.Int64"),
        ("1.5", "Edm.Int64"),
        ("yesterday", "Edm.DateTime"),
        ("", "Edm.DateTime"),
        ("%%%", "Edm.Binary"),
        ("x", "Edm.Double"),
        ("x", "Edm.Nonsense"),
    ],
)
async def test_a_value_that_is_not_of_its_type_is_rejected(table, value, kind):
    with rejected(HttpResponseError, 400, "InvalidInput"):
        await table.create_entity({**KEYS, "x": value, "x@odata.type": kind}, **ONLY_TEXT)
    assert await table.list_entities() == []
    await table.create_entity({**KEYS, "x": "5", "x@odata.type": "Edm.Int64"}, **ONLY_TEXT)
    assert (await table.get_entity("p", "r"))["x"] == EntityProperty(5, EdmType.INT64)


async def test_a_timestamp_of_the_caller_is_ignored(table):
    old = "2001-01-01T00:00:00Z"
    await table.create_entity({**KEYS, "Timestamp": EntityProperty(old, EdmType.DATETIME)})
    assert (await table.get_entity("p", "r")).metadata["timestamp"].year > 2001


async def test_the_timestamp_of_an_entity_increases_with_each_write(table):
    await table.create_entity(KEYS)
    times = []
    for _ in range(20):
        await table.upsert_entity(KEYS)
        times.append((await table.get_entity("p", "r")).metadata["timestamp"].tables_service_value)
    assert len(set(times)) == 20
