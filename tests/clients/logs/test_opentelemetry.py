"""The SDK of OpenTelemetry for Python exports logs, metrics and traces, by both protocols."""

import logging
import time
import types

import grpc
import pytest
import requests
from google.protobuf import timestamp_pb2
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogs
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcTraces
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogs
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetrics
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpTraces
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.instrumentation.logging.handler import LoggingHandler
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

LINES = 2500
TWO_DAYS_NANOS = 48 * 3_600_000_000_000


def exporters(server, protocol, **headers):
    """The exporters of the SDK for a protocol."""
    if protocol == "grpc":
        options = {"endpoint": server.endpoint, "insecure": True, "headers": headers or None}
        return types.SimpleNamespace(
            logs=GrpcLogs(**options), metrics=GrpcMetrics(**options), traces=GrpcTraces(**options)
        )
    options = {"headers": headers or None, "compression": Compression.Gzip}
    return types.SimpleNamespace(
        logs=HttpLogs(endpoint=f"{server.endpoint}/v1/logs", **options),
        metrics=HttpMetrics(endpoint=f"{server.endpoint}/v1/metrics", **options),
        traces=HttpTraces(endpoint=f"{server.endpoint}/v1/traces", **options),
    )


def read(api, stub, stream, **request):
    """The records of a stream, by gRPC."""
    request = api.pb.ReadRecordsRequest(stream=stream, **request)
    return [record for answer in stub.ReadRecords(request) for record in answer.records]


def texts(attributes):
    """Attributes as plain values."""
    return {key: getattr(value, value.WhichOneof("value")) for key, value in attributes.items()}


