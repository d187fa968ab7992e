"""Messages: sent, received, peeked, changed, deleted, counted, expired."""

import asyncio
import datetime

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.queue import (
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    TextBase64DecodePolicy,
    TextBase64EncodePolicy,
)

from azure_errors import rejected

WEEK = datetime.timedelta(days=7)
SECOND = datetime.timedelta(seconds=1)
OUT = "OutOfRangeQueryParameterValue"
INVALID = "InvalidQueryParameterValue"


async def received(queue, **options):
    """The messages of one call, as a list."""
    return await queue.receive_messages(**options)


async def test_a_message_is_sent_received_and_deleted(queue):
    sent = await queue.send_message("hello")
    assert sent.id and sent.pop_receipt
    assert sent.expires_on - sent.inserted_on == WEEK
    got = await queue.receive_message()
    assert (got.id, got.content, got.dequeue_count) == (sent.id, "hello", 1)
    assert got.inserted_on == sent.inserted_on
    assert got.pop_receipt != sent.pop_receipt
    timeout = got.next_visible_on - datetime.datetime.now(datetime.timezone.utc)
    assert 20 * SECOND < timeout <= 31 * SECOND, "the default visibility timeout is 30 s"
    assert await queue.receive_message() is None
    await queue.delete_message(got)
    with rejected(ResourceNotFoundError, 404, "MessageNotFound"):
        await queue.delete_message(got)


@pytest.mark.parametrize(
    "text",
    [
        "plain", " both sides ", "a\nb", "a\r\nb", "a\rb", "\ttab", "<a href='x'>&amp;</a>",
        "]]>", '"', "\U0001f600 ä € 日本", "&#xD;", "x" * 65536, "ä" * 32768, "{\"json\": [1]}",
        "-", "\u0085\u2028", "%41+b",
    ],
)
async def test_the_text_of_a_message_survives_a_round_trip(queue, text):
    await queue.send_message(text)
    assert (await queue.peek_messages())[0].content == text
    got = await queue.receive_message()
    assert got.content == text
    await queue.update_message(got, content=text + "!" if len(text) < 1000 else text)


async def test_an_empty_text_is_a_message(queue):
    await queue.send_message("")
    assert not (await queue.receive_message()).content


async def test_the_text_of_a_message_is_limited(queue):
    for large in ("x" * 65537, "ä" * 32769, "x" * 200_000):
        with rejected(HttpResponseError, 413, "RequestBodyTooLarge"):
            await queue.send_message(large)
    assert await queue.peek_messages() == []


async def test_a_text_that_no_xml_can_hold_is_rejected(queue):
    with rejected(HttpResponseError, 400, "InvalidXmlDocument"):
        await queue.send_message("bell \x07")


async def test_bytes_and_text_are_base64_when_the_client_encodes_them(clients, queue, name):
    data = bytes(range(256))
    binary = clients.queue(
        name,
        message_encode_policy=BinaryBase64EncodePolicy(),
        message_decode_policy=BinaryBase64DecodePolicy(),
    )
    await binary.send_message(data)
    got = await binary.receive_message()
    assert got.content == data
    await binary.delete_message(got)
    text = clients.queue(
        name,
        message_encode_policy=TextBase64EncodePolicy(),
        message_decode_policy=TextBase64DecodePolicy(),
    )
    await text.send_message("bell \x07")
    assert (await text.peek_messages())[0].content == "bell \x07"
    assert (await queue.receive_message()).content == "YmVsbCAH"


async def test_messages_are_received_in_the_order_in_which_they_were_sent(queue):
    for number in range(40):
        await queue.send_message(str(number))
    pages = await queue.pages("receive_messages", messages_per_page=32)
    texts = [message.content for page in pages for message in page]
    assert texts == [str(number) for number in range(40)]
    receipts = [message.pop_receipt for page in pages for message in page]
    assert len(set(receipts)) == 40, "each message has a receipt of its own"


async def test_the_number_of_messages_is_limited(queue):
    for number in range(3):
        await queue.send_message(str(number))
    assert len(await received(queue, max_messages=2)) == 2
    for wrong in (33, 0):
        with rejected(HttpResponseError, 400, OUT):
            await received(queue, messages_per_page=wrong)
    with rejected(HttpResponseError, 400, OUT):
        await queue.peek_messages(max_messages=0)
    with pytest.raises(ValueError, match="between 1 and 32"):
        await queue.peek_messages(max_messages=33)


async def test_a_peek_changes_nothing_and_returns_no_receipt(queue):
    for number in range(3):
        await queue.send_message(str(number))
    for _ in range(2):
        peeked = await queue.peek_messages(max_messages=32)
        assert [message.content for message in peeked] == ["0", "1", "2"]
        assert [message.dequeue_count for message in peeked] == [0, 0, 0]
        assert not any(message.pop_receipt for message in peeked)


