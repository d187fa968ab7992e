"""Nothing that a process sends or logs holds a secret: no key, no signature, no token, whichever way
it came, and whether it was good or not."""

import base64
import hashlib
import hmac
import os
import secrets
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from email.utils import formatdate

import grpc
import pytest

from processes import SECONDS, Trace, World
from receiver import eventually

ACCOUNT = "acme"


class Guarded:
    """Processes with an account of their own, everything logged, and the secrets that are sent to
    them."""

    def __init__(self, receiver, tmp_path):
        self.receiver, self._traces = receiver, []
        self.key = base64.b64encode(secrets.token_bytes(64)).decode()
        self._key_file = tmp_path / "key"
        self._key_file.write_text(self.key)
        self.world = World(
            receiver,
            tmp_path / "data",
            TRESTLE__ACCOUNTS__ACME__KEY1=self.key,
            TRESTLE__TELEMETRY__ACCESS_LOG="stderr",
            TRESTLE__TELEMETRY__LOG_FILTER="trace",
        )
        self.secrets = {self.key, base64.b64encode(f"{ACCOUNT}:{self.key}".encode()).decode()}

    def token(self):
        """A valid token of the account. Its signature is a secret in every encoding."""
        command = [os.environ["TRESTLE_BIN"], "sas", "account", "--account", ACCOUNT]
        command += ["--account-key-file", str(self._key_file), "--permissions", "rl"]
        command += ["--expiry", "1h"]
        token = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        self.guard_token(token)
        return token

    def guard_token(self, token):
        sent = token.split("sig=")[1].split("&")[0]
        self.secrets |= {sent, urllib.parse.unquote(sent)}

    def grpc(self, authorization):
        """Calls with credentials; the code."""
        return self.world.call("ListTables", trace=self._trace(), authorization=authorization)

    def rest(self, query="", authorization=None, date=None, method="GET"):
        """Lists the tables with credentials; returns the status."""
        address = self.world.gateway.azure_table
        headers = {
            "traceparent": self._trace().header,
            "x-ms-version": "2019-02-02",
            "x-ms-date": date or formatdate(usegmt=True),
            "accept": "application/json;odata=nometadata",
        }
        if authorization:
            headers["authorization"] = authorization
        address = f"http://{address}/{ACCOUNT}/Tables?{query}"
        request = urllib.request.Request(address, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def shared_key(self, date):
        """The signature of a request that lists the tables."""
        text = f"{date}\n/{ACCOUNT}/{ACCOUNT}/Tables".encode()
        made = hmac.new(base64.b64decode(self.key), text, hashlib.sha256).digest()
        signature = base64.b64encode(made).decode()
        self.secrets.add(signature)
        return f"SharedKeyLite {ACCOUNT}:{signature}"

    def _trace(self):
        self._traces.append(Trace())
        return self._traces[-1]

    def logged(self):
        """Everything that was sent and logged, once each request's spans have arrived."""
        for trace in self._traces:
            assert eventually(lambda: self.receiver.spans(trace.id)), trace.id
        self.world.end()
        logs = [self.world.gateway.log(), self.world.table.log()]
        return self.receiver.everything() + "\n".join(logs).encode()


@pytest.fixture
def guarded(receiver, tmp_path):
    guarded = Guarded(receiver, tmp_path)
    yield guarded
    guarded.world.end()


def test_no_secret_is_exported_or_logged(guarded):
    token = guarded.token()
    wrong = token.replace("sp=", "sp=w")
    garbled = token.replace("sig=", "sig=%zz")
    basic = base64.b64encode(f"{ACCOUNT}:{guarded.key}".encode()).decode()
    cut = base64.b64encode(f"{ACCOUNT}:{guarded.key[:-4]}".encode()).decode()
    guarded.secrets |= {cut, guarded.key[:-4]}

    ok, rejected = grpc.StatusCode.OK, grpc.StatusCode.UNAUTHENTICATED
    assert guarded.grpc(f"Basic {basic}") == ok
    assert guarded.grpc(f"Basic {cut}") == rejected
    assert guarded.grpc(f"Bearer {basic}") == rejected
    assert guarded.grpc(f"SharedAccessSignature {token}") == ok
    assert guarded.grpc(f"SharedAccessSignature {wrong}") == rejected
    assert guarded.grpc(f"SharedAccessSignature {garbled}") == rejected
    assert guarded.grpc(token) == rejected
    assert guarded.rest(token) == 200
    assert guarded.rest(wrong) == 403
    assert guarded.rest(garbled) in (400, 403)
    assert guarded.rest(f"{token}&$top=nothing") == 400
    assert guarded.rest(f"{token}&{token}") in (400, 403)
    assert guarded.rest(token, method="PUT") in (400, 405)
    date = formatdate(usegmt=True)
    assert guarded.rest(authorization=guarded.shared_key(date), date=date) == 200
    assert guarded.rest(authorization=guarded.shared_key("yesterday"), date=date) == 403
    assert guarded.rest(authorization=f"SharedKey {guarded.key}") == 400

    logged = guarded.logged()
    assert b"my-request" in logged and b"ListTables" in logged and b"acme" in logged
    for secret in guarded.secrets:
        for form in {secret, urllib.parse.quote(secret, safe="")}:
            assert form.encode() not in logged, "a secret was logged"
