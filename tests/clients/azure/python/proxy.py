"""A proxy between a client and a server, which can respond instead of the server."""

import contextlib
import http.client
import http.server
import threading
from urllib.parse import urlsplit

HOP_HEADERS = {"connection", "keep-alive", "proxy-connection", "transfer-encoding"}


class Proxy(http.server.ThreadingHTTPServer):
    """Forwards to one server, for any host of a request, unless it injects a failure."""

    daemon_threads = True

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.requests = []
        self._failures = []
        self._lock = threading.Lock()

    @property
    def address(self):
        """Its address, as `host:port`."""
        return f"127.0.0.1:{self.server_port}"

    def fail(self, times, status=503, **headers):
        """Answers the next requests itself, as a server does that cannot serve them now."""
        with self._lock:
            self._failures += [(status, headers)] * times

    def next_failure(self, request):
        """Records a request; the failure it gets, if any."""
        with self._lock:
            self.requests.append(request)
            return self._failures.pop(0) if self._failures else None


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        failure = self.server.next_failure((self.command, self.path))
        if failure:
            status, headers = failure
            self._answer(status, {"x-ms-error-code": "ServerBusy", **headers}.items(), b"")
            return
        parts = urlsplit(self.path)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        connection = http.client.HTTPConnection(self.server.upstream, timeout=60)
        with contextlib.closing(connection):
            connection.putrequest(
                self.command, path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():
                if name.lower() not in HOP_HEADERS:
                    connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            self._answer(answer.status, answer.getheaders(), answer.read())

    def _answer(self, status, headers, body):
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in HOP_HEADERS | {"content-length"}:
                self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _forward

    def log_message(self, *_):
        """Nothing: the tests send the requests."""


@contextlib.contextmanager
def proxy_to(upstream):
    """A proxy that runs until the end of the block."""
    with Proxy(upstream) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