def log_lines(exporter, service, lines):
    """Logs lines with the module `logging` of Python, within a span; its ids."""
    provider = LoggerProvider(resource=Resource.create({"service.name": service, "host.name": "h1"}))
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    logger = logging.getLogger(f"shop.{service}")
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    logger.addHandler(LoggingHandler(logger_provider=provider))
    with TracerProvider().get_tracer("shop").start_as_current_span("checkout") as span:
        for number in range(lines):
            level = logging.ERROR if number % 100 == 0 else logging.INFO
            logger.log(level, "order %d", number, extra={"http.route": "/pay", "items": number})
    assert provider.force_flush()
    provider.shutdown()
    return span.get_span_context()


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_lines_of_a_program_are_read_back(api, stub, server, protocol):
    service = f"Orders-{protocol}"
    began = time.time_ns()

    span = log_lines(exporters(server, protocol).logs, service, LINES)

    stream = service.lower()
    records = read(api, stub, stream)
    assert [record.body.string_value for record in records] == [
        f"order {number}" for number in range(LINES)
    ]
    times = [record.time_unix_nano for record in records]
    assert times == sorted(times) and began <= times[0] <= times[-1] <= time.time_ns()
    first = records[0]
    assert (first.severity_number, first.severity_text) == (17, "ERROR")
    attributes = texts(first.attributes)
    assert (attributes["http.route"], attributes["items"]) == ("/pay", 0)
    assert texts(first.resource)["service.name"] == service
    assert texts(first.resource)["host.name"] == "h1"
    assert first.scope.name == f"shop.{service}"
    assert first.trace_id == span.trace_id.to_bytes(16) and first.span_id == span.span_id.to_bytes(8)

    errors = read(api, stub, stream, filter="severity ge 'error' and attributes/items gt 1000")
    assert [texts(record.attributes)["items"] for record in errors] == list(range(1100, LINES, 100))
    middle = records[LINES // 2].time_unix_nano
    bound = timestamp_pb2.Timestamp(seconds=middle // 10**9, nanos=middle % 10**9)
    assert read(api, stub, stream, end_time=bound) + read(api, stub, stream, start_time=bound) == records
    of_trace = ["--filter", f"trace_id eq '{trace.format_trace_id(span.trace_id)}'"]
    printed = server.records("read", stream, *of_trace, "--limit", "2")
    assert [record["body"] for record in printed] == ["order 0", "order 1"]


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_metrics_are_streams_of_values(api, stub, server, protocol):
    service = f"meters-{protocol}"
    reader = PeriodicExportingMetricReader(
        exporters(server, protocol).metrics, export_interval_millis=3_600_000
    )
    provider = MeterProvider([reader], resource=Resource.create({"service.name": service}))
    meter = provider.get_meter("shop")
    orders = meter.create_counter("orders", unit="1")
    duration = meter.create_histogram("duration", explicit_bucket_boundaries_advisory=[1.0, 10.0])

    orders.add(3, {"shop": "a"})
    orders.add(4, {"shop": "b"})
    for value in (0.5, 2.0, 3.0):
        duration.record(value)
    assert provider.force_flush()
    orders.add(2, {"shop": "a"})
    assert provider.force_flush()
    provider.shutdown()

    stream = f"{service}.metrics"
    counted = read(api, stub, stream, filter="event_name eq 'orders' and attributes/shop eq 'a'")
    # The reader also exports when it shuts down.
    assert [record.value for record in counted][:2] == [3.0, 5.0]
    assert texts(counted[0].attributes) == {"shop": "a"} and counted[0].unit == "1"
    assert (counted[0].temporality, counted[0].is_monotonic) == (2, True)
    assert counted[0].start_time_unix_nano > 0
    first = counted[0].time_unix_nano
    points = read(api, stub, stream, filter="startswith(event_name, 'duration')")
    once = {
        (point.event_name, texts(point.attributes).get("le")): point.value
        for point in points
        if abs(point.time_unix_nano - first) < 10**9
    }
    assert once[("duration.count", None)] == 3 and once[("duration.sum", None)] == 5.5
    buckets = [once[("duration.bucket", bound)] for bound in (1.0, 10.0, float("inf"))]
    assert buckets == [1, 3, 3]
    assert server.records("read", stream, "--filter", "value eq 7") == []


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_trace_is_read_back_by_its_id(api, stub, server, protocol):
    service = f"shop-{protocol}"
    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(exporters(server, protocol).traces))
    tracer = provider.get_tracer("shop")
    with tracer.start_as_current_span("another trace") as other:
        pass
    with tracer.start_as_current_span("GET /pay", kind=trace.SpanKind.SERVER) as root:
        links = [trace.Link(other.get_span_context(), {"why": "retry"})]
        with pytest.raises(ValueError):
            with tracer.start_as_current_span("charge", links=links) as child:
                child.set_attribute("amount", 7)
                raise ValueError("no funds")
    assert provider.force_flush()
    provider.shutdown()

    stream = f"{service}.traces"
    context = root.get_span_context()
    of_trace = f"trace_id eq '{trace.format_trace_id(context.trace_id)}'"
    pay, charge, exception = read(api, stub, stream, filter=of_trace)

    for record, span in ((pay, root), (charge, child)):
        assert record.body.string_value == span.name
        assert record.time_unix_nano == span.start_time
        assert record.value == (span.end_time - span.start_time) / 1e9
        assert record.span_id == span.get_span_context().span_id.to_bytes(8)
        assert record.scope.name == "shop" and texts(record.resource)["service.name"] == service
    assert texts(pay.attributes) == {"span.kind": "server"} and pay.severity_number == 0
    attributes = texts(charge.attributes)
    assert attributes["amount"] == 7 and attributes["span.kind"] == "internal"
    assert attributes["parent_span_id"] == trace.format_span_id(context.span_id)
    assert (charge.severity_number, charge.severity_text) == (17, "ERROR")
    assert attributes["otel.status_code"] == "ERROR"
    assert attributes["otel.status_description"] == "ValueError: no funds"
    (linked,) = attributes["links"].values
    linked = {entry.key: entry.value for entry in linked.kvlist_value.values}
    other_id = trace.format_trace_id(other.get_span_context().trace_id)
    assert linked["trace_id"].string_value == other_id
    assert linked["attributes"].kvlist_value.values[0].value.string_value == "retry"
    assert exception.body.string_value == exception.event_name == "exception"
    assert exception.span_id == charge.span_id and not exception.HasField("value")
    assert texts(exception.attributes)["exception.type"] == "ValueError"

    spans = server.records("read", stream, "--filter", f"{of_trace} and value ge 0")
    assert [record["body"] for record in spans] == ["GET /pay", "charge"]
    assert len(server.records("read", stream)) == 4


def test_a_header_names_the_stream(api, stub, server):
    for protocol in ("grpc", "http"):
        name = f"named.{protocol}"
        exporter = exporters(server, protocol, **{"trestle-log-stream": name}).logs
        log_lines(exporter, f"header-{protocol}", 2)

        assert len(read(api, stub, name)) == 2


def bad_logs():
    """A request with valid and invalid records."""
    request = logs_service_pb2.ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "partly"
    records = resource.scope_logs.add().log_records
    now = time.time_ns()
    records.add(time_unix_nano=now).body.string_value = "first"
    records.add(time_unix_nano=now + TWO_DAYS_NANOS).body.string_value = "of the future"
    records.add(time_unix_nano=now, trace_id=b"short").body.string_value = "a short id"
    twice = records.add(time_unix_nano=now)
    for value in ("a", "b"):
        twice.attributes.add(key="same").value.string_value = value
    records.add(time_unix_nano=now).body.string_value = "last"
    return request


def test_a_partial_success_counts_what_is_rejected(api, stub, server):
    with grpc.insecure_channel(server.grpc) as channel:
        by_grpc = logs_service_pb2_grpc.LogsServiceStub(channel).Export(bad_logs())
    answer = requests.post(
        f"{server.endpoint}/v1/logs",
        data=bad_logs().SerializeToString(),
        headers={"Content-Type": "application/x-protobuf"},
        timeout=30,
    )
    assert answer.status_code == 200 and answer.headers["Content-Type"] == "application/x-protobuf"
    by_http = logs_service_pb2.ExportLogsServiceResponse.FromString(answer.content)

    for response in (by_grpc, by_http):
        partial = response.partial_success
        assert partial.rejected_log_records == 1
        assert "time_unix_nano: is out of range" in partial.error_message
    stored = read(api, stub, "partly")
    assert sorted(record.body.string_value for record in stored) == sorted(["first", "a short id", "", "last"] * 2)
    twice = next(record for record in stored if not record.body.string_value)
    assert texts(twice.attributes) == {"same": "b"} and twice.dropped_attributes_count == 1
    assert not any(record.trace_id for record in stored)


def test_a_partial_success_counts_rejected_data_points(api, stub, server):
    request = metrics_service_pb2.ExportMetricsServiceRequest()
    resource = request.resource_metrics.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "partly"
    points = resource.scope_metrics.add().metrics.add(name="load").gauge.data_points
    now = time.time_ns()
    points.add(time_unix_nano=now, as_double=0.5)
    points.add(time_unix_nano=now + TWO_DAYS_NANOS, as_double=1.5)
    points.add(time_unix_nano=now)

    with grpc.insecure_channel(server.grpc) as channel:
        response = metrics_service_pb2_grpc.MetricsServiceStub(channel).Export(request)

    assert response.partial_success.rejected_data_points == 2, response
    assert "load" in response.partial_success.error_message
    assert [point.value for point in read(api, stub, "partly.metrics")] == [0.5]


def test_a_partial_success_counts_rejected_spans(api, stub, server):
    request = trace_service_pb2.ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "partly"
    spans = resource.scope_spans.add().spans
    now = time.time_ns()
    ids = {"trace_id": b"t" * 16, "span_id": b"s" * 8}
    spans.add(name="kept", start_time_unix_nano=now, end_time_unix_nano=now + 1, **ids)
    spans.add(name="backwards", start_time_unix_nano=now, end_time_unix_nano=now - 1, **ids)
    spans.add(name="nameless", start_time_unix_nano=now, end_time_unix_nano=now)

    with grpc.insecure_channel(server.grpc) as channel:
        response = trace_service_pb2_grpc.TraceServiceStub(channel).Export(request)

    assert response.partial_success.rejected_spans == 1, response
    assert "spans[2].trace_id" in response.partial_success.error_message
    stored = {span.body.string_value: span.value for span in read(api, stub, "partly.traces")}
    assert stored == {"kept": 1e-9, "backwards": 0.0}


def test_a_request_that_is_no_export_is_an_error_the_sdk_does_not_retry(server):
    for body, headers, status in [
        (b"\xff" * 20, {"Content-Type": "application/x-protobuf"}, 400),
        (b"{", {"Content-Type": "application/json"}, 400),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"no gzip", {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}, 400),
    ]:
        answer = requests.post(f"{server.endpoint}/v1/logs", data=body, headers=headers, timeout=30)
        assert answer.status_code == status, answer.content
