"""Every role restarts under load, and no call fails, without retries."""

import contextlib
import itertools
import socket
import threading
import time

import grpc

from entities import entity
from server import Server

CHANNELS = 4
# Callers that share a channel.
CALLERS = 4
RESTARTS = 4
PAUSE_SECONDS = 0.3
TABLE = "Kept"
QUEUE = "kept"


def free_address():
    """A free address, which several processes may bind together."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return "127.0.0.1:%d" % listener.getsockname()[1]


def on_tables(api, channel, caller):
    """Writes an entity of a number and reads it."""
    stub = api.rpc.TableServiceStub(channel)

    def use(number):
        key = {"partition_key": f"caller{caller}", "row_key": f"{number:06}"}
        stub.InsertEntity(
            api.pb.InsertEntityRequest(table=TABLE, entity=entity(api, *key.values()))
        )
        stub.GetEntity(api.pb.GetEntityRequest(table=TABLE, **key))

    return use


def on_queues(api, channel, caller):
    """Sends a message, receives one, perhaps of another caller, and deletes that."""
    stub = api.queue_rpc.QueueServiceStub(channel)
    pb = api.queue_pb

    def use(number):
        message = api.message.OutgoingMessage(text=f"{caller}-{number}")
        stub.SendMessages(pb.SendMessagesRequest(queue=QUEUE, messages=[message]))
        received = stub.ReceiveMessages(pb.ReceiveMessagesRequest(queue=QUEUE, max_messages=1))
        for delivery in received.deliveries:
            receipt = api.message.ReceiptRef(
                message_id=delivery.message.message_id, pop_receipt=delivery.pop_receipt
            )
            deleted = stub.DeleteMessages(pb.DeleteMessagesRequest(queue=QUEUE, receipts=[receipt]))
            assert [result.HasField("error") for result in deleted.results] == [False]

    return use


def call_until(use, caller, stop, counts, failures):
    """Uses the service, and records every failure, until stopped."""
    for number in itertools.count():
        if stop.is_set():
            return
        try:
            use(number)
        except (grpc.RpcError, AssertionError) as error:
            failures.append(repr(error))
        counts[caller] += 1


def test_a_rolling_restart_of_every_role_fails_no_call_even_without_a_retry(api, tmp_path):
    table = Server(tmp_path / "tables", roles="table")
    queue = Server(tmp_path / "queues", roles="queue")
    address = free_address()
    settings = {
        "TRESTLE__SERVER__REUSE_PORT": "true",
        "TRESTLE__GATEWAY__TABLE_ENDPOINT": f"http://{table.grpc}",
        "TRESTLE__GATEWAY__QUEUE_ENDPOINT": f"http://{queue.grpc}",
    }

    def start_gateway():
        return Server(tmp_path, roles="gateway", listen=address, settings=settings)

    gateway = start_gateway()
    # Without a pool of their own, channels of a process share their connections. No retries: the
    # library makes some by itself, but only of calls that no server has received.
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.insecure_channel(address, options) for _ in range(CHANNELS)]
    tables = api.rpc.TableServiceStub(channels[0])
    tables.CreateTable(api.pb.CreateTableRequest(table=api.pb.Table(name=TABLE)))
    queues = api.queue_rpc.QueueServiceStub(channels[0])
    queues.CreateQueue(api.queue_pb.CreateQueueRequest(queue=api.queue_pb.Queue(name=QUEUE)))
    stop, counts, failures = threading.Event(), [0] * CHANNELS * CALLERS, []
    callers = [
        threading.Thread(
            target=call_until,
            # Half of the callers of each channel use tables, half queues.
            args=(
                (on_tables if caller // CHANNELS % 2 else on_queues)(
                    api, channels[caller % CHANNELS], caller
                ),
                caller,
                stop,
                counts,
                failures,
            ),
        )
        for caller in range(CHANNELS * CALLERS)
    ]
    for caller in callers:
        caller.start()

    codes = []
    for _ in range(RESTARTS):
        time.sleep(PAUSE_SECONDS)
        at = table.grpc
        codes.append(table.terminate())
        table = Server(tmp_path / "tables", roles="table", listen=at)
        time.sleep(PAUSE_SECONDS)
        at = queue.grpc
        codes.append(queue.terminate())
        queue = Server(tmp_path / "queues", roles="queue", listen=at)
        time.sleep(PAUSE_SECONDS)
        # The new one is ready before the old one stops.
        old, gateway = gateway, start_gateway()
        codes.append(old.terminate())
    time.sleep(PAUSE_SECONDS)
    stop.set()
    for caller in callers:
        caller.join()
    for channel in channels:
        channel.close()

    assert failures == []
    assert min(counts) > RESTARTS, "every caller went on through every restart"
    assert codes == [0] * 3 * RESTARTS, "no call was cut"
    assert gateway.terminate() == table.terminate() == queue.terminate() == 0
