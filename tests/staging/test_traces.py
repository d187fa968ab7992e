"""One call is one trace across the containers, as the collector receives it."""

import re
import secrets

import pytest

from stack import until


@pytest.fixture(autouse=True)
def collector(stack):
    if not stack.has_collector:
        pytest.skip("no collector could be built on this machine")


def spans(stack, trace):
    """Pairs of process and span of a trace, from the lines that the collector prints."""
    process, found = None, set()
    for line in stack.logs("collector").splitlines():
        if resource := re.search(r"ResourceTraces #\d+.*\bservice\.name=(\S+)", line):
            process = resource[1]
        elif trace in line:
            found.add((process, line.split()[0]))
    return found


@pytest.mark.parametrize(
    ("role", "method"),
    [
        ("table", "trestle.table.v1.TableService/InsertEntity"),
        ("queue", "trestle.queue.v1.QueueService/SendMessages"),
        ("blob", "trestle.blob.v1.BlobService/WriteBlob"),
    ],
)
def test_a_call_is_one_trace_through_gateway_and_role(stack, stores, role, method):
    trace = secrets.token_hex(16)
    parent = ("traceparent", f"00-{trace}-{secrets.token_hex(8)}-01")

    getattr(stores, role).write("0-1", metadata=[parent])

    expected = {("gateway", method), (role, method), (role, "commit")}
    until(lambda: expected <= spans(stack, trace), f"{expected} of {trace}: {spans(stack, trace)}")
