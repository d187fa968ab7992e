"""The server under test: Trestle, or Azurite for a comparison, on free ports of this machine."""

import os
import pathlib
import re
import select
import subprocess
import time

from server import FREE, Server

ACCOUNT = "devstoreaccount1"
# The key of every emulator, printed in its documentation; it protects nothing.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
AZURITE_READY_SECONDS = 30


class Target:
    """Endpoints of a running server. `name` is `trestle` or `azurite`."""

    def __init__(self, name, process, table, queue, blob):
        self.name = name
        self._process = process
        self.table_address = table
        self.queue_address = queue
        self.blob_address = blob

    @property
    def table(self):
        """The endpoint of the table service, in path style."""
        return f"http://{self.table_address}/{ACCOUNT}"

    @property
    def queue(self):
        """The endpoint of the queue service, in path style."""
        return f"http://{self.queue_address}/{ACCOUNT}"

    @property
    def blob(self):
        """The endpoint of the blob service, in path style."""
        return f"http://{self.blob_address}/{ACCOUNT}"

    @property
    def connection_string(self):
        """The account with its key and all endpoints, as a program would have it."""
        return (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
            f"TableEndpoint={self.table};QueueEndpoint={self.queue};BlobEndpoint={self.blob};"
        )

    def kill(self):
        """Ends the process at once, as a crash would."""
        self._process.kill()

    def stop(self):
        """Sends SIGTERM; returns the exit code."""
        return self._process.terminate()


# Hosts of the cloud, for clients that a proxy redirects to the server: its development account counts for them.
HOSTS = ",".join(
    f"{ACCOUNT}{replica}.{service}.core.windows.net"
    for replica in ("", "-secondary")
    for service in ("table", "queue", "blob")
)


def trestle(data_dir, settings=None, table=FREE, queue=FREE, blob=FREE):
    """Starts Trestle on `data_dir`, with more settings as variables."""
    settings = {"TRESTLE__GATEWAY__DEVELOPMENT_HOSTS": HOSTS, **(settings or {})}
    server = Server(
        data_dir, settings=settings, azure_table=table, azure_queue=queue, azure_blob=blob
    )
    addresses = [server.address(f"azure_{service}") for service in ("table", "queue", "blob")]
    return Target("trestle", server, *addresses)


class _Azurite:
    """An Azurite process with its default persistence."""

    def __init__(self, data_dir, **addresses):
        home = pathlib.Path(os.environ["AZURITE_HOME"])
        script = home / "node_modules" / "azurite" / "dist" / "src" / "azurite.js"
        command = ["node", script, "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
        command += ["--location", data_dir]
        for service, address in addresses.items():
            host, port = address.split(":")
            command += [f"--{service}Host", host, f"--{service}Port", port]
        self._process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        self.addresses = self._await_ready()

    def _await_ready(self):
        output, addresses = b"", {}
        deadline = time.monotonic() + AZURITE_READY_SECONDS
        while len(addresses) < 3:
            left = max(deadline - time.monotonic(), 0)
            readable, _, _ = select.select([self._process.stdout], [], [], left)
            more = readable and os.read(self._process.stdout.fileno(), 4096)
            assert more, f"Azurite is not ready: {output}"
            output += more
            found = re.findall(rb"Azurite (\w+) service .*? listening at http://(\S+)\s", output)
            addresses = {service.decode().lower(): address.decode() for service, address in found}
        return addresses

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def terminate(self):
        self._process.terminate()
        code = self._process.wait(timeout=AZURITE_READY_SECONDS)
        self._process.stdout.close()
        return code


def azurite(data_dir, table=FREE, queue=FREE, blob=FREE):
    """Starts Azurite on `data_dir`."""
    process = _Azurite(data_dir, table=table, queue=queue, blob=blob)
    addresses = [process.addresses[service] for service in ("table", "queue", "blob")]
    return Target("azurite", process, *addresses)


def start(data_dir, **options):
    """Starts the server that AZURE_TARGET names, Trestle without it."""
    servers = {"trestle": trestle, "azurite": azurite}
    return servers[os.environ.get("AZURE_TARGET", "trestle")](data_dir, **options)
