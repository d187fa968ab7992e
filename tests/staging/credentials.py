"""Credentials of every call of a channel."""

import grpc


class _Details(grpc.ClientCallDetails):
    """The details of a call, with other metadata."""

    def __init__(self, details, metadata):
        self.method, self.timeout, self.metadata = details.method, details.timeout, metadata
        self.credentials, self.wait_for_ready = details.credentials, details.wait_for_ready
        self.compression = details.compression


class Authorized(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
):
    """Adds `authorization` to calls."""

    def __init__(self, authorization):
        self._authorization = authorization

    def _call(self, continuation, details, request):
        metadata = [*(details.metadata or []), ("authorization", self._authorization)]
        return continuation(_Details(details, metadata), request)

    intercept_unary_unary = _call
    intercept_unary_stream = _call
    intercept_stream_unary = _call
