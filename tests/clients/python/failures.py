"""Calls that must fail: the code, and the google.rpc details unpacked."""

import contextlib

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

DOMAIN = "trestle.table.v1.TableService"


class Failure:
    """The error of a failed call."""

    def __init__(self):
        self.code = None
        self.message = ""
        self.info = error_details_pb2.ErrorInfo()
        self.violations = []
        self.resource = error_details_pb2.ResourceInfo()

    def read(self, error):
        """Takes the details of `error` apart; each must be of a supported type."""
        self.code = error.code()
        self.message = error.details()
        status = rpc_status.from_call(error)
        if status is None:
            return
        assert status.code == error.code().value[0] and status.message == error.details()
        for detail in status.details:
            bad_request = error_details_pb2.BadRequest()
            if detail.Unpack(bad_request):
                self.violations = [v.field for v in bad_request.field_violations]
            else:
                assert detail.Unpack(self.info) or detail.Unpack(self.resource), detail.type_url


@contextlib.contextmanager
def rejected(code, reason):
    """Expects an error with this code and reason; what it yields is filled when the block ends."""
    failure = Failure()
    with pytest.raises(grpc.RpcError) as caught:
        yield failure
    failure.read(caught.value)
    assert (failure.code, failure.info.reason) == (code, reason), failure.message
    assert failure.info.domain == DOMAIN
