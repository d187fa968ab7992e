"""Tables and their access policies, through generated stubs."""

import grpc
import pytest

from entities import timestamp
from failures import rejected


def test_a_table_is_found_in_any_case_and_keeps_the_case_it_was_created_with(api, stub):
    created = stub.CreateTable(api.pb.CreateTableRequest(table=api.pb.Table(name="CamelCase"))).table

    found = stub.GetTable(api.pb.GetTableRequest(table="camelcase")).table
    assert found == created
    assert found.name == "CamelCase"
    assert found.create_time.seconds > 0

    stub.DeleteTable(api.pb.DeleteTableRequest(table="CAMELCASE"))
    with rejected(grpc.StatusCode.NOT_FOUND, "RESOURCE_NOT_FOUND"):
        stub.GetTable(api.pb.GetTableRequest(table="CamelCase"))


def test_a_second_table_of_the_name_is_rejected_with_both_codes(api, stub, table):
    with rejected(grpc.StatusCode.ALREADY_EXISTS, "TABLE_ALREADY_EXISTS") as failure:
        stub.CreateTable(api.pb.CreateTableRequest(table=api.pb.Table(name=table.upper())))

    assert failure.info.metadata["azureCode"] == "TableAlreadyExists"
    assert failure.info.metadata["httpStatus"] == "409"
    assert failure.resource.resource_type == "table"


@pytest.mark.parametrize(
    "name, reason",
    [
        ("ab", "OUT_OF_RANGE_INPUT"),
        ("a" * 64, "OUT_OF_RANGE_INPUT"),
        ("1abc", "INVALID_RESOURCE_NAME"),
        ("a-bc", "INVALID_RESOURCE_NAME"),
        ("tables", "INVALID_RESOURCE_NAME"),
    ],
)
def test_a_malformed_name_is_rejected_with_its_field(api, stub, name, reason):
    with rejected(grpc.StatusCode.INVALID_ARGUMENT, reason) as failure:
        stub.CreateTable(api.pb.CreateTableRequest(table=api.pb.Table(name=name)))

    assert failure.violations == ["table.name"]


def test_tables_are_listed_in_order_page_by_page(api, stub):
    names = ["PageC", "pagea", "pageB"]
    for name in names:
        stub.CreateTable(api.pb.CreateTableRequest(table=api.pb.Table(name=name)))

    request = api.pb.ListTablesRequest(
        filter="TableName ge 'page' and TableName lt 'pagf'", page_size=2
    )
    first = stub.ListTables(request)
    request.page_token = first.next_page_token
    second = stub.ListTables(request)

    assert [one.name for one in first.tables] == ["pagea", "pageB"]
    assert [one.name for one in second.tables] == ["PageC"]
    assert second.next_page_token == ""
    for name in names:
        stub.DeleteTable(api.pb.DeleteTableRequest(table=name))


def test_a_deleted_table_can_be_created_again_at_once_and_is_empty(api, stub, table):
    entity = api.entity.Entity(partition_key="p", row_key="r")
    stub.InsertEntity(api.pb.InsertEntityRequest(table=table, entity=entity))

    stub.DeleteTable(api.pb.DeleteTableRequest(table=table))
    stub.CreateTable(api.pb.CreateTableRequest(table=api.pb.Table(name=table)))

    assert not stub.QueryEntities(api.pb.QueryEntitiesRequest(table=table)).entities


def test_access_policies_are_returned_as_they_were_set(api, stub, table):
    policies = [
        api.policy.AccessPolicy(
            id="read", expiry_time=timestamp("2030-01-01T00:00:00Z"), permissions="r"
        ),
        api.policy.AccessPolicy(
            id="all", start_time=timestamp("2026-01-01T00:00:00Z"), permissions="raud"
        ),
    ]

    stub.SetTableAccessPolicies(
        api.pb.SetTableAccessPoliciesRequest(table=table, policies=policies)
    )

    stored = stub.GetTableAccessPolicies(api.pb.GetTableAccessPoliciesRequest(table=table))
    assert list(stored.policies) == policies


def test_a_sixth_access_policy_is_rejected(api, stub, table):
    policies = [api.policy.AccessPolicy(id=str(number), permissions="r") for number in range(6)]
    with rejected(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ACCESS_POLICY"):
        stub.SetTableAccessPolicies(
            api.pb.SetTableAccessPoliciesRequest(table=table, policies=policies)
        )
