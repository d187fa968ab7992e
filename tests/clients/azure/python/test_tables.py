"""Tables: created, listed, deleted, found by any spelling of their name, rejected by rule."""

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from azure_errors import rejected


async def test_a_table_is_created_listed_and_deleted(clients, name):
    service = clients.tables()
    made = await service.create_table(name)
    assert made.table_name == name
    assert name in [item.name for item in await service.list_tables()]
    await service.delete_table(name)
    assert name not in [item.name for item in await service.list_tables()]


async def test_the_client_of_a_table_creates_and_deletes_it(clients, name):
    table = clients.table(name)
    assert (await table.create_table()).name == name
    await table.delete_table()
    with rejected(ResourceNotFoundError, 404, "TableNotFound"):
        await table.create_entity({"PartitionKey": "p", "RowKey": "r"})


async def test_a_second_table_of_a_name_is_a_conflict(clients, table, name):
    for spelling in (name, name.upper()):
        with rejected(ResourceExistsError, 409, "TableAlreadyExists"):
            await clients.tables().create_table(spelling)


async def test_create_if_not_exists_takes_a_table_that_exists(clients, table, name):
    again = await clients.tables().create_table_if_not_exists(name)
    assert again.table_name == name


async def test_deleting_a_missing_table_succeeds(clients, name):
    # The library takes the 404 for success, and only the 404.
    await clients.tables().delete_table(name)
    statuses = []
    hook = {"raw_response_hook": lambda answer: statuses.append(answer.http_response.status_code)}
    await clients.tables().delete_table(name, **hook)
    assert statuses == [404]


async def test_table_names_are_case_insensitive(clients, name):
    created = clients.table(f"Case{name}")
    await created.create_table()
    other = clients.table(f"cASE{name}")
    await other.create_entity({"PartitionKey": "p", "RowKey": "r", "x": 1})
    assert (await created.get_entity("p", "r"))["x"] == 1
    assert len(await other.list_entities()) == 1
    assert await clients.table(f"CASE{name}").get_table_access_policy() == {}
    names = [item.name for item in await clients.tables().list_tables()]
    assert f"Case{name}" in names, "a list has the name as it was created"


@pytest.mark.parametrize("bad", ["1abc", "a-b", "a_b", "täble"])
async def test_a_name_with_a_wrong_character_is_rejected(clients, bad):
    # The library finds the rule itself once the service has answered InvalidResourceName.
    with pytest.raises(ValueError, match="alphanumeric"):
        await clients.tables().create_table(bad)
    with pytest.raises(ValueError, match="alphanumeric"):
        await clients.table(bad).create_entity({"PartitionKey": "p", "RowKey": "r"})


@pytest.mark.parametrize("bad", ["ab", "a" * 64])
async def test_a_name_of_a_wrong_length_is_rejected(clients, bad):
    with pytest.raises(ValueError, match="between 3-63"):
        await clients.tables().create_table(bad)


async def test_the_reserved_name_is_rejected(clients):
    with pytest.raises((HttpResponseError, ValueError)):
        await clients.tables().create_table("Tables")
    assert "Tables" not in [item.name for item in await clients.tables().list_tables()]


async def test_tables_are_listed_page_by_page_in_order(clients, name):
    service = clients.tables()
    made = [f"{name}p{number}" for number in range(5)]
    for one in reversed(made):
        await service.create_table(one)
    expected = f"TableName ge '{name}p' and TableName lt '{name}q'"
    pages = await service.pages("query_tables", expected, results_per_page=2)
    assert [[item.name for item in page] for page in pages] == [made[:2], made[2:4], made[4:]]


async def test_a_list_of_tables_continues_from_a_token(clients, name):
    service = clients.tables()
    made = [f"{name}t{number}" for number in range(3)]
    for one in made:
        await service.create_table(one)
    expected = f"TableName ge '{name}t' and TableName lt '{name}u'"
    first, token = await service.page("query_tables", expected, results_per_page=2)
    assert [item.name for item in first] == made[:2] and token
    # What the token leads to is deleted between the pages.
    await service.delete_table(made[2])
    await service.create_table(f"{name}t9")
    second, token = await service.page("query_tables", expected, results_per_page=2, token=token)
    assert [item.name for item in second] == [f"{name}t9"] and not token


async def test_a_filter_on_names_has_parameters(clients, table, name):
    found = await clients.tables().query_tables("TableName eq @name", parameters={"name": name})
    assert [item.name for item in found] == [name]


async def test_a_filter_on_other_fields_than_the_name_is_rejected(clients, table):
    with rejected(HttpResponseError, 400, "InvalidInput"):
        await clients.tables().query_tables("Color eq 'red'")


async def test_a_deleted_name_is_free_at_once_and_the_table_empty(clients, table, name):
    await table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    await table.delete_table()
    await table.create_table()
    assert await table.list_entities() == []


async def test_a_creation_is_201_with_a_location(clients, name, target):
    responses = []
    hook = {"raw_response_hook": lambda answer: responses.append(answer.http_response)}
    await clients.tables().create_table(name, **hook)
    assert responses[0].status_code == 201
    assert responses[0].headers["Location"] == f"{target.table}/Tables('{name}')"
    assert responses[0].headers["x-ms-request-id"]
    assert responses[0].headers["x-ms-version"] == "2019-02-02"
    assert responses[0].headers["Cache-Control"] == "no-cache"
    assert responses[0].headers["X-Content-Type-Options"] == "nosniff"
