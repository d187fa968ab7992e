"""Access to tables: keys, signatures of the account and of one table, ranges, stored policies."""

import base64
import datetime

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.data.tables import (
    TableAccessPolicy,
    TableSasPermissions,
    UpdateMode,
    generate_table_sas,
)

from azure_errors import forbidden, rejected
from signatures import CREDENTIAL, HOUR, NOW, of_account, of_table
from target import ACCOUNT

MISMATCH = "AuthorizationPermissionMismatch"


def entity(partition, row="r", **more):
    """An entity under a key."""
    return {"PartitionKey": partition, "RowKey": row, **more}


async def test_a_wrong_key_is_rejected(clients, table, name):
    wrong = AzureNamedKeyCredential(ACCOUNT, base64.b64encode(b"wrong").decode())
    stranger = clients.table(name, wrong)
    with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
        await stranger.get_entity("p", "r")
    with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
        await clients.tables(wrong).list_tables()


async def test_a_table_sas_permits_its_operations(clients, table, name):
    signed = clients.table(name, of_table(name))
    await signed.create_entity(entity("p", x=1))
    await signed.update_entity(entity("p", x=2))
    await signed.upsert_entity(entity("p", x=3), mode=UpdateMode.REPLACE)
    assert (await signed.get_entity("p", "r"))["x"] == 3
    assert len(await signed.query_entities("x eq 3")) == 1
    await signed.submit_transaction([("upsert", entity("p", "s")), ("delete", entity("p"))])
    await signed.delete_entity("p", "s")
    assert await table.list_entities() == []


async def test_a_sas_is_valid_for_every_case_of_the_table_name(clients, table, name):
    await table.create_entity(entity("p"))
    assert len(await clients.table(name.upper(), of_table(name)).list_entities()) == 1
    assert len(await clients.table(name, of_table(name.upper())).list_entities()) == 1


async def test_a_sas_in_the_uri_of_a_table_is_accepted(clients, table, name, target):
    await table.create_entity(entity("p"))
    signed = clients.from_url(f"{target.table}/{name}?{of_table(name)}")
    assert len(await signed.list_entities()) == 1


@pytest.mark.parametrize("permission", ["r", "a", "u", "d"])
async def test_a_sas_rejects_operations_it_does_not_permit(clients, table, name, permission):
    await table.create_entity(entity("p"))
    await table.create_entity(entity("removed"))
    sas = of_table(name, TableSasPermissions.from_string(permission))
    signed = clients.table(name, sas)
    calls = {
        "r": [lambda: signed.get_entity("p", "r"), lambda: signed.list_entities()],
        "a": [
            lambda: signed.create_entity(entity("new")),
            lambda: signed.submit_transaction([("create", entity("newer"))]),
        ],
        "u": [
            lambda: signed.update_entity(entity("p", x=1)),
            lambda: signed.submit_transaction([("update", entity("p", x=2))]),
        ],
        "d": [lambda: signed.delete_entity("removed", "r")],
        # An upsert needs both.
        "au": [lambda: signed.upsert_entity(entity("p", x=3))],
    }
    for needed, attempts in calls.items():
        for attempt in attempts:
            if needed == permission:
                await attempt()
                continue
            with forbidden(HttpResponseError, MISMATCH):
                await attempt()


async def test_a_table_sas_permits_nothing_else(clients, table, name):
    sas = of_table(name)
    await clients.tables().create_table(f"{name}x")
    with rejected(HttpResponseError, 403, "AuthorizationFailure", "AuthenticationFailed"):
        await clients.table(f"{name}x", sas).get_entity("p", "r")
    signed = clients.table(name, sas)
    for call in (
        lambda: clients.tables(sas).list_tables(),
        lambda: clients.tables(sas).create_table(f"{name}y"),
        lambda: signed.get_table_access_policy(),
        lambda: signed.set_table_access_policy({}),
        lambda: clients.tables(sas).get_service_properties(),
    ):
        with forbidden(HttpResponseError, "AuthorizationFailure"):
            await call()


async def test_a_sas_is_valid_from_start_to_expiry(clients, table, name):
    for limits in (
        {"expiry": NOW - HOUR},
        {"start": NOW + HOUR, "expiry": NOW + 2 * HOUR},
    ):
        with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
            await clients.table(name, of_table(name, **limits)).get_entity("p", "r")


async def test_an_altered_sas_is_rejected(clients, table, name):
    sas = of_table(name, TableSasPermissions(read=True)).replace("sp=r", "sp=raud")
    with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
        await clients.table(name, sas).get_entity("p", "r")


async def test_a_sas_is_valid_for_its_addresses(clients, table, name):
    await table.create_entity(entity("p"))
    for inside in ("127.0.0.1", "127.0.0.0-127.0.0.255"):
        signed = clients.table(name, of_table(name, ip_address_or_range=inside))
        assert len(await signed.list_entities()) == 1
    for outside in ("10.0.0.1", "10.0.0.0-10.255.255.255"):
        signed = clients.table(name, of_table(name, ip_address_or_range=outside))
        with rejected(HttpResponseError, 403, "AuthorizationSourceIPMismatch"):
            await signed.get_entity("p", "r")


async def test_a_sas_is_valid_for_its_protocol(clients, table, name):
    await table.create_entity(entity("p"))
    either = of_table(name, protocol="https,http")
    assert len(await clients.table(name, either).list_entities()) == 1
    with rejected(HttpResponseError, 403, "AuthorizationProtocolMismatch"):
        await clients.table(name, of_table(name, protocol="https")).get_entity("p", "r")


