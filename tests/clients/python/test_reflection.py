"""Exploration without protos: list, describe, and every RPC, by both versions of reflection."""

import grpc
import pytest

from explorer import Explorer, code_of

TABLE_SERVICE = "trestle.table.v1.TableService"
VERSIONS = ["v1", "v1alpha"]


@pytest.fixture(params=VERSIONS)
def explorer(request, channel):
    return Explorer(channel, request.param)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_services_are_listed(channel, version):
    own = f"grpc.reflection.{version}.ServerReflection"
    services = Explorer(channel, version).services()
    assert set(services) >= {TABLE_SERVICE, "grpc.health.v1.Health", own}


def test_every_listed_service_is_described_with_comments(explorer):
    assert len(explorer.service(TABLE_SERVICE).methods) == 19
    for name in explorer.services():
        file = explorer.file(file_containing_symbol=name)
        comments = {
            tuple(location.path): location.leading_comments for location in file.source_code_info.location
        }
        for path, described in declarations(file):
            assert comments.get(path, "").strip(), f"{described} has a comment"


def declarations(file):
    """The services, methods, messages and fields of a file: the path of each, and its name."""
    for number, service in enumerate(file.service):
        yield (6, number), service.name
        for index, method in enumerate(service.method):
            yield (6, number, 2, index), method.name
    for number, message in enumerate(file.message_type):
        yield (4, number), message.name
        for index, field in enumerate(message.field):
            yield (4, number, 2, index), f"{message.name}.{field.name}"


def test_every_listed_service_can_be_described(explorer):
    for name in explorer.services():
        assert explorer.service(name).full_name == name


def test_an_unknown_symbol_is_an_error_of_its_own(explorer):
    try:
        answer = explorer.query(file_containing_symbol="trestle.nothing.v1.Absent")
    except grpc.RpcError as error:
        assert code_of(error) == "NOT_FOUND"
    else:
        assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def test_a_table_is_made_filled_and_queried_without_protos(explorer):
    def call(method, **request):
        return explorer.call(TABLE_SERVICE, method, request)

    entity = {
        "partition_key": "c42",
        "row_key": "o1",
        "properties": {
            "text": {"string_value": "snow ☃"},
            "small": {"int32_value": -7},
            "big": {"int64_value": "9007199254740993"},
            "ratio": {"double_value": 1.5},
            "flag": {"boolean_value": True},
            "at": {"datetime_value": "2026-01-31T08:00:00.123456700Z"},
            "id": {"guid_value": "c9da6455-213d-42c9-9a79-3e9149a57833"},
            "raw": {"binary_value": "AAH/"},
        },
    }
    assert call("CreateTable", table={"name": "Explored"})["table"]["name"] == "Explored"
    etag = call("InsertEntity", table="Explored", entity=entity)["etag"]

    page = call(
        "QueryEntities",
        table="Explored",
        filter="PartitionKey eq 'c42' and big gt 9007199254740992L",
    )
    (found,) = page["entities"]
    assert found["etag"] == etag
    assert found["properties"] == entity["properties"]
    assert page["cost"] == {
        "scope": "QUERY_SCOPE_PARTITION",
        "scanned": "1",
        "returned": "1",
        "bytes": page["cost"]["bytes"],
    }

    assert call("DeleteTable", table="Explored") == {}


def test_every_rpc_can_be_called_without_protos(explorer):
    calls = 0

    def call(method, request=None, **fields):
        nonlocal calls
        calls += 1
        return explorer.call(TABLE_SERVICE, method, fields if request is None else request)

    table, keys = {"table": "Every"}, {"partition_key": "p", "row_key": "r"}
    call("CreateTable", table={"name": "Every"})
    assert call("GetTable", **table)["table"]["name"] == "Every"
    assert {"Every"} <= {one["name"] for one in call("ListTables")["tables"]}
    call("SetTableAccessPolicies", **table, policies=[{"id": "one", "permissions": "r"}])
    assert call("GetTableAccessPolicies", **table)["policies"] == [
        {"id": "one", "permissions": "r"}
    ]

    call("InsertEntity", **table, entity=keys)
    call("UpdateEntity", **table, entity=keys, mode="WRITE_MODE_MERGE")
    call("UpsertEntity", **table, entity=keys, mode="WRITE_MODE_REPLACE")
    assert call("GetEntity", **table, **keys)["entity"]["row_key"] == "r"
    call("DeleteEntity", **table, **keys)
    operations = [
        {"insert": {"entity": {"partition_key": "p", "row_key": str(n)}}} for n in range(3)
    ]
    assert len(call("ExecuteBatch", **table, operations=operations)["results"]) == 3

    assert len(call("QueryEntities", **table)["entities"]) == 3
    streamed = call("StreamEntities", **table)
    assert sum(len(message.get("entities", [])) for message in streamed) == 3
    chunks = [{"chunk": {"entities": [{"partition_key": "q", "row_key": row}]}} for row in "12"]
    assert len(call("ImportEntities", [{"spec": table}, *chunks])) == 2
    assert (
        call("ExplainQuery", **table, filter="PartitionKey eq 'p'")["scope"]
        == "QUERY_SCOPE_PARTITION"
    )

    properties = call("GetServiceProperties")["properties"]
    call("SetServiceProperties", properties=properties)
    assert call("GetServiceStats")["engine"] == "fjall"
    call("DeleteTable", **table)
    assert calls == len(explorer.service(TABLE_SERVICE).methods)
