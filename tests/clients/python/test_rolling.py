"""Every role restarts under load, and no client sees it, though none retries anything."""

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


def free_address():
    """An address that nobody listens at, which several processes may then take together."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return "127.0.0.1:%d" % listener.getsockname()[1]


def call_until(api, stub, caller, stop, counts, failures):
    """Writes and reads, and notes every failure, until told to stop."""
    for number in itertools.count():
        if stop.is_set():
            return
        key = {"partition_key": f"caller{caller}", "row_key": f"{number:06}"}
        try:
            stub.InsertEntity(
                api.pb.InsertEntityRequest(table=TABLE, entity=entity(api, *key.values()))
            )
            stub.GetEntity(api.pb.GetEntityRequest(table=TABLE, **key))
        except grpc.RpcError as error:
            failures.append((error.code(), error.details()))
        counts[caller] += 1


def test_a_rolling_restart_of_every_role_fails_no_call_even_without_a_retry(api, tmp_path):
    table = Server(tmp_path, roles="table")
    address = free_address()
    settings = {
        "TRESTLE__SERVER__REUSE_PORT": "true",
        "TRESTLE__GATEWAY__TABLE_ENDPOINT": f"http://{table.grpc}",
    }

    def start_gateway():
        return Server(tmp_path, roles="gateway", listen=address, settings=settings)

    gateway = start_gateway()
    # Without a pool of their own, channels of a process share their connections. No retries: the
    # library makes some by itself, but only of calls that no server has seen.
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.insecure_channel(address, options) for _ in range(CHANNELS)]
    stubs = [api.rpc.TableServiceStub(channel) for channel in channels]
    stubs[0].CreateTable(api.pb.CreateTableRequest(table=TABLE))
    stop, counts, failures = threading.Event(), [0] * CHANNELS * CALLERS, []
    callers = [
        threading.Thread(
            target=call_until,
            args=(api, stubs[caller % CHANNELS], caller, stop, counts, failures),
        )
        for caller in range(CHANNELS * CALLERS)
    ]
    for caller in callers:
        caller.start()

    gateway_codes, table_codes = [], []
    for _ in range(RESTARTS):
        time.sleep(PAUSE_SECONDS)
        at = table.grpc
        table_codes.append(table.terminate())
        table = Server(tmp_path, roles="table", listen=at)
        time.sleep(PAUSE_SECONDS)
        # The new one is there before the old one goes.
        old, gateway = gateway, start_gateway()
        gateway_codes.append(old.terminate())
    time.sleep(PAUSE_SECONDS)
    stop.set()
    for caller in callers:
        caller.join()
    for channel in channels:
        channel.close()

    assert failures == []
    assert min(counts) > RESTARTS, "every caller went on through every restart"
    assert table_codes + gateway_codes == [0] * 2 * RESTARTS, "no call was cut"
    assert gateway.terminate() == table.terminate() == 0
