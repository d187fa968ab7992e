"""A server that keeps its own logs, metrics and traces in streams of itself."""

import json
import secrets
import time

import pytest
import requests

from server import Server, free_port

# Longer than the exporters wait: a second, and five for traces.
QUIET_SECONDS = 7


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server whose telemetry is sent to itself."""
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "TRESTLE__TELEMETRY__OTLP_ENDPOINT": f"http://{address}",
        "TRESTLE__TELEMETRY__SERVICE_NAME": "store",
        "TRESTLE__TELEMETRY__TRACE_SAMPLE_RATIO": "1",
        "TRESTLE__TELEMETRY__METRICS_EVERY_SECONDS": "1",
        # More than by default: a line about the export of a line would be exported again.
        "TRESTLE__TELEMETRY__LOG_FILTER": "debug",
    }
    server = Server(tmp_path_factory.mktemp("server"), settings, listen=address)
    yield server
    server.end()


def appended(server, stream):
    """How many records a stream has."""
    return json.loads(server.trestle("log", "show", stream, "-o", "jsonl"))["next_sequence"]


def eventually(find):
    """What `find` returns, once it returns something."""
    until = time.monotonic() + 30
    while not (found := find()):
        assert time.monotonic() < until, "nothing arrived in time"
        time.sleep(0.1)
    return found


def streams(server):
    return [stream["stream"] for stream in server.records("list")]


def test_its_log_is_a_stream_and_exports_cause_no_lines(server):
    eventually(lambda: "store" in streams(server))
    serving = eventually(lambda: server.records("read", "store", "--filter", "body eq 'serving'"))
    assert serving[0]["severity_number"] == 9 and serving[0]["attributes"]["roles"] == "all"
    assert serving[0]["resource"]["service.name"] == "store"

    before = appended(server, "store")
    time.sleep(QUIET_SECONDS)
    assert appended(server, "store") == before, "a loop: exports are logged"
    assert {line.split()[1] for line in server.log().splitlines()} == {"INFO", "DEBUG"}


def test_its_metrics_are_a_stream_that_grows_at_a_constant_rate(server):
    eventually(lambda: "store.metrics" in streams(server))
    # Every metric about exports exists after the first ones.
    time.sleep(QUIET_SECONDS)
    starts = server.records("read", "store.metrics", "--filter", "event_name eq 'process.start_time'")
    assert len(starts) >= 3 and len({record["value"] for record in starts}) == 1

    rounds = [record["sequence"] for record in starts]
    sizes = [after - before for before, after in zip(rounds, rounds[1:])]
    assert sizes[-1] < 1.5 * sizes[-2], f"a loop: exports grow: {sizes}"


def trace_parent(trace_id, flags):
    """Metadata of a call in a trace, with flags."""
    return [("traceparent", f"00-{trace_id}-{secrets.token_hex(8)}-{flags}")]


def test_a_call_is_a_trace_of_it_and_exports_cause_no_spans(api, stub, server):
    trace_id = secrets.token_hex(16)
    stream = api.pb.LogStream(name="traced")
    request = api.pb.CreateStreamRequest(stream=stream)
    stub.CreateStream(request, metadata=trace_parent(trace_id, "01"))

    eventually(lambda: "store.traces" in streams(server))
    of_trace = ["--filter", f"trace_id eq '{trace_id}'"]

    def spans():
        # The call ends last, but its spans may be sent in two exports.
        records = server.records("read", "store.traces", *of_trace)
        by_name = {record["body"]: record for record in records}
        return by_name if "trestle.log.v1.LogService/CreateStream" in by_name else None

    found = eventually(spans)
    call, commit = found["trestle.log.v1.LogService/CreateStream"], found["commit"]
    assert call["attributes"]["span.kind"] == "server" and call["value"] >= commit["value"] > 0
    assert call["attributes"]["rpc.response.status_code"] == "OK"
    assert commit["attributes"]["parent_span_id"] == call["span_id"]
    assert len(found) <= 10, found

    def count():
        # Not sampled, or it would be a span itself.
        request = api.pb.GetStreamRequest(stream="store.traces")
        quiet = trace_parent(secrets.token_hex(16), "00")
        return stub.GetStream(request, metadata=quiet).stats.next_sequence

    # The spans of the reads above arrive.
    time.sleep(QUIET_SECONDS)
    before = count()
    # An export by another program starts no trace either.
    protobuf = {"Content-Type": "application/x-protobuf"}
    requests.post(f"{server.endpoint}/v1/traces", headers=protobuf, timeout=30).raise_for_status()
    time.sleep(QUIET_SECONDS)
    assert count() == before, "a loop: exports are traced"


def test_its_own_records_can_be_sealed_like_others(server):
    total = appended(server, "store.metrics")
    server.trestle("log", "flush", "store.metrics")

    (segment, *_) = server.records("segments", "store.metrics")
    assert segment["records"] >= total
