"""A `trestle serve` process on free ports, which a test stops, or kills as a crash would."""

import os
import select
import signal
import subprocess

# A port that the system picks.
FREE = "127.0.0.1:0"
READY_SECONDS = 30
DRAIN_SECONDS = 30


class Server:
    """A running server and the addresses it announced."""

    def __init__(
        self,
        data_dir,
        settings=None,
        *,
        roles="all",
        listen=FREE,
        azure_table=FREE,
        azure_queue=FREE,
        azure_blob=FREE,
    ):
        """Starts it on `data_dir`, with more settings as variables."""
        command = [os.environ["TRESTLE_BIN"], "serve", "--data-dir", str(data_dir)]
        command += ["--roles", roles, "--listen", listen, "--admin", FREE]
        if roles in ("all", "gateway"):
            command += ["--azure-table", azure_table]
            command += ["--azure-queue", azure_queue, "--azure-blob", azure_blob]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(settings or {})},
        )
        try:
            self._addresses = self._await_ready()
        except BaseException:
            self.kill()
            raise

    def _await_ready(self):
        readable, _, _ = select.select([self._process.stdout], [], [], READY_SECONDS)
        assert readable, f"the server is not ready after {READY_SECONDS} s"
        word, *addresses = self._process.stdout.readline().split() or [""]
        assert word == "ready", (
            f"the server ended with code {self._process.wait(timeout=READY_SECONDS)}"
        )
        return dict(address.split("=", 1) for address in addresses)

    def address(self, listener):
        """The address of a listener by its name in the ready line, as `host:port`."""
        return self._addresses[listener]

    @property
    def grpc(self):
        """The address of the gRPC listener, as `host:port`."""
        return self._addresses["grpc"]

    @property
    def admin(self):
        """The address of the admin listener, as `host:port`."""
        return self._addresses["admin"]

    def kill(self):
        """Ends the process at once, as a crash would."""
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def terminate(self):
        """Sends SIGTERM, which drains; returns the exit code."""
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(timeout=DRAIN_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self._process.stdout.close()
        return code
