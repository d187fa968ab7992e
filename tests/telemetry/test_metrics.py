"""Metrics arrive at the receiver, and are read at the admin port, with exemplars that name
their traces."""

import grpc
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from processes import SERVICE, Trace, World
from receiver import attributes, eventually

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
BY_METHOD = {"TRESTLE__TELEMETRY__METRICS_BY_METHOD": "true"}


def points(receiver, process, name):
    """The newest points of a metric, with their labels."""
    sent = receiver.metrics(name, process)
    if not sent:
        return []
    data = getattr(sent[-1].item, sent[-1].item.WhichOneof("data"))
    return [(attributes(point.attributes), point) for point in data.data_points]


@pytest.mark.parametrize("process", ["gateway", "table"])
def test_the_duration_of_a_call_has_an_exemplar_with_its_trace(receiver, world, process):
    table, trace = world.new_table(), Trace()
    world.call("GetEntity", table, "p", "r", trace=trace)

    def example():
        for labels, point in points(receiver, process, "rpc.server.call.duration"):
            if labels["rpc.method"] == f"{SERVICE}/GetEntity":
                for example in point.exemplars:
                    if example.trace_id.hex() == trace.id:
                        return labels, point, example
        return None

    labels, point, example = eventually(example)
    assert labels["rpc.system.name"] == "grpc"
    assert labels["rpc.response.status_code"] == "NOT_FOUND"
    assert point.count >= 1 and example.as_double > 0
    assert example.time_unix_nano > 0

    def named():
        return {s.item.span_id for s in receiver.spans(trace.id) if s.process == process}

    assert eventually(lambda: example.span_id in named())


@pytest.mark.parametrize(
    ("process", "name"),
    [
        ("gateway", "trestle.rpc.server.active_calls"),
        ("gateway", "trestle.rpc.server.request.size"),
        ("gateway", "trestle.rpc.server.response.size"),
        ("gateway", "trestle.rpc.server.unary.duration"),
        ("gateway", "trestle.server.connections"),
        ("gateway", "trestle.build.info"),
        ("table", "trestle.tables"),
        ("table", "db.client.operation.duration"),
        ("table", "trestle.storage.group.changes"),
        ("table", "trestle.storage.group.duration"),
        ("table", "trestle.storage.sync.duration"),
        ("table", "trestle.storage.commit.queue"),
        ("table", "trestle.storage.commit.size"),
        ("table", "trestle.storage.commit.shed"),
        ("table", "trestle.storage.stalls"),
        ("table", "trestle.storage.stall.time"),
        ("table", "trestle.storage.cache.used"),
        ("table", "trestle.storage.cache.blocks"),
        ("table", "trestle.storage.flushes.waiting"),
        ("table", "trestle.storage.compactions.active"),
        ("table", "trestle.storage.compaction.time"),
        ("table", "trestle.storage.journals"),
        ("table", "trestle.storage.stopped"),
        ("table", "trestle.storage.used"),
        ("table", "trestle.storage.free"),
    ],
)
def test_every_metric_arrives(receiver, world, process, name):
    world.new_table()

    assert eventually(lambda: points(receiver, process, name))


def test_rejected_calls_are_counted_by_their_reason(receiver, world):
    assert world.call("ListTables", authorization="Basic !") == grpc.StatusCode.UNAUTHENTICATED

    def reasons():
        rejections = points(receiver, "gateway", "trestle.rpc.server.rejections")
        counted = {labels["trestle.rejection.reason"] for labels, point in rejections if point.as_int}
        return "INVALID_AUTHENTICATION_INFO" in counted

    assert eventually(reasons)


def test_operations_over_a_quota_are_counted_by_scope(receiver, tmp_path):
    quota = {"TRESTLE__QUOTAS__PARTITION_ENTITIES_PER_SECOND": "1"}
    world = World(receiver, tmp_path, **quota)
    try:
        table = world.new_table()
        codes = {world.call("GetEntity", table, "p", "r") for _ in range(50)}
        assert grpc.StatusCode.RESOURCE_EXHAUSTED in codes, codes

        def scopes():
            over = points(receiver, "table", "trestle.throttle.operations")
            return {labels["trestle.throttle.scope"] for labels, point in over if point.as_int}

        assert eventually(scopes) == {"partition"}
    finally:
        world.end()


