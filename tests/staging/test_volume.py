"""A full volume rejects writes, serves reads and deletes, raises an alert, and recovers without a restart."""

import concurrent.futures
import itertools

import grpc
import pytest

from stack import until

# A failure under a fault is a finding: it is not run again.
pytestmark = pytest.mark.flaky(reruns=0)
LARGE_BYTES = 900_000
# More than the volume holds.
WRITES_MAX = 1500
WRITERS = 4


def fill(table, numbers):
    """Writes until the role accepts no more; how many it accepted."""

    def write():
        accepted = 0
        while (number := next(numbers)) < WRITES_MAX:
            try:
                table.write(f"large-{number}", size=LARGE_BYTES)
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error
                if "space" in error.details():
                    return accepted
            else:
                accepted += 1
        raise AssertionError("the volume does not fill")

    with concurrent.futures.ThreadPoolExecutor(WRITERS) as writers:
        return sum(future.result() for future in [writers.submit(write) for _ in range(WRITERS)])


def accepts(table, key):
    """Whether a write is accepted."""
    try:
        table.write(key)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error
        return False
    return True


def test_a_full_volume_serves_reads_and_deletes_and_recovers(stack, small_volume, stores, api, channel):
    if not small_volume:
        pytest.skip("only root can make a small file system")
    kept = type(stores.table)(api, channel, "Kept")
    kept.create()
    kept.write("0-1")

    numbers = itertools.count(1)
    assert fill(stores.table, numbers) > 10

    assert kept.lost(["0-1"]) == []
    assert stack.is_healthy("table") and stack.is_healthy("gateway")
    stores.queue.write("0-1")
    if stack.has_prometheus:
        alert = 'ALERTS{alertname="TrestleDiskReadOnly", role="table"}'
        # Compaction gives space back meanwhile.
        until(lambda: fill(stores.table, numbers) >= 0 and stack.query(alert), "the alert about the volume")
    stores.table.delete()
    until(lambda: accepts(kept, f"0-{next(numbers)}"), "writes after the table was deleted", 90)
