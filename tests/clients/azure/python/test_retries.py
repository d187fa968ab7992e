"""Retries of the clients while a server is busy, and data after a crash."""

import pathlib
import re

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock

from clients import clients_of
from proxy import proxy_to
from target import ACCOUNT, KEY

QUICK = {"retry_total": 6, "retry_backoff_factor": 0.05, "initial_backoff": 0.05}
# More than is stored beside the properties of a blob.
LARGE = bytes(range(256)) * 4096


async def test_a_table_client_tries_again_while_the_service_is_busy(clients, target, name):
    with proxy_to(target.table_address) as proxy:
        table = clients.table(name, endpoint=f"http://{proxy.address}/{ACCOUNT}", **QUICK)
        await table.create_table()
        proxy.fail(2)
        await table.create_entity({"PartitionKey": "p", "RowKey": "r"})
        proxy.fail(1)
        assert len(await table.list_entities()) == 1
        proxy.fail(1)
        await table.submit_transaction([("upsert", {"PartitionKey": "p", "RowKey": "r"})])
        assert len(proxy.requests) == 1 + 3 + 2 + 2


async def test_a_client_without_retries_reports_that_the_service_is_busy(
    clients, target, name
):
    with proxy_to(target.table_address) as proxy:
        table = clients.table(name, endpoint=f"http://{proxy.address}/{ACCOUNT}")
        proxy.fail(1)
        with pytest.raises(HttpResponseError) as raised:
            await table.get_entity("p", "r")
        assert raised.value.status_code == 503


async def test_a_queue_client_tries_again_while_the_service_is_busy(clients, target, name):
    with proxy_to(target.queue_address) as proxy:
        endpoint = f"http://{proxy.address}/{ACCOUNT}"
        queue = clients.queue(name, endpoint=endpoint, retry_policy=None, **QUICK)
        await queue.create_queue()
        proxy.fail(2)
        await queue.send_message("once")
        proxy.fail(1)
        assert [message.content for message in await queue.receive_messages()] == ["once"]
        assert proxy.requests[1][0] == "POST" and len(proxy.requests) >= 6


async def test_a_blob_client_tries_again_while_the_service_is_busy(clients, target, name):
    at_once = {**QUICK, "increment_base": 0, "random_jitter_range": 0}
    with proxy_to(target.blob_address) as proxy:
        endpoint = f"http://{proxy.address}/{ACCOUNT}"
        blob = clients.blob(name, "blob", endpoint=endpoint, max_block_size=1000, **at_once)
        await clients.blobs().create_container(name)
        proxy.fail(2)
        await blob.upload_blob(b"once")
        proxy.fail(1)
        assert await blob.read() == b"once"
        proxy.fail(1)
        await blob.stage_block("a", b"block")
        proxy.fail(1)
        await blob.commit_block_list([BlobBlock("a")])
        assert await blob.read() == b"block"
        methods = [method for method, _ in proxy.requests]
        assert methods == ["PUT"] * 3 + ["GET"] * 2 + ["PUT"] * 4 + ["GET"]


async def test_a_client_succeeds_over_quota_by_retrying_after_the_delay(
    flavour, start, name, only_trestle
):
    settings = {
        "TRESTLE__QUOTAS__PARTITION_ENTITIES_PER_SECOND": "20",
        "TRESTLE__QUOTAS__PARTITION_BURST_ENTITIES": "20",
    }
    limited = start(settings=settings)
    async with clients_of(flavour, limited) as clients:
        imretrying = clients.table(name)
        await imretrying.create_table()
        rows = [{"PartitionKey": "hot", "RowKey": f"{number:02}"} for number in range(20)]
        errors = []
        for row in rows * 3:
            try:
                await imretrying.upsert_entity(row)
            except HttpResponseError as error:
                errors.append(error)
        assert errors, "60 writes at 20 a second go over the limit"
        for error in errors:
            assert (error.status_code, error.error_code) == (503, "ServerBusy")
            assert int(error.response.headers["Retry-After"]) >= 1
        retrying = clients.table(name, retry_total=10)
        for row in rows[:5]:
            await retrying.upsert_entity({**row, "kept": True})
        # Another partition is not throttled.
        await imretrying.create_entity({"PartitionKey": "cool", "RowKey": "r"})