def test_dropped_access_log_lines_are_counted(receiver, tmp_path):
    world = World(receiver, tmp_path, TRESTLE__TELEMETRY__ACCESS_LOG="stderr")
    try:
        world.new_table()
        ((labels, point),) = eventually(
            lambda: points(receiver, "gateway", "trestle.access_log.lost")
        )
        assert (labels, point.as_int) == ({}, 0)
    finally:
        world.end()


def test_sizes_are_those_of_the_messages(receiver, tmp_path):
    world = World(receiver, tmp_path, **BY_METHOD)
    try:
        name = world.new_table()
        # The five bytes before each message count; the request has a table name.
        world.call("GetTable", name)

        expected = {"rpc.method": f"{SERVICE}/GetTable", "rpc.service": SERVICE, "trestle.protocol": "grpc"}

        def size(metric):
            for labels, point in points(receiver, "gateway", f"trestle.rpc.server.{metric}.size"):
                if labels == expected:
                    return point.sum / point.count
            return None

        assert eventually(lambda: size("request")) == 5 + 2 + len(name)
        # Later calls may be exported later.
        assert eventually(lambda: size("response")) > 5 + len(name)
    finally:
        world.end()


def test_sizes_are_of_services_by_default(receiver, world):
    world.new_table()

    def labels():
        return [labels for labels, _ in points(receiver, "gateway", "trestle.rpc.server.request.size")]

    # Processes of other tests may have sent the newest points.
    assert eventually(lambda: {"rpc.service": SERVICE, "trestle.protocol": "grpc"} in labels())


def test_the_admin_port_serves_openmetrics_with_exemplars(receiver, world):
    table, trace = world.new_table(), Trace()
    world.call("GetEntity", table, "p", "r", trace=trace)

    kind, text = eventually(
        lambda: trace.id in (read := world.table.metrics(OPENMETRICS))[1] and read
    )

    assert kind.startswith("application/openmetrics-text")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["rpc_server_call_duration_seconds"].type == "summary"
    calls = families["trestle_rpc_server_unary_duration_seconds"]
    (sample,) = [s for s in calls.samples if s.exemplar and s.exemplar.labels["trace_id"] == trace.id]
    assert sample.labels["rpc_service"] == SERVICE
    assert sample.exemplar.value <= float(sample.labels["le"])
    engine = families["db_client_operation_duration_seconds"]
    assert any(s.exemplar and s.exemplar.labels["trace_id"] == trace.id for s in engine.samples)
    (build,) = families["trestle_build_info"].samples
    assert build.value == 1 and build.labels["version"]
    assert families["target"].samples if "target" in families else families["target_info"].samples
    names = {label for family in families.values() for s in family.samples for label in s.labels}
    assert not names & {"trestle_request_id", "network_peer_address", "table", "partition_key"}


def test_methods_have_histograms_with_exemplars_where_they_are_required(receiver, tmp_path):
    world = World(receiver, tmp_path, **BY_METHOD)
    try:
        table, trace = world.new_table(), Trace()
        world.call("GetEntity", table, "p", "r", trace=trace)

        _, text = eventually(
            lambda: trace.id in (read := world.gateway.metrics(OPENMETRICS))[1] and read
        )

        families = {family.name: family for family in text_string_to_metric_families(text)}
        samples = families["rpc_server_call_duration_seconds"].samples
        (sample,) = [s for s in samples if s.exemplar and s.exemplar.labels["trace_id"] == trace.id]
        assert sample.labels["rpc_method"] == f"{SERVICE}/GetEntity"
        assert sample.exemplar.value <= float(sample.labels["le"])
    finally:
        world.end()


def test_the_admin_port_serves_the_older_text_by_default(world):
    kind, text = world.gateway.metrics("text/plain")

    assert kind.startswith("text/plain") and "# EOF" not in text
    assert "trestle_rpc_server_unary_duration_seconds_bucket" in text
    assert "rpc_server_call_duration_seconds_count" in text
    assert world.call("ListTables") == grpc.StatusCode.OK
