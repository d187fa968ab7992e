"""Single entities and batches, through generated stubs."""

import math

import grpc
import pytest

from entities import entity, keys, timestamp, values
from failures import rejected

EVERY_TYPE = {
    "string": ("string_value", "snow ☃ and \U0001f409"),
    "empty": ("string_value", ""),
    "int32": ("int32_value", -(2**31)),
    "int64": ("int64_value", 2**63 - 1),
    "double": ("double_value", 0.1),
    "infinite": ("double_value", -math.inf),
    "boolean": ("boolean_value", False),
    "datetime": ("datetime_value", timestamp("9999-12-31T23:59:59.999999900Z")),
    "early": ("datetime_value", timestamp("1601-01-01T00:00:00Z")),
    "guid": ("guid_value", "c9da6455-213d-42c9-9a79-3e9149a57833"),
    "binary": ("binary_value", bytes(range(256))),
}


def get(api, stub, table, partition_key, row_key, **more):
    request = api.pb.GetEntityRequest(
        table=table, partition_key=partition_key, row_key=row_key, **more
    )
    return stub.GetEntity(request).entity


def test_every_type_survives_a_round_trip(api, stub, table):
    inserted = stub.InsertEntity(
        api.pb.InsertEntityRequest(table=table, entity=entity(api, "p", "r", **EVERY_TYPE))
    )

    stored = get(api, stub, table, "p", "r")

    assert values(stored) == EVERY_TYPE
    assert (stored.etag, stored.timestamp) == (inserted.etag, inserted.timestamp)


def test_nan_survives_a_round_trip_and_a_null_is_not_stored(api, stub, table):
    sent = entity(api, "p", "r", nan=("double_value", math.nan))
    sent.properties["null"].CopyFrom(api.entity.Value())
    stub.InsertEntity(api.pb.InsertEntityRequest(table=table, entity=sent))

    ((name, value),) = get(api, stub, table, "p", "r").properties.items()

    assert name == "nan" and math.isnan(value.double_value)


def test_empty_keys_and_a_projection(api, stub, table):
    stub.InsertEntity(
        api.pb.InsertEntityRequest(table=table, entity=entity(api, "", "", a=1, b=2, c=3))
    )

    stored = get(
        api, stub, table, "", "", select=api.entity.PropertyMask(paths=["c", "a", "absent"])
    )

    assert values(stored) == {"a": ("int32_value", 1), "c": ("int32_value", 3)}


def test_inserting_an_existing_entity_is_rejected(api, stub, table):
    request = api.pb.InsertEntityRequest(table=table, entity=entity(api, "p", "r", a=1))
    stub.InsertEntity(request)
    with rejected(grpc.StatusCode.ALREADY_EXISTS, "ENTITY_ALREADY_EXISTS") as failure:
        stub.InsertEntity(request)

    assert failure.resource.resource_type == "entity"


def test_an_update_merges_or_replaces_and_a_stale_etag_is_aborted(api, stub, table):
    first = stub.InsertEntity(
        api.pb.InsertEntityRequest(table=table, entity=entity(api, "p", "r", a=1, b=1))
    )

    merge = api.pb.UpdateEntityRequest(table=table, entity=entity(api, "p", "r", b=2, c=2))
    merge.mode, merge.if_match = api.pb.WRITE_MODE_MERGE, first.etag
    second = stub.UpdateEntity(merge)
    assert {
        name: value for name, (_, value) in values(get(api, stub, table, "p", "r")).items()
    } == {
        "a": 1,
        "b": 2,
        "c": 2,
    }

    with rejected(grpc.StatusCode.ABORTED, "UPDATE_CONDITION_NOT_SATISFIED"):
        stub.UpdateEntity(merge)

    replace = api.pb.UpdateEntityRequest(table=table, entity=entity(api, "p", "r", d=3))
    replace.mode, replace.if_match = api.pb.WRITE_MODE_REPLACE, second.etag
    stub.UpdateEntity(replace)
    assert list(values(get(api, stub, table, "p", "r"))) == ["d"]


def test_an_update_of_a_missing_entity_is_not_found_and_an_upsert_inserts(api, stub, table):
    update = api.pb.UpdateEntityRequest(table=table, entity=entity(api, "p", "r", a=1))
    update.mode = api.pb.WRITE_MODE_MERGE
    with rejected(grpc.StatusCode.NOT_FOUND, "RESOURCE_NOT_FOUND"):
        stub.UpdateEntity(update)

    upsert = api.pb.UpsertEntityRequest(table=table, entity=entity(api, "p", "r", a=1))
    upsert.mode = api.pb.WRITE_MODE_REPLACE
    written = stub.UpsertEntity(upsert)
    assert get(api, stub, table, "p", "r").etag == written.etag


