"""What a client raises when a call is rejected, checked whole: class, status and code."""

import contextlib
import json

import pytest


def code_of(error):
    """The code of the service in an error, at any of the attributes of the library."""
    found = getattr(error, "error_code", None)
    if found is None:
        # An insert raises what it got, before the library has read it.
        found = error.response.headers.get("x-ms-error-code")
    if found is None:
        with contextlib.suppress(ValueError):
            found = json.loads(error.response.text())["odata.error"]["code"]
    return getattr(found, "value", found)


@contextlib.contextmanager
def rejected(kind, status, *codes):
    """Runs a call that must raise `kind` itself, with `status` and one of `codes`."""
    with pytest.raises(kind) as raised:
        yield raised
    error = raised.value
    assert type(error) is kind, f"the library made a {type(error).__name__} of it: {error}"
    assert (error.status_code, code_of(error)) in [(status, code) for code in codes]


@contextlib.contextmanager
def forbidden(kind, *codes):
    """Runs a call that must raise `kind`, or a subclass, with status 403 and one of `codes`."""
    with pytest.raises(kind) as raised:
        yield raised
    assert (raised.value.status_code, code_of(raised.value)) in [(403, code) for code in codes]


def rewriting(*replacements):
    """The option that changes the body of a request after the library has written it."""

    def rewrite(request):
        body = request.http_request.data or request.http_request.content
        body = body if isinstance(body, bytes) else body.encode()
        for old, new in replacements:
            assert old in body, f"the library does not write {old}"
            body = body.replace(old, new)
        request.http_request.set_bytes_body(body)

    return {"raw_request_hook": rewrite}
