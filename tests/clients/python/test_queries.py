"""Queries, pages, streams and imports, through generated stubs."""

import queue

import grpc
import pytest

from entities import entity, keys, values
from failures import rejected

ROWS = 2500


@pytest.fixture(scope="module")
def filled(api, stub):
    """A table with 5 partitions of 500 rows, written by one import."""
    stub.CreateTable(api.pb.CreateTableRequest(table=api.pb.Table(name="Filled")))
    answers = list(stub.ImportEntities(chunks(api, "Filled", rows(api))))
    assert sum(len(answer.results) for answer in answers) == ROWS
    yield "Filled"
    stub.DeleteTable(api.pb.DeleteTableRequest(table="Filled"))


def rows(api):
    for number in range(ROWS):
        yield entity(api, f"p{number % 5}", f"{number // 5:04}", n=number, text="x" * 100)


def chunks(api, table, entities, mode=None, size=300):
    """The messages of an import: the spec, then chunks."""
    message = api.pb.ImportEntitiesRequest
    yield message(spec=api.pb.ImportSpec(table=table, mode=mode))
    chunk = []
    for one in entities:
        chunk.append(one)
        if len(chunk) == size:
            yield message(chunk=api.pb.ImportChunk(entities=chunk))
            chunk = []
    if chunk:
        yield message(chunk=api.pb.ImportChunk(entities=chunk))


def test_pages_end_with_the_last_token_and_cover_every_entity_in_order(api, stub, filled):
    request = api.pb.QueryEntitiesRequest(table=filled, page_size=700)
    found, pages = [], 0
    while True:
        page = stub.QueryEntities(request)
        assert len(page.entities) <= 700 and page.cost.returned == len(page.entities)
        found += keys(page.entities)
        pages += 1
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token

    assert len(found) == ROWS and found == sorted(found)
    assert pages == 4


def test_a_page_has_at_most_1000_entities_even_when_more_are_requested(api, stub, filled):
    for size in (None, 1000, 5000):
        page = stub.QueryEntities(api.pb.QueryEntitiesRequest(table=filled, page_size=size))
        assert len(page.entities) == 1000 and page.next_page_token


@pytest.mark.parametrize(
    "text, scope, scanned, returned",
    [
        ("PartitionKey eq 'p1' and RowKey eq '0007'", "POINT", 1, 1),
        ("PartitionKey eq 'p1' and RowKey ge '0100' and RowKey lt '0200'", "ROW_RANGE", 100, 100),
        ("PartitionKey eq 'p1' and n lt 1000", "PARTITION", 500, 200),
        ("PartitionKey gt 'p2' and n eq 3", "PARTITION_RANGE", 1000, 1),
        ("n eq 17 or (not (n ge 0))", "TABLE", ROWS, 1),
    ],
)
def test_the_cost_includes_what_a_filter_reads(api, stub, filled, text, scope, scanned, returned):
    answer = list(stub.StreamEntities(api.pb.StreamEntitiesRequest(table=filled, filter=text)))

    assert sum(len(message.entities) for message in answer) == returned
    assert sum(message.cost.scanned for message in answer) == scanned
    plan = stub.ExplainQuery(api.pb.ExplainQueryRequest(table=filled, filter=text, analyze=True))
    assert plan.scope == api.pb.QueryScope.Value(f"QUERY_SCOPE_{scope}")
    assert plan.cost.scanned == scanned


def test_explain_returns_the_range_the_residual_filter_and_advice(api, stub, filled):
    text = "PartitionKey eq 'p1' and RowKey ge '0100' and n gt 5"
    plan = stub.ExplainQuery(api.pb.ExplainQueryRequest(table=filled, filter=text))
    assert (plan.start.partition_key, plan.start.row_key, plan.start.inclusive) == (
        "p1",
        "0100",
        True,
    )
    assert plan.residual_filter == "n gt 5" and list(plan.filter_properties) == ["n"]
    assert not plan.HasField("cost")

    assert stub.ExplainQuery(api.pb.ExplainQueryRequest(table=filled, filter="n eq 1")).advice


