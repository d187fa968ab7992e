"""Gateway and table role in processes of their own, and calls to them below generated code."""

import itertools
import os
import secrets
import select
import signal
import subprocess
import tempfile
import urllib.request

import grpc

SECONDS = 30
SERVICE = "trestle.table.v1.TableService"

_names = itertools.count(1)


class Process:
    """A `trestle serve` on free ports. Its log goes to a file."""

    def __init__(self, arguments, settings, azure_table="off"):
        self._log = tempfile.TemporaryFile()
        command = [os.environ["TRESTLE_BIN"], "serve", *arguments]
        command += ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        command += ["--azure-table", azure_table, "--azure-queue", "off", "--azure-blob", "off"]
        self._process = subprocess.Popen(
            command,
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        readable, _, _ = select.select([self._process.stdout], [], [], SECONDS)
        word, *addresses = (self._process.stdout.readline().split() if readable else []) or [""]
        if word != "ready":
            self.kill()
            raise AssertionError(f"not ready: {self.log()}")
        self._addresses = dict(address.split("=", 1) for address in addresses)

    @property
    def grpc(self):
        return self._addresses["grpc"]

    @property
    def azure_table(self):
        return self._addresses["azure_table"]

    def metrics(self, accept):
        """The metrics, in the format of `accept`; content type and text."""
        address = f"http://{self._addresses['admin']}/metrics"
        request = urllib.request.Request(address, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    def log(self):
        """The log so far."""
        self._log.seek(0)
        return self._log.read().decode()

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def end(self):
        """Sends SIGTERM, and waits until the process has exported what it recorded."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            assert self._process.wait(timeout=SECONDS) == 0, self.log()
            self._process.stdout.close()


class World:
    """A gateway and a table process that send their telemetry to a receiver."""

    def __init__(self, receiver, data_dir, **settings):
        common = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
            "TRESTLE__TELEMETRY__METRICS_EVERY_SECONDS": "1",
            **settings,
        }
        self.table = Process(
            ["--roles", "table", "--data-dir", str(data_dir)],
            {**common, "OTEL_SERVICE_NAME": "table"},
        )
        gateway = {
            **common,
            "OTEL_SERVICE_NAME": "gateway",
            "TRESTLE__GATEWAY__TABLE_ENDPOINT": f"http://{self.table.grpc}",
        }
        self.gateway = Process(["--roles", "gateway"], gateway, azure_table="127.0.0.1:0")
        self.channel = grpc.insecure_channel(self.gateway.grpc)

    def end(self):
        self.channel.close()
        self.gateway.end()
        self.table.end()

    def call(
        self,
        method,
        *fields,
        trace=None,
        service=SERVICE,
        request_id="my-request",
        authorization=None,
    ):
        """Calls a method whose first fields are texts or messages; the gRPC code of the answer."""
        call = self.channel.unary_unary(f"/{service}/{method}")
        metadata = [("x-request-id", request_id)]
        if authorization:
            metadata.append(("authorization", authorization))
        if trace:
            metadata.append(("traceparent", trace.header))
        try:
            call(message(*fields), metadata=metadata, timeout=SECONDS, wait_for_ready=True)
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    def new_table(self):
        """The name of a new table."""
        name = f"Table{next(_names)}"
        assert self.call("CreateTable", message(name)) == grpc.StatusCode.OK
        return name


class Trace:
    """A trace that a client has begun."""

    def __init__(self, sampled=True):
        self.id, self.span = secrets.token_hex(16), secrets.token_hex(8)
        self.header = f"00-{self.id}-{self.span}-{'01' if sampled else '00'}"


def message(*fields):
    """An encoded message whose first fields are texts or encoded messages."""
    return b"".join(_field(number, field) for number, field in enumerate(fields, start=1))


def _field(number, content):
    data = content.encode() if isinstance(content, str) else content
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data
