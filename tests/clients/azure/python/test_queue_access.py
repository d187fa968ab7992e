"""Access to queues: keys, signatures of the account and of one queue, stored policies."""

import base64
import datetime

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.queue import (
    AccessPolicy,
    AccountSasPermissions,
    QueueSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_queue_sas,
)

from azure_errors import forbidden, rejected
from target import ACCOUNT, KEY

NOW = datetime.datetime.now(datetime.timezone.utc)
HOUR = datetime.timedelta(hours=1)
MISMATCH = "AuthorizationPermissionMismatch"


def of_queue(name, permission="raup", **limits):
    """A signature for one queue, good for an hour."""
    limits.setdefault("expiry", NOW + HOUR)
    permission = QueueSasPermissions.from_string(permission)
    return generate_queue_sas(ACCOUNT, name, KEY, permission=permission, **limits)


def of_account(permission, resources="sco", **limits):
    """A signature of the account, good for an hour."""
    limits.setdefault("expiry", NOW + HOUR)
    types = ResourceTypes.from_string(resources)
    permission = AccountSasPermissions.from_string(permission)
    return generate_account_sas(ACCOUNT, KEY, types, permission, **limits)


async def test_a_wrong_key_is_rejected(clients, queue, name):
    from azure.core.credentials import AzureNamedKeyCredential

    wrong = AzureNamedKeyCredential(ACCOUNT, base64.b64encode(b"wrong").decode())
    with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
        await clients.queue(name, wrong).get_queue_properties()
    with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
        await clients.queues(wrong).list_queues()


async def test_a_queue_sas_permits_its_operations(clients, queue, name):
    signed = clients.queue(name, of_queue(name))
    await signed.send_message("a")
    assert (await signed.get_queue_properties()).approximate_message_count == 1
    assert len(await signed.peek_messages()) == 1
    got = await signed.receive_message()
    got = await signed.update_message(got, content="b")
    await signed.delete_message(got)
    assert await queue.peek_messages() == []


async def test_a_sas_in_the_uri_of_a_queue_is_accepted(clients, queue, name, target):
    await queue.send_message("a")
    from azure.storage.queue import QueueClient

    blocking = QueueClient.from_queue_url(f"{target.queue}/{name}?{of_queue(name)}")
    assert blocking.receive_message().content == "a"


@pytest.mark.parametrize("permission", ["r", "a", "u", "p"])
async def test_a_sas_rejects_operations_it_does_not_permit(clients, queue, name, permission):
    sent = [await queue.send_message(str(number)) for number in range(3)]
    signed = clients.queue(name, of_queue(name, permission))
    receipts = [(one.id, one.pop_receipt) for one in sent]
    calls = {
        "r": [signed.peek_messages, signed.get_queue_properties],
        "a": [lambda: signed.send_message("x")],
        "u": [lambda: signed.update_message(*receipts[0], "y", visibility_timeout=0)],
        "p": [lambda: signed.delete_message(*receipts[1]), signed.receive_message],
    }
    for needed, attempts in calls.items():
        for attempt in attempts:
            if needed == permission:
                await attempt()
                continue
            with forbidden(HttpResponseError, MISMATCH):
                await attempt()


async def test_a_queue_sas_permits_nothing_else(clients, queue, name):
    sas = of_queue(name)
    other = f"{name}-other"
    await clients.queue(other).create_queue()
    with forbidden(HttpResponseError, "AuthenticationFailed", "AuthorizationFailure"):
        await clients.queue(other, sas).peek_messages()
    signed = clients.queue(name, sas)
    for call in (
        lambda: clients.queues(sas).list_queues(),
        lambda: clients.queues(sas).create_queue(f"{name}-new"),
        lambda: clients.queues(sas).get_service_properties(),
        lambda: signed.set_queue_metadata({"a": "b"}),
        signed.clear_messages,
        signed.delete_queue,
        signed.get_queue_access_policy,
        lambda: signed.set_queue_access_policy({}),
    ):
        with forbidden(HttpResponseError, "AuthorizationFailure", MISMATCH, "AuthenticationFailed"):
            await call()


