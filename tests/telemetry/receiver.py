"""An OTLP receiver over gRPC, which stores what it receives."""

import threading
import time
from concurrent import futures

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

WAIT_SECONDS = 30
KIND_SERVER, KIND_CLIENT = 2, 3
STATUS_UNSET, STATUS_ERROR = 0, 2


def attributes(pairs):
    """Attributes as a dictionary of plain values."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


class Received:
    """A received item, with the process that sent it."""

    def __init__(self, resource, item):
        self.resource = attributes(resource.attributes)
        self.process = self.resource["service.name"]
        self.item = item
        self.attributes = attributes(getattr(item, "attributes", []))

    def __repr__(self):
        return f"{self.process}: {self.item}"


class Receiver(
    trace_service_pb2_grpc.TraceServiceServicer,
):
    """Traces; `metrics` and `logs` come through the two servicers below."""

    def __init__(self):
        self._lock = threading.Lock()
        self._spans, self._metrics, self._logs = [], [], []
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(_Metrics(self), self._server)
        logs_service_pb2_grpc.add_LogsServiceServicer_to_server(_Logs(self), self._server)
        port = self._server.add_insecure_port("127.0.0.1:0")
        self.endpoint = f"http://127.0.0.1:{port}"
        self._server.start()

    def Export(self, request, context):
        for of in request.resource_spans:
            for scope in of.scope_spans:
                self.keep("_spans", [Received(of.resource, span) for span in scope.spans])
        return trace_service_pb2.ExportTraceServiceResponse()

    def keep(self, kind, items):
        with self._lock:
            getattr(self, kind).extend(items)

    def stop(self):
        self._server.stop(grace=None).wait()

    def spans(self, trace_id):
        """The spans of a trace."""
        with self._lock:
            return [s for s in self._spans if s.item.trace_id.hex() == trace_id]

    def spans_of(self, request_id):
        """The spans of servers about a request."""
        with self._lock:
            named = "trestle.request_id"
            return [s for s in self._spans if s.attributes.get(named) == request_id]

    def everything(self):
        """Every span, metric and log record, as it was sent."""
        with self._lock:
            kept = [*self._spans, *self._metrics, *self._logs]
            resources = repr([received.resource for received in kept]).encode()
            return b"\n".join([resources, *(r.item.SerializeToString() for r in kept)])

    def metrics(self, name, process):
        """What a process has sent about a metric, newest last."""
        with self._lock:
            return [m for m in self._metrics if m.item.name == name and m.process == process]

    def logs(self):
        """Every log record."""
        with self._lock:
            return list(self._logs)


class _Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
    def __init__(self, receiver):
        self._receiver = receiver

    def Export(self, request, context):
        for of in request.resource_metrics:
            for scope in of.scope_metrics:
                kept = [Received(of.resource, metric) for metric in scope.metrics]
                self._receiver.keep("_metrics", kept)
        return metrics_service_pb2.ExportMetricsServiceResponse()


class _Logs(logs_service_pb2_grpc.LogsServiceServicer):
    def __init__(self, receiver):
        self._receiver = receiver

    def Export(self, request, context):
        for of in request.resource_logs:
            for scope in of.scope_logs:
                kept = [Received(of.resource, record) for record in scope.log_records]
                self._receiver.keep("_logs", kept)
        return logs_service_pb2.ExportLogsServiceResponse()


def eventually(find):
    """What `find` returns once it returns something."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        found = find()
        if found:
            return found
        assert time.monotonic() < until, "nothing arrived in time"
        time.sleep(0.05)