# Where `UseDevelopmentStorage=true` leads.
ADDRESSES = {"table": "127.0.0.1:10002", "queue": "127.0.0.1:10001", "blob": "127.0.0.1:10000"}


async def test_acknowledged_writes_survive_a_crash_of_the_server(flavour, start):
    server = start(**ADDRESSES)
    async with clients_of(flavour, server) as clients:
        string = "UseDevelopmentStorage=true"
        orders = clients.from_connection_string("TableClient", string, "orders")
        jobs = clients.from_connection_string("QueueClient", string, "jobs")
        await orders.create_table()
        await jobs.create_queue()
        for number in range(50):
            keys = {"PartitionKey": "c42", "RowKey": f"{number:04}"}
            await orders.create_entity({**keys, "state": "open"})
            await jobs.send_message(f"ship {number}")
        received = await jobs.receive_message(visibility_timeout=600)
        server.kill()
        start(**ADDRESSES)
        assert len(await orders.query_entities("state eq 'open'")) == 50
        await jobs.delete_message(received)
        left = await jobs.receive_messages(messages_per_page=32)
        assert sorted(message.content for message in left) == sorted(
            f"ship {number}" for number in range(50) if f"ship {number}" != received.content
        )


async def test_acknowledged_blobs_survive_a_crash_of_the_server(flavour, start, name):
    server = start()
    async with clients_of(flavour, server) as clients:
        container = clients.container(name)
        await container.create_container(metadata={"a": "b"})
        for number in range(20):
            await container.upload_blob(f"small {number}", b"x" * number, tags={"of": "all"})
        await container.upload_blob("large", LARGE)
        log, staged = container.within("log"), container.within("staged")
        await log.create_append_blob()
        for number in range(20):
            await log.append_block(f"{number:02};")
        await staged.stage_block("a", LARGE)
        snapshot = await log.create_snapshot()
        lease = await container.within("large").acquire_lease()
        server.kill()
    async with clients_of(flavour, start()) as clients:
        container = clients.container(name)
        assert (await container.get_container_properties()).metadata == {"a": "b"}
        assert len(await container.list_blobs()) == 22
        for number in range(20):
            assert await container.read(f"small {number}") == b"x" * number
        assert len(await container.find_blobs_by_tags("\"of\" = 'all'")) == 20
        expected = "".join(f"{number:02};" for number in range(20)).encode()
        assert await container.read("log") == expected
        assert await container.within("log", snapshot=snapshot).read() == expected
        await container.within("staged").commit_block_list([BlobBlock("a")])
        assert await container.read("staged") == await container.read("large") == LARGE
        with pytest.raises(HttpResponseError) as raised:
            await container.delete_blob("large")
        assert raised.value.error_code == "LeaseIdMissing"
        await container.delete_blob("large", lease=lease)


def program(page):
    """The only program of a page in Python."""
    root = pathlib.Path(__file__).resolve().parents[4]
    (block,) = re.findall(r"```python\n(.*?)```", (root / page).read_text(encoding="utf-8"), re.DOTALL)
    assert "UseDevelopmentStorage" in block
    return compile(block, page, "exec")


def test_the_programs_of_the_pages_run(start, capsys):
    server = start(**ADDRESSES)
    exec(program("README.md"), {})
    server.kill()
    start(**ADDRESSES)
    exec(program("docs/azure-compatibility.md"), {})
    assert capsys.readouterr().out == "to: Ada Lovelace\nship 0001 was open\n"


async def test_the_clients_of_a_connection_string_have_the_key_of_the_account(clients):
    string = f"AccountName={ACCOUNT};AccountKey={KEY};EndpointSuffix=core.windows.net"
    service = clients.from_connection_string("TableServiceClient", string)
    assert service.url == f"https://{ACCOUNT}.table.core.windows.net"
