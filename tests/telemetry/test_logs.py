"""A line that is logged in a call names the trace of the call: on standard error, in both forms,
and at the receiver."""

import json

import grpc
import pytest

from processes import Trace, World
from receiver import eventually


def fail(world, trace):
    """Makes a call fail at the gateway, which logs it."""
    world.new_table()
    world.table.kill()
    codes = set()
    while grpc.StatusCode.UNAVAILABLE not in codes:
        codes.add(world.call("GetEntity", "Orders", "p", "r", trace=trace))


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("kept", [True, False])
def test_a_failure_is_logged_with_its_trace(receiver, tmp_path, form, kept):
    trace = Trace(sampled=kept)
    world = World(receiver, tmp_path, TRESTLE__TELEMETRY__LOG_FORMAT=form)

    fail(world, trace)
    world.end()

    (line, *_) = [line for line in world.gateway.log().splitlines() if "call failed" in line]
    if form == "json":
        record = json.loads(line)
        assert record["trace_id"] == trace.id and len(record["span_id"]) == 16
        assert record["fields"]["code"] == "UNAVAILABLE"
    else:
        assert f" trace_id={trace.id} span_id=" in line
    sent = eventually(
        lambda: [r for r in receiver.logs() if r.item.trace_id.hex() == trace.id]
    )
    assert sent[0].process == "gateway" and sent[0].item.body.string_value == "call failed"
    if kept:
        spans = {span.item.span_id for span in receiver.spans(trace.id)}
        assert sent[0].item.span_id in spans


def test_a_line_outside_of_calls_names_no_trace(world):
    (line,) = [line for line in world.gateway.log().splitlines() if "serving" in line]

    assert "trace_id" not in line