async def test_a_send_receipt_is_valid_at_once(queue):
    sent = await queue.send_message("a")
    await queue.delete_message(sent.id, sent.pop_receipt)
    sent = await queue.send_message("b")
    updated = await queue.update_message(sent.id, sent.pop_receipt, "c", visibility_timeout=0)
    assert (await queue.receive_message()).content == "c"
    assert updated.pop_receipt != sent.pop_receipt


async def test_an_update_returns_a_new_receipt_and_invalidates_the_old(queue):
    await queue.send_message("a")
    got = await queue.receive_message(visibility_timeout=60)
    old = got.pop_receipt
    updated = await queue.update_message(got, content="b", visibility_timeout=60)
    assert updated.pop_receipt != old and updated.content == "b"
    with rejected(ResourceNotFoundError, 404, "MessageNotFound"):
        await queue.delete_message(got.id, old)
    with rejected(ResourceNotFoundError, 404, "MessageNotFound"):
        await queue.update_message(got.id, old, "c")
    await queue.delete_message(got.id, updated.pop_receipt)


async def test_an_update_without_text_keeps_it_and_0_makes_it_visible(queue):
    await queue.send_message("kept")
    got = await queue.receive_message(visibility_timeout=600)
    await queue.update_message(got.id, got.pop_receipt, visibility_timeout=0)
    again = await queue.receive_message()
    assert (again.content, again.dequeue_count) == ("kept", 2)


async def test_a_message_that_is_not_deleted_is_received_again(queue):
    await queue.send_message("again")
    first = await queue.receive_message(visibility_timeout=1)
    await asyncio.sleep(2)
    second = await queue.receive_message(visibility_timeout=1)
    assert (second.id, second.dequeue_count) == (first.id, 2)
    with rejected(ResourceNotFoundError, 404, "MessageNotFound"):
        await queue.delete_message(first)
    await asyncio.sleep(2)
    # No consumer received it since: the receipt is valid after its visibility timeout.
    await queue.delete_message(second)


async def test_a_message_may_have_an_initial_visibility_timeout(queue):
    await queue.send_message("later", visibility_timeout=2)
    assert await queue.receive_message() is None
    assert await queue.peek_messages() == []
    assert (await queue.get_queue_properties()).approximate_message_count == 1
    await asyncio.sleep(3)
    assert (await queue.receive_message()).content == "later"


async def test_a_message_expires_after_its_ttl(queue):
    short = await queue.send_message("short", time_to_live=2)
    permanent = await queue.send_message("permanent", time_to_live=-1)
    month = await queue.send_message("month", time_to_live=30 * 24 * 3600)
    assert short.expires_on - short.inserted_on == 2 * SECOND
    assert permanent.expires_on.year == 9999
    assert month.expires_on - month.inserted_on == datetime.timedelta(days=30)
    await asyncio.sleep(3)
    left = await received(queue, messages_per_page=32)
    assert [message.content for message in left] == ["permanent", "month"]
    with rejected(ResourceNotFoundError, 404, "MessageNotFound"):
        await queue.delete_message(short.id, short.pop_receipt)


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        # The documentation does not define which of the two.
        ({"time_to_live": 0}, [OUT, INVALID]),
        ({"time_to_live": -2}, [OUT, INVALID]),
        ({"visibility_timeout": -1}, [OUT]),
        ({"visibility_timeout": 604801}, [OUT]),
        ({"time_to_live": 10, "visibility_timeout": 10}, [INVALID]),
    ],
)
async def test_the_times_of_a_message_are_limited(queue, options, codes):
    with rejected(HttpResponseError, 400, *codes):
        await queue.send_message("x", **options)


@pytest.mark.parametrize("timeout", [0, 604801])
async def test_the_visibility_timeout_is_limited(queue, timeout):
    with rejected(HttpResponseError, 400, "OutOfRangeQueryParameterValue"):
        await queue.receive_message(visibility_timeout=timeout)


async def test_a_malformed_receipt_is_rejected(queue):
    sent = await queue.send_message("x")
    with rejected(HttpResponseError, 400, "InvalidQueryParameterValue"):
        await queue.delete_message(sent.id, "x y")
    absent = "7f7f6ff4-3c2b-4d3c-9d0e-54fa0c8d7c4e"
    with rejected(ResourceNotFoundError, 404, "MessageNotFound"):
        await queue.delete_message(absent, sent.pop_receipt)


async def test_a_queue_is_cleared_of_visible_and_invisible_messages(queue):
    for number in range(10):
        await queue.send_message(str(number))
    await received(queue, max_messages=3)
    assert (await queue.get_queue_properties()).approximate_message_count == 10
    await queue.clear_messages()
    assert (await queue.get_queue_properties()).approximate_message_count == 0
    assert await queue.peek_messages() == []


async def test_two_consumers_never_have_the_same_message(clients, queue, name):
    for number in range(60):
        await queue.send_message(str(number))
    received = []

    async def consume():
        consumer = clients.queue(name)
        while message := await consumer.receive_message(visibility_timeout=300):
            received.append(message.content)
            await consumer.delete_message(message)

    await asyncio.gather(*(consume() for _ in range(4)))
    assert sorted(received, key=int) == [str(number) for number in range(60)]
