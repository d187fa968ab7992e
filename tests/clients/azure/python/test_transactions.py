"""Transactions: all or nothing, each error with the operation that caused it."""

import pytest
from azure.core import MatchConditions
from azure.data.tables import (
    RequestTooLargeError,
    TableTransactionError,
    TransactionOperation,
    UpdateMode,
)

from azure_errors import code_of, rewriting


def entity(row, **more):
    """An entity of partition `p`."""
    return {"PartitionKey": "p", "RowKey": row, **more}


async def failing(table, operations, status, code, index):
    """Sends a transaction that must fail with this error and change nothing."""
    before = await table.list_entities()
    with pytest.raises(TableTransactionError) as raised:
        await table.submit_transaction(operations)
    error = raised.value
    assert (error.status_code, code_of(error), error.index) == (status, code, index)
    assert await table.list_entities() == before


async def test_a_transaction_does_every_kind_of_operation(table):
    for row in ("merged", "replaced", "deleted", "upserted"):
        await table.create_entity(entity(row, old=1))
    answers = await table.submit_transaction(
        [
            ("create", entity("created", new=1)),
            ("update", entity("merged", new=1)),
            ("update", entity("replaced", new=1), {"mode": UpdateMode.REPLACE}),
            ("upsert", entity("upserted", new=1)),
            (TransactionOperation.UPSERT, entity("made", new=1), {"mode": "replace"}),
            (TransactionOperation.DELETE, entity("deleted")),
        ]
    )
    assert len(answers) == 6
    rows = {row["RowKey"]: row for row in await table.list_entities()}
    assert rows == {
        "created": entity("created", new=1),
        "made": entity("made", new=1),
        "merged": entity("merged", old=1, new=1),
        "replaced": entity("replaced", new=1),
        "upserted": entity("upserted", old=1, new=1),
    }
    for answer, row in zip(answers, ("created", "merged", "replaced", "upserted", "made")):
        assert answer["etag"] == rows[row].metadata["etag"]


async def test_100_operations_are_one_transaction(table):
    rows = [f"{number:03}" for number in range(100)]
    answers = await table.submit_transaction([("create", entity(row, x=row)) for row in rows])
    assert len(answers) == 100
    assert [row["RowKey"] for row in await table.list_entities()] == rows


async def test_101_operations_are_rejected_at_the_last_valid_one(table):
    operations = [("create", entity(f"{number:03}")) for number in range(101)]
    await failing(table, operations, 400, "InvalidInput", 99)


@pytest.mark.parametrize("index", [0, 1, 3])
async def test_an_entity_that_exists_fails_the_whole_at_its_index(table, index):
    await table.create_entity(entity("there"))
    operations = [("create", entity(f"new{number}")) for number in range(3)]
    operations.insert(index, ("create", entity("there")))
    await failing(table, operations, 409, "EntityAlreadyExists", index)


async def test_an_entity_that_is_missing_fails_the_whole_at_its_index(table):
    for operation in ("update", "delete"):
        operations = [("create", entity("new")), (operation, entity("absent"))]
        await failing(table, operations, 404, "ResourceNotFound", 1)


async def test_an_etag_that_is_old_fails_the_whole_at_its_index(table):
    made = await table.create_entity(entity("there", x=1))
    await table.update_entity(entity("there", x=2))
    old = {"etag": made["etag"], "match_condition": MatchConditions.IfNotModified}
    for operation in ("update", "delete"):
        operations = [
            ("upsert", entity("a")), ("upsert", entity("b")), (operation, entity("there"), old),
        ]
        await failing(table, operations, 412, "UpdateConditionNotSatisfied", 2)


async def test_a_transaction_with_a_met_condition_succeeds(table):
    made = await table.create_entity(entity("there", x=1))
    same = {"etag": made["etag"], "match_condition": MatchConditions.IfNotModified}
    await table.submit_transaction(
        [("update", entity("there", x=2), same), ("create", entity("new"))]
    )
    assert (await table.get_entity("p", "there"))["x"] == 2


async def test_a_duplicate_entity_in_a_transaction_is_rejected(table):
    operations = [("upsert", entity("a", x=1)), ("upsert", entity("b")), ("delete", entity("a"))]
    await failing(table, operations, 400, "InvalidDuplicateRow", 2)


async def test_an_operation_that_is_malformed_fails_the_whole_at_its_index(table):
    operations = [("create", entity("a")), ("create", entity("b", text="x" * 32769))]
    await failing(table, operations, 400, "PropertyValueTooLarge", 1)
    operations = [("create", entity("a")), ("create", {**entity("b"), "a-b": 1})]
    await failing(table, operations, 400, "PropertyNameInvalid", 1)


async def test_the_library_keeps_partitions_apart(table):
    with pytest.raises(ValueError, match="must all be the same"):
        await table.submit_transaction(
            [("create", entity("a")), ("create", {"PartitionKey": "q", "RowKey": "a"})]
        )


async def test_two_partitions_are_rejected_at_the_first_difference(table):
    operations = [("create", entity("a")), ("create", entity("b")), ("create", entity("c"))]

    row = b'", "PartitionKey@odata.type": "Edm.String", "RowKey": "b"'
    other = rewriting((b'"PartitionKey": "p' + row, b'"PartitionKey": "q' + row))
    with pytest.raises(TableTransactionError) as raised:
        await table.submit_transaction(operations, **other)
    error = raised.value
    assert (error.status_code, error.index) == (400, 1)
    assert code_of(error) == "CommandsInBatchActOnDifferentPartitions"
    assert await table.list_entities() == []


async def test_a_transaction_on_a_missing_table_is_not_found(clients, name):
    table = clients.table(name)
    with pytest.raises(TableTransactionError) as raised:
        await table.submit_transaction([("create", entity("a")), ("create", entity("b"))])
    error = raised.value
    assert (error.status_code, code_of(error), error.index) == (404, "TableNotFound", 0)


async def test_a_transaction_of_more_than_4_mib_is_too_large(table):
    large = {f"b{number}": b"x" * 60000 for number in range(10)}
    operations = [("create", entity(f"{number}", **large)) for number in range(8)]
    with pytest.raises(RequestTooLargeError) as raised:
        await table.submit_transaction(operations)
    assert code_of(raised.value) == "RequestBodyTooLarge"
    assert await table.list_entities() == []


async def test_a_transaction_without_operations_does_nothing(table):
    assert await table.submit_transaction([]) == []


async def test_unusual_keys_work_in_a_transaction(table):
    rows = ["it's", "a b", "100%", "", "\U0001f600", "a+b", "ä", "--batch", "x&y=z"]
    await table.submit_transaction([("create", entity(row, x=1)) for row in rows])
    await table.submit_transaction([("update", entity(row, x=2)) for row in rows])
    assert {row["RowKey"]: row["x"] for row in await table.list_entities()} == dict.fromkeys(rows, 2)
    await table.submit_transaction([("delete", entity(row)) for row in rows])
    assert await table.list_entities() == []


async def test_text_that_looks_like_the_format_of_a_transaction_is_only_text(table):
    text = '--changeset_1\r\nHTTP/1.1 409 Conflict\r\n\r\n{"x": }\r\n--batch_1--\r\n'
    await table.submit_transaction([("create", entity("a", text=text)), ("create", entity("b"))])
    assert (await table.get_entity("p", "a"))["text"] == text
