"""Acknowledged writes survive a kill of the server under load."""

import threading
from collections import Counter

import grpc

from entities import entity, keys
from server import Server

WRITERS = 8
ACKNOWLEDGED_MIN = 400
BATCH = 10


def write_until_it_breaks(api, address, writer, acknowledged, enough):
    """Inserts entities and batches, and records what was acknowledged, until the connection breaks."""
    with grpc.insecure_channel(address) as channel:
        stub = api.rpc.TableServiceStub(channel)
        for number in range(1_000_000):
            batch = api.pb.ExecuteBatchRequest(table="Kept")
            rows = [f"{number:06}-{position}" for position in range(BATCH)]
            for row in rows:
                insert = api.pb.BatchInsert(entity=entity(api, f"batch{writer}", row))
                batch.operations.add(insert=insert)
            single = api.pb.InsertEntityRequest(
                table="Kept", entity=entity(api, f"single{writer}", rows[0])
            )
            try:
                stub.ExecuteBatch(batch)
                acknowledged += [(f"batch{writer}", row) for row in rows]
                stub.InsertEntity(single)
                acknowledged.append((f"single{writer}", rows[0]))
            except grpc.RpcError as error:
                assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNKNOWN), error
                return
            if len(acknowledged) > ACKNOWLEDGED_MIN:
                enough.set()


def all_keys(api, stub):
    return [
        key
        for message in stub.StreamEntities(api.pb.StreamEntitiesRequest(table="Kept"))
        for key in keys(message.entities)
    ]


def test_acknowledged_writes_survive_a_kill_and_batches_are_atomic(api, tmp_path):
    server = Server(tmp_path)
    acknowledged = [[] for _ in range(WRITERS)]
    enough = threading.Event()
    with grpc.insecure_channel(server.grpc) as channel:
        kept = api.pb.Table(name="Kept")
        api.rpc.TableServiceStub(channel).CreateTable(api.pb.CreateTableRequest(table=kept))

    arguments = [
        (api, server.grpc, writer, acknowledged[writer], enough) for writer in range(WRITERS)
    ]
    writers = [threading.Thread(target=write_until_it_breaks, args=each) for each in arguments]
    for writer in writers:
        writer.start()
    assert enough.wait(30), "the writers make progress"
    server.kill()
    for writer in writers:
        writer.join()

    server = Server(tmp_path)
    try:
        with grpc.insecure_channel(server.grpc) as channel:
            found = all_keys(api, api.rpc.TableServiceStub(channel))
    finally:
        server.kill()
    lost = {key for each in acknowledged for key in each} - set(found)
    assert not lost
    batches = Counter(
        (partition, row.split("-")[0]) for partition, row in found if partition.startswith("batch")
    )
    assert set(batches.values()) == {BATCH}


def test_a_second_server_on_the_same_data_is_rejected(api, tmp_path):
    server = Server(tmp_path)
    try:
        try:
            second = Server(tmp_path)
        except AssertionError as error:
            assert "ended with code" in str(error)
        else:
            second.kill()
            raise AssertionError("two servers opened one store")
    finally:
        server.kill()