@pytest.mark.parametrize(
    ("limits", "inside"),
    [
        ({"start_pk": "b"}, ["b1", "b2", "c1", "c2"]),
        ({"end_pk": "b"}, ["a1", "a2", "b1", "b2"]),
        ({"start_pk": "b", "end_pk": "b"}, ["b1", "b2"]),
        ({"start_pk": "a", "start_rk": "2"}, ["a2", "b1", "b2", "c1", "c2"]),
        ({"end_pk": "c", "end_rk": "1"}, ["a1", "a2", "b1", "b2", "c1"]),
        ({"start_pk": "b", "start_rk": "2", "end_pk": "c", "end_rk": "1"}, ["b2", "c1"]),
    ],
)
async def test_a_key_range_applies_to_reads_writes_and_transactions(
    clients, table, name, limits, inside
):
    keys = [partition + row for partition in "abc" for row in "12"]
    for key in keys:
        await table.create_entity(entity(key[0], key[1], x=0))
    signed = clients.table(name, of_table(name, **limits))
    found = await signed.list_entities()
    assert [row["PartitionKey"] + row["RowKey"] for row in found] == inside
    assert [len(page) for page in await signed.pages("list_entities", results_per_page=1)] == [
        1
    ] * len(inside)
    for key in keys:
        calls = [
            lambda key=key: signed.get_entity(*key),
            lambda key=key: signed.update_entity(entity(*key, x=1)),
            lambda key=key: signed.upsert_entity(entity(*key, x=2)),
            lambda key=key: signed.submit_transaction([("update", entity(*key, x=3))]),
        ]
        for call in calls:
            if key in inside:
                await call()
                continue
            with forbidden(HttpResponseError, "AuthorizationFailure"):
                await call()
    rows = await table.list_entities()
    assert [row["x"] for row in rows] == [3 if key in inside else 0 for key in keys]


async def test_a_stored_policy_grants_and_revokes_access(clients, table, name):
    await table.create_entity(entity("p"))
    policy = TableAccessPolicy(start=NOW - HOUR, expiry=NOW + HOUR, permission="r")
    await table.set_table_access_policy({"reader": policy})
    sas = generate_table_sas(CREDENTIAL, name, policy_id="reader")
    signed = clients.table(name, sas)
    assert len(await signed.list_entities()) == 1
    with forbidden(HttpResponseError, MISMATCH):
        await signed.create_entity(entity("q"))
    await table.set_table_access_policy({})
    with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
        await signed.get_entity("p", "r")


async def test_rejects_an_expired_stored_policy(clients, table, name):
    policy = TableAccessPolicy(expiry=NOW - HOUR, permission="r")
    await table.set_table_access_policy({"late": policy})
    signed = clients.table(name, generate_table_sas(CREDENTIAL, name, policy_id="late"))
    with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
        await signed.get_entity("p", "r")


async def test_a_policy_and_its_signature_may_share_the_fields(clients, table, name):
    await table.create_entity(entity("p"))
    await table.set_table_access_policy({"only-permission": TableAccessPolicy(permission="r")})
    sas = generate_table_sas(CREDENTIAL, name, policy_id="only-permission", expiry=NOW + HOUR)
    assert len(await clients.table(name, sas).list_entities()) == 1


async def test_policies_survive_a_round_trip(table):
    start = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    policies = {
        "all": TableAccessPolicy(start=start, expiry=start + HOUR, permission="raud"),
        "permission": TableAccessPolicy(permission="r"),
        "nothing": None,
    }
    await table.set_table_access_policy(policies)
    got = await table.get_table_access_policy()
    assert set(got) == set(policies)
    assert (got["all"].start, got["all"].expiry) == (start, start + HOUR)
    assert got["all"].permission == "raud"
    assert got["permission"].permission == "r"
    await table.set_table_access_policy({})
    assert await table.get_table_access_policy() == {}


async def test_five_policies_fit_and_a_sixth_does_not(table):
    policies = {f"p{number}": TableAccessPolicy(permission="r") for number in range(5)}
    await table.set_table_access_policy(policies)
    with pytest.raises(ValueError, match="more than 5 access policies"):
        await table.set_table_access_policy({**policies, "sixth": policies["p0"]})
    assert set(await table.get_table_access_policy()) == set(policies)


async def test_an_account_sas_permits_its_operations(clients, name):
    service = clients.tables(of_account("rwdlacup"))
    table = await service.create_table(name)
    assert name in [item.name for item in await service.list_tables()]
    await service.get_service_properties()
    signed = clients.table(table.table_name, of_account("rwdlacup"))
    await signed.upsert_entity(entity("p"))
    await signed.submit_transaction([("create", entity("p", "s")), ("delete", entity("p"))])
    assert len(await signed.list_entities()) == 1
    await service.delete_table(name)


async def test_an_account_sas_rejects_other_operations(clients, table, name):
    await table.create_entity(entity("p"))
    readers = clients.table(name, of_account("r", "o"))
    assert len(await readers.list_entities()) == 1
    with forbidden(HttpResponseError, MISMATCH):
        await readers.create_entity(entity("q"))
    with rejected(HttpResponseError, 403, "AuthorizationResourceTypeMismatch"):
        await clients.table(name, of_account("r", "s")).get_entity("p", "r")
    with rejected(HttpResponseError, 403, "AuthorizationPermissionMismatch"):
        await clients.tables(of_account("r", "c")).create_table(f"{name}x")
    with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
        await clients.table(name, of_account("r", expiry=NOW - HOUR)).get_entity("p", "r")
    with rejected(HttpResponseError, 403, "AuthorizationFailure"):
        await clients.table(name, of_account("rwdlacup")).get_table_access_policy()


async def test_an_account_sas_is_valid_for_its_addresses(clients, table, name):
    sas = of_account("r", ip_address_or_range="10.0.0.1")
    with rejected(HttpResponseError, 403, "AuthorizationSourceIPMismatch"):
        await clients.table(name, sas).get_entity("p", "r")
