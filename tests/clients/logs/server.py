"""A `trestle serve` process on free ports, and client commands against it."""

import json
import os
import pathlib
import select
import signal
import socket
import subprocess

# A port that the system picks.
FREE = "127.0.0.1:0"
SECONDS = 60


class Server:
    """A running server. Its data is in `data` of its directory, its log in `server.log`."""

    def __init__(self, directory, settings=None, *, listen=FREE):
        """Starts it, with more settings as variables."""
        self.data = pathlib.Path(directory) / "data"
        self._log = pathlib.Path(directory) / "server.log"
        command = [os.environ["TRESTLE_BIN"], "serve", "--data-dir", str(self.data)]
        command += ["--listen", listen, "--admin", FREE]
        command += ["--azure-table", "off", "--azure-queue", "off", "--azure-blob", "off"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **(settings or {})},
            )
        readable, _, _ = select.select([self._process.stdout], [], [], SECONDS)
        word, *addresses = (self._process.stdout.readline().split() if readable else []) or [""]
        if word != "ready":
            self.kill()
            raise AssertionError(f"not ready: {self.log()}")
        self.grpc = dict(address.split("=", 1) for address in addresses)["grpc"]

    @property
    def endpoint(self):
        """The address for clients, as a URL."""
        return f"http://{self.grpc}"

    @property
    def pid(self):
        """The id of the process."""
        return self._process.pid

    def log(self):
        """What the server logged so far."""
        return self._log.read_text(encoding="utf-8")

    def environment(self):
        """Variables with which `trestle` uses this server."""
        return {**os.environ, "TRESTLE_ENDPOINT": self.endpoint}

    def begin(self, *arguments, **options):
        """Starts a client command, and does not wait for its end."""
        command = [os.environ["TRESTLE_BIN"], *map(str, arguments)]
        return subprocess.Popen(
            command,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def trestle(self, *arguments, text=None, code=0):
        """What a client command prints; it must end with this exit code."""
        process = self.begin(*arguments, stdin=subprocess.PIPE)
        output, errors = process.communicate(text, timeout=SECONDS)
        assert process.returncode == code, (arguments, output, errors)
        return output

    def records(self, *arguments):
        """The records that `trestle log` prints with these arguments."""
        return [json.loads(line) for line in self.trestle("log", *arguments, "-o", "jsonl").splitlines()]

    def kill(self):
        """Ends the process at once, as a crash would."""
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def end(self):
        """Sends SIGTERM; the server must drain and end well."""
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self._process.stdout.close()
        assert code == 0, self.log()


def free_port():
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
