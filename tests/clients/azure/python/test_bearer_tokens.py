"""The clients over TLS with tokens of an issuer on this machine, and their user delegation keys."""

import datetime
import os
import subprocess
import time

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.blob import generate_blob_sas, generate_container_sas
from azure.storage.queue import generate_queue_sas

from azure_errors import rejected
from clients import clients_of
from test_encryption import certificate

ACCOUNT = "acme"
KEY = "a2V5IG9mIGFuIGFjY291bnQgb2YgdGhpcnR5LXR3byBieXRlcw=="
ISSUER = "https://localhost/laptop"
HOUR = datetime.timedelta(hours=1)


def trestle(*words):
    """The output of a command."""
    command = [os.environ["TRESTLE_BIN"], *(str(word) for word in words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class LocalToken:
    """A credential with a token of the issuer, for the blocking clients."""

    def __init__(self, folder, role):
        claims = ["--issuer", ISSUER, "--audience", "trestle", "--subject", "me", "--role", role]
        made = trestle("token", "create", "--key", folder / "private.pem", *claims)
        self._token = AccessToken(made, int(time.time()) + 3600)

    def get_token(self, *_scopes, **_options):
        return self._token


class LocalTokenAsync(LocalToken):
    """The same for those for asyncio."""

    async def get_token(self, *_scopes, **_options):
        return self._token

    async def close(self):
        pass


@pytest.fixture
async def by_role(flavour, start, tmp_path_factory, only_trestle):
    """The clients of a server over TLS, and the options of one for a role; without it, of none."""
    folder = tmp_path_factory.mktemp("issuer")
    trestle("token", "keys", "--out", folder)
    cert, key = certificate(folder, "own")
    section = "TRESTLE__GATEWAY__ISSUERS__LAPTOP__"
    server = start(
        settings={
            "TRESTLE__TLS__CERT_FILE": cert,
            "TRESTLE__TLS__KEY_FILE": key,
            "TRESTLE__ACCOUNTS__ACME__KEY1": KEY,
            f"{section}ISSUER": ISSUER,
            f"{section}AUDIENCE": "trestle",
            f"{section}ACCOUNTS": ACCOUNT,
            f"{section}JWKS_FILE": str(folder / "jwks.json"),
        }
    )
    token = LocalTokenAsync if flavour == "asyncio" else LocalToken
    endpoints = {"blob": server.blob_address, "queue": server.queue_address}

    def options(service="blob", role=None):
        endpoint = f"https://{endpoints[service]}/{ACCOUNT}"
        credential = {"credential": token(folder, role)} if role else {}
        return {"endpoint": endpoint, "connection_verify": cert, **credential}

    async with clients_of(flavour, server) as clients:
        yield clients, options


def times():
    """Start and expiry of a key."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return now - datetime.timedelta(minutes=1), now + HOUR


async def test_a_token_permits_what_its_role_does(by_role, name):
    clients, options = by_role
    container = clients.container(name, **options(role="contributor"))
    await container.create_container()
    await container.upload_blob("a", b"content")
    reader = clients.container(name, **options(role="reader"))
    assert await reader.read("a") == b"content"
    with rejected(HttpResponseError, 403, "AuthorizationPermissionMismatch"):
        await reader.upload_blob("b", b"x")
    with rejected(HttpResponseError, 403, "AuthorizationPermissionMismatch"):
        await clients.container(name, **options(role="delegator")).read("a")


async def test_a_user_delegation_key_signs_for_its_role_at_most(by_role, name):
    clients, options = by_role
    container = clients.container(name, **options(role="owner"))
    await container.create_container()
    await container.upload_blob("dir/a b", b"content")
    mismatch = (HttpResponseError, 403, "AuthorizationPermissionMismatch")
    for role, reads, writes in (
        ("delegator", False, False),
        ("reader", True, False),
        ("contributor", True, True),
    ):
        service = clients.blobs(**options(role=role))
        key = await service.get_user_delegation_key(*times())
        assert (key.signed_oid, key.signed_tid, key.signed_service) == ("me", ISSUER, "b")
        terms = {"user_delegation_key": key, "permission": "rw", "expiry": times()[1]}
        of_blob = generate_blob_sas(ACCOUNT, name, "dir/a b", **terms)
        of_container = generate_container_sas(ACCOUNT, name, **terms, content_type="text/plain")
        for client in (
            clients.blob(name, "dir/a b", of_blob, **options()),
            clients.container(name, of_container, **options()).within("dir/a b"),
        ):
            if reads:
                assert await client.read() == b"content"
            else:
                with rejected(*mismatch):
                    await client.read()
            if writes:
                await client.upload_blob(b"content", overwrite=True)
            else:
                with rejected(*mismatch):
                    await client.upload_blob(b"other", overwrite=True)
        with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
            await clients.blob(name, "other", of_blob, **options()).read()
        changed = of_blob.replace("sp=rw", "sp=rwd")
        with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
            await clients.blob(name, "dir/a b", changed, **options()).read()


async def test_a_signature_ends_with_its_user_delegation_key(by_role, name):
    clients, options = by_role
    container = clients.container(name, **options(role="owner"))
    await container.create_container()
    await container.upload_blob("a", b"content")
    service = clients.blobs(**options(role="reader"))
    start, later = times()
    now = datetime.datetime.now(datetime.timezone.utc)
    key = await service.get_user_delegation_key(start, now + datetime.timedelta(seconds=2))
    sas = generate_blob_sas(
        ACCOUNT, name, "a", user_delegation_key=key, permission="r", expiry=later
    )
    client = clients.blob(name, "a", sas, **options())
    deadline = time.monotonic() + 30
    with rejected(ClientAuthenticationError, 403, "AuthenticationFailed"):
        while time.monotonic() < deadline:
            assert await client.read() == b"content"


async def test_a_key_for_longer_than_a_week_is_rejected(by_role):
    clients, options = by_role
    service = clients.blobs(**options(role="owner"))
    start, _ = times()
    with rejected(HttpResponseError, 400, "InvalidXmlNodeValue"):
        await service.get_user_delegation_key(start, start + datetime.timedelta(days=8))
    owner = AzureNamedKeyCredential(ACCOUNT, KEY)
    with rejected(HttpResponseError, 403, "AuthorizationFailure"):
        await clients.blobs(owner, **options()).get_user_delegation_key(*times())


async def test_a_user_delegation_key_of_queues_signs_for_one(by_role, name):
    clients, options = by_role
    queue = clients.queue(name, **options("queue", "contributor"))
    await queue.create_queue()
    await queue.send_message("x")
    start, expiry = times()
    for role, receives in (("reader", False), ("contributor", True)):
        service = clients.queues(**options("queue", role))
        key = await service.get_user_delegation_key(expiry=expiry, start=start)
        assert key.signed_service == "q"
        terms = {"user_delegation_key": key, "permission": "rp", "expiry": expiry}
        sas = generate_queue_sas(ACCOUNT, name, **terms)
        signed = clients.queue(name, sas, **options("queue"))
        assert [message.content for message in await signed.peek_messages()] == ["x"]
        if receives:
            assert [message.content for message in await signed.receive_messages()] == ["x"]
        else:
            with rejected(HttpResponseError, 403, "AuthorizationPermissionMismatch"):
                await signed.receive_messages()
