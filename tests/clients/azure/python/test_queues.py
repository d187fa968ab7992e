"""Queues: created, listed, described, deleted, rejected by rule."""

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from azure_errors import rejected


def status_hook(statuses):
    """The option that records the status of each response."""
    return {"raw_response_hook": lambda answer: statuses.append(answer.http_response.status_code)}


async def test_a_queue_is_created_listed_and_deleted(clients, name):
    service = clients.queues()
    await service.create_queue(name)
    assert name in [queue.name for queue in await service.list_queues()]
    await service.delete_queue(name)
    assert name not in [queue.name for queue in await service.list_queues()]


async def test_creating_a_queue_again_is_201_then_204_then_a_conflict(clients, name):
    statuses = []
    queue = clients.queue(name)
    await queue.create_queue(metadata={"owner": "a"}, **status_hook(statuses))
    # The library takes the 204 for the conflict that it is not.
    with rejected(ResourceExistsError, 204, "QueueAlreadyExists"):
        await queue.create_queue(metadata={"owner": "a"}, **status_hook(statuses))
    assert statuses == [201, 204]
    for other in ({"owner": "b"}, {}, {"owner": "a", "more": "x"}):
        with rejected(ResourceExistsError, 409, "QueueAlreadyExists"):
            await queue.create_queue(metadata=other)
    assert (await queue.get_queue_properties()).metadata == {"owner": "a"}


async def test_metadata_of_a_queue_is_replaced_whole(clients, queue):
    assert (await queue.get_queue_properties()).metadata == {}
    await queue.set_queue_metadata({"first": "1", "Second": "two words"})
    got = (await queue.get_queue_properties()).metadata
    assert {name.lower(): value for name, value in got.items()} == {
        "first": "1",
        "second": "two words",
    }
    await queue.set_queue_metadata({"third": "3"})
    assert (await queue.get_queue_properties()).metadata == {"third": "3"}
    await queue.set_queue_metadata()
    assert (await queue.get_queue_properties()).metadata == {}


async def test_metadata_with_a_wrong_name_or_too_large_is_rejected(clients, queue):
    with rejected(HttpResponseError, 400, "InvalidMetadata"):
        await queue.set_queue_metadata({"1st": "x"})
    with rejected(HttpResponseError, 400, "MetadataTooLarge"):
        await queue.set_queue_metadata({f"n{number}": "x" * 1024 for number in range(9)})


async def test_queues_are_listed_by_prefix_page_by_page_with_metadata(clients, name):
    service = clients.queues()
    made = [f"{name}-q{number}" for number in range(5)]
    for one in reversed(made):
        await service.create_queue(one, metadata={"is": one})
    pages = await service.pages(
        "list_queues", name_starts_with=f"{name}-q", include_metadata=True, results_per_page=2
    )
    assert [[queue.name for queue in page] for page in pages] == [made[:2], made[2:4], made[4:]]
    assert [queue.metadata for page in pages for queue in page] == [{"is": one} for one in made]
    plain = await service.list_queues(name_starts_with=f"{name}-q")
    assert not any(queue.metadata for queue in plain)


async def test_a_list_of_queues_continues_past_deleted_queues(clients, name):
    service = clients.queues()
    for number in range(4):
        await service.create_queue(f"{name}-d{number}")
    expected = {"name_starts_with": f"{name}-d", "results_per_page": 2}
    first, token = await service.page("list_queues", **expected)
    await service.delete_queue(f"{name}-d2")
    second, token = await service.page("list_queues", token=token, **expected)
    assert [queue.name for queue in first + second] == [f"{name}-d{n}" for n in (0, 1, 3)]
    assert not token


@pytest.mark.parametrize("results", [0, 5001])
async def test_the_page_size_of_queues_is_limited(clients, results):
    with rejected(HttpResponseError, 400, "OutOfRangeQueryParameterValue"):
        await clients.queues().pages("list_queues", results_per_page=results)


@pytest.mark.parametrize("bad", ["Upper", "a--b", "-ab", "ab-", "a_b", "a.b"])
async def test_a_queue_with_a_wrong_character_is_rejected(clients, bad):
    with rejected(HttpResponseError, 400, "InvalidResourceName"):
        await clients.queue(bad).create_queue()


@pytest.mark.parametrize("bad", ["ab", "a" * 64])
async def test_a_queue_with_a_name_of_a_wrong_length_is_rejected(clients, bad):
    with rejected(HttpResponseError, 400, "OutOfRangeInput"):
        await clients.queue(bad).create_queue()


async def test_every_operation_on_a_missing_queue_is_not_found(clients, queue, name):
    sent = await queue.send_message("x")
    await queue.delete_queue()
    for call in (
        queue.get_queue_properties,
        queue.delete_queue,
        queue.set_queue_metadata,
        queue.get_queue_access_policy,
        lambda: queue.set_queue_access_policy({}),
        lambda: queue.send_message("x"),
        queue.receive_message,
        queue.receive_messages,
        queue.peek_messages,
        queue.clear_messages,
        lambda: queue.delete_message(sent.id, sent.pop_receipt),
        lambda: queue.update_message(sent.id, sent.pop_receipt),
    ):
        with rejected(ResourceNotFoundError, 404, "QueueNotFound"):
            await call()


async def test_a_deleted_queue_is_free_at_once_and_empty(clients, queue):
    await queue.send_message("old")
    await queue.delete_queue()
    await queue.create_queue()
    assert await queue.peek_messages() == []
    assert (await queue.get_queue_properties()).approximate_message_count == 0