def test_a_malformed_filter_is_rejected_with_its_position(api, stub, filled):
    with rejected(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT") as failure:
        stub.QueryEntities(api.pb.QueryEntitiesRequest(table=filled, filter="n eq 'open"))

    assert failure.violations == ["filter"]


def test_a_token_of_another_query_is_rejected(api, stub, filled):
    token = stub.QueryEntities(
        api.pb.QueryEntitiesRequest(table=filled, page_size=1)
    ).next_page_token
    for wrong in (token, token[:-2], "nonsense"):
        with rejected(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_QUERY_PARAMETER_VALUE"):
            stub.QueryEntities(
                api.pb.QueryEntitiesRequest(table=filled, filter="n gt 1", page_token=wrong)
            )


def test_a_stream_has_every_entity_in_order_and_reports_completion(api, stub, filled):
    request = api.pb.StreamEntitiesRequest(
        table=filled, select=api.entity.PropertyMask(paths=["n"])
    )
    answer = list(stub.StreamEntities(request))

    found = [one for message in answer for one in message.entities]
    assert keys(found) == sorted(keys(found)) and len(found) == ROWS
    assert list(values(found[0])) == ["n"]
    assert all(message.resume_token for message in answer[:-1])
    assert answer[-1].resume_token == ""


def test_a_stream_that_was_cancelled_is_resumed_without_loss_or_repetition(api, stub, filled):
    call = stub.StreamEntities(api.pb.StreamEntitiesRequest(table=filled))
    first = next(call)
    call.cancel()
    with pytest.raises(grpc.RpcError) as cancelled:
        for _ in call:
            pass
    assert cancelled.value.code() == grpc.StatusCode.CANCELLED

    resumed = stub.StreamEntities(
        api.pb.StreamEntitiesRequest(table=filled, resume_token=first.resume_token)
    )
    found = keys(first.entities) + [key for message in resumed for key in keys(message.entities)]
    assert len(found) == ROWS and found == sorted(set(found))


def test_a_stream_ends_at_its_limit(api, stub, filled):
    for limit in (0, 1, 1001):
        request = api.pb.StreamEntitiesRequest(table=filled, limit=limit)
        assert sum(len(message.entities) for message in stub.StreamEntities(request)) == limit


def test_an_import_reports_the_status_of_each_entity(api, stub, table):
    stub.InsertEntity(api.pb.InsertEntityRequest(table=table, entity=entity(api, "p", "1", old=1)))
    sent = [entity(api, "p", str(number), new=1) for number in range(3)] + [entity(api, "p", "a/b")]

    answers = list(stub.ImportEntities(chunks(api, table, sent, size=2)))

    results = [result for answer in answers for result in answer.results]
    assert [len(answer.results) for answer in answers] == [2, 2]
    assert [result.index for result in results] == [0, 1, 2, 3]
    assert [result.error.code for result in results] == [
        0,
        grpc.StatusCode.ALREADY_EXISTS.value[0],
        0,
        grpc.StatusCode.INVALID_ARGUMENT.value[0],
    ]
    stored = stub.QueryEntities(api.pb.QueryEntitiesRequest(table=table)).entities
    assert keys(stored) == [("p", "0"), ("p", "1"), ("p", "2")]
    assert list(values(stored[1])) == ["old"]


def test_an_import_replaces_or_merges_by_its_mode(api, stub, table):
    pb = api.pb
    stub.InsertEntity(pb.InsertEntityRequest(table=table, entity=entity(api, "p", "1", old=1)))

    list(stub.ImportEntities(chunks(api, table, [entity(api, "p", "1", a=1)], pb.WRITE_MODE_MERGE)))
    merged = stub.QueryEntities(pb.QueryEntitiesRequest(table=table)).entities[0]
    list(
        stub.ImportEntities(chunks(api, table, [entity(api, "p", "1", b=1)], pb.WRITE_MODE_REPLACE))
    )
    replaced = stub.QueryEntities(pb.QueryEntitiesRequest(table=table)).entities[0]

    assert (set(values(merged)), set(values(replaced))) == ({"a", "old"}, {"b"})


def test_an_import_responds_before_its_end(api, stub, table):
    message = api.pb.ImportEntitiesRequest
    to_send = queue.SimpleQueue()
    call = stub.ImportEntities(iter(to_send.get, None))
    to_send.put(message(spec=api.pb.ImportSpec(table=table)))

    for number in range(3):
        to_send.put(message(chunk=api.pb.ImportChunk(entities=[entity(api, "p", str(number))])))
        # The next chunk is sent only after this one was answered.
        assert next(call).results[0].index == number

    to_send.put(None)
    assert list(call) == []


def test_an_import_without_a_spec_is_rejected(api, stub):
    message = api.pb.ImportEntitiesRequest
    with rejected(grpc.StatusCode.INVALID_ARGUMENT, "PROPERTIES_NEED_VALUE"):
        list(
            stub.ImportEntities(
                iter([message(chunk=api.pb.ImportChunk(entities=[entity(api, "p", "r")]))])
            )
        )