def test_a_delete_with_a_stale_etag_keeps_the_entity(api, stub, table):
    upsert = api.pb.UpsertEntityRequest(table=table, entity=entity(api, "p", "r", a=1))
    upsert.mode = api.pb.WRITE_MODE_MERGE
    stale = stub.UpsertEntity(upsert).etag
    current = stub.UpsertEntity(upsert).etag

    delete = api.pb.DeleteEntityRequest(table=table, partition_key="p", row_key="r", if_match=stale)
    with rejected(grpc.StatusCode.ABORTED, "UPDATE_CONDITION_NOT_SATISFIED"):
        stub.DeleteEntity(delete)
    delete.if_match = current
    stub.DeleteEntity(delete)

    with rejected(grpc.StatusCode.NOT_FOUND, "RESOURCE_NOT_FOUND"):
        get(api, stub, table, "p", "r")


def test_a_missing_table_is_named_by_its_own_reason(api, stub):
    with rejected(grpc.StatusCode.NOT_FOUND, "TABLE_NOT_FOUND"):
        stub.InsertEntity(api.pb.InsertEntityRequest(table="Nowhere", entity=entity(api, "p", "r")))


def test_every_violation_of_a_request_is_listed(api, stub, table):
    wrong = entity(api, "a/b", "c#d", PartitionKey="reserved", g=("guid_value", "no guid"))
    with rejected(grpc.StatusCode.INVALID_ARGUMENT, "OUT_OF_RANGE_INPUT") as failure:
        stub.InsertEntity(api.pb.InsertEntityRequest(table=table, entity=wrong))

    assert failure.violations[:2] == ["entity.partition_key", "entity.row_key"]
    assert sorted(failure.violations[2:]) == [
        'entity.properties["PartitionKey"]',
        'entity.properties["g"]',
    ]


def test_an_unknown_mode_is_rejected(api, stub, table):
    upsert = api.pb.UpsertEntityRequest(table=table, entity=entity(api, "p", "r"))
    for mode in (0, 99):
        upsert.mode = mode
        with rejected(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT") as failure:
            stub.UpsertEntity(upsert)
        assert failure.violations == ["mode"]


def batch(api, table, *operations):
    return api.pb.ExecuteBatchRequest(table=table, operations=operations)


def insert(api, *arguments, **properties):
    made = entity(api, *arguments, **properties)
    return api.pb.BatchOperation(insert=api.pb.BatchInsert(entity=made))


def test_a_batch_mixes_all_operations(api, stub, table):
    stub.ExecuteBatch(batch(api, table, insert(api, "p", "1", a=1), insert(api, "p", "2", a=1)))

    kind, merge = api.pb.BatchOperation, api.pb.WRITE_MODE_MERGE
    answer = stub.ExecuteBatch(
        batch(
            api,
            table,
            insert(api, "p", "3", a=3),
            kind(update=api.pb.BatchUpdate(entity=entity(api, "p", "1", b=3), mode=merge)),
            kind(upsert=api.pb.BatchUpsert(entity=entity(api, "p", "4", a=3), mode=merge)),
            kind(delete=api.pb.BatchDelete(partition_key="p", row_key="2")),
        )
    )

    assert [bool(result.etag) for result in answer.results] == [True, True, True, False]
    stored = stub.QueryEntities(api.pb.QueryEntitiesRequest(table=table)).entities
    assert keys(stored) == [("p", "1"), ("p", "3"), ("p", "4")]
    assert set(values(stored[0])) == {"a", "b"}


def test_a_batch_fails_whole_and_names_the_operation(api, stub, table):
    stub.ExecuteBatch(batch(api, table, insert(api, "p", "existing")))

    with rejected(grpc.StatusCode.ALREADY_EXISTS, "ENTITY_ALREADY_EXISTS") as failure:
        stub.ExecuteBatch(batch(api, table, insert(api, "p", "new"), insert(api, "p", "existing")))

    assert failure.info.metadata["index"] == "1"
    stored = stub.QueryEntities(api.pb.QueryEntitiesRequest(table=table)).entities
    assert keys(stored) == [("p", "existing")]


@pytest.mark.parametrize(
    "rows, reason, index",
    [
        (
            [("p", "1"), ("p", "2"), ("q", "3")],
            "COMMANDS_IN_BATCH_ACT_ON_DIFFERENT_PARTITIONS",
            "2",
        ),
        ([("p", "1"), ("p", "2"), ("p", "1")], "INVALID_DUPLICATE_ROW", "2"),
    ],
)
def test_an_invalid_batch_names_the_operation(api, stub, table, rows, reason, index):
    with rejected(grpc.StatusCode.INVALID_ARGUMENT, reason) as failure:
        stub.ExecuteBatch(batch(api, table, *(insert(api, *row) for row in rows)))

    assert failure.info.metadata["index"] == index
    assert not stub.QueryEntities(api.pb.QueryEntitiesRequest(table=table)).entities


def test_a_batch_has_1_to_100_operations(api, stub, table):
    hundred = [insert(api, "p", f"{number:03}") for number in range(100)]
    assert len(stub.ExecuteBatch(batch(api, table, *hundred)).results) == 100

    for operations in ([], [insert(api, "q", str(number)) for number in range(101)]):
        with rejected(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT"):
            stub.ExecuteBatch(batch(api, table, *operations))