async def test_a_sas_is_valid_from_start_to_expiry(clients, queue, name):
    for limits in ({"expiry": NOW - HOUR}, {"start": NOW + HOUR, "expiry": NOW + 2 * HOUR}):
        with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
            await clients.queue(name, of_queue(name, **limits)).peek_messages()


async def test_an_altered_sas_is_rejected(clients, queue, name):
    sas = of_queue(name, "r").replace("sp=r", "sp=raup")
    with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
        await clients.queue(name, sas).peek_messages()


async def test_a_sas_is_valid_for_its_addresses_and_protocol(clients, queue, name):
    for inside in ({"ip": "127.0.0.1"}, {"ip": "127.0.0.0-127.0.0.255"}):
        assert await clients.queue(name, of_queue(name, **inside)).peek_messages() == []
    for outside in ({"ip": "10.0.0.1"}, {"ip": "10.0.0.0-10.255.255.255"}):
        with forbidden(HttpResponseError, "AuthorizationSourceIPMismatch"):
            await clients.queue(name, of_queue(name, **outside)).peek_messages()
    with forbidden(HttpResponseError, "AuthorizationProtocolMismatch"):
        await clients.queue(name, of_queue(name, protocol="https")).peek_messages()


async def test_a_stored_policy_grants_and_revokes_access(clients, queue, name):
    policy = AccessPolicy(permission="p", expiry=NOW + HOUR, start=NOW - HOUR)
    await queue.set_queue_access_policy({"worker": policy})
    sas = generate_queue_sas(ACCOUNT, name, KEY, policy_id="worker")
    signed = clients.queue(name, sas)
    assert await signed.receive_message() is None
    with forbidden(HttpResponseError, MISMATCH):
        await signed.peek_messages()
    await queue.set_queue_access_policy({})
    with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
        await signed.receive_message()


async def test_policies_survive_a_round_trip(queue):
    start = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    policies = {
        "all": AccessPolicy(permission="raup", start=start, expiry=start + HOUR),
        "permission": AccessPolicy(permission="r"),
        "nothing": AccessPolicy(),
    }
    await queue.set_queue_access_policy(policies)
    got = await queue.get_queue_access_policy()
    assert set(got) == set(policies)
    assert got["all"].permission == "raup"
    assert str(got["all"].start).startswith("2026-01-02T03:04:05")
    assert str(got["all"].expiry).startswith("2026-01-02T04:04:05")
    assert got["permission"].permission == "r"
    await queue.set_queue_access_policy({})
    assert await queue.get_queue_access_policy() == {}


async def test_five_policies_fit_and_a_sixth_does_not(queue):
    policies = {f"p{number}": AccessPolicy(permission="r") for number in range(5)}
    await queue.set_queue_access_policy(policies)
    with rejected(HttpResponseError, 400, "InvalidXmlDocument"):
        await queue.set_queue_access_policy({**policies, "sixth": policies["p0"]})
    assert set(await queue.get_queue_access_policy()) == set(policies)


async def test_an_account_sas_permits_its_operations(clients, name):
    sas = of_account("rwdlacup")
    service = clients.queues(sas)
    await service.create_queue(name)
    assert name in [queue.name for queue in await service.list_queues()]
    signed = clients.queue(name, sas)
    await signed.set_queue_metadata({"a": "b"})
    await signed.send_message("x")
    got = await signed.receive_message()
    await signed.delete_message(await signed.update_message(got, content="y"))
    await signed.clear_messages()
    await service.get_service_properties()
    await service.delete_queue(name)


async def test_an_account_sas_rejects_other_operations(clients, queue, name):
    await queue.send_message("x")
    reader = clients.queue(name, of_account("r", "o"))
    assert len(await reader.peek_messages()) == 1
    with forbidden(HttpResponseError, MISMATCH):
        await reader.send_message("y")
    with forbidden(HttpResponseError, "AuthorizationResourceTypeMismatch"):
        await reader.get_queue_properties()
    with forbidden(HttpResponseError, "AuthorizationServiceMismatch"):
        await clients.queue(name, of_account("r", services="b")).peek_messages()
    # Clearing a queue is an operation on its messages.
    await clients.queue(name, of_account("d", "o")).clear_messages()
    with forbidden(HttpResponseError, "AuthorizationFailure"):
        await clients.queue(name, of_account("rwdlacup")).get_queue_access_policy()
