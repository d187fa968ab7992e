"""The staging stack: the compose file as it is, started by a container engine."""

import contextlib
import json
import os
import pathlib
import random
import re
import secrets
import socket
import subprocess
import time
import urllib.parse
import urllib.request

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
ENGINE = os.environ["ENGINE"]
ROLES = ("gateway", "table", "queue", "blob")
READY_SECONDS = 40
# Below those that the system gives to whoever asks for any: nobody takes one by chance before its container has it.
PORTS = range(16_384, 32_768)
_returned = set()


def endpoints(environments):
    """Where a gateway has to reach each role, by the environments of the named processes, and where it does."""
    served = {role: name for name, one in environments.items() for role in one["TRESTLE__SERVER__ROLES"].split(",")}
    of_gateway = environments[served.pop("gateway")]
    setting = r"TRESTLE__GATEWAY__([A-Z]+)_ENDPOINT"
    reached = {match[1].lower(): value for name, value in of_gateway.items() if (match := re.fullmatch(setting, name))}
    return {role: f"http://{name}:50051" for role, name in served.items()}, reached


def free_port():
    """A port of loopback without a listener, and none that was returned before."""
    while True:
        port = random.choice(PORTS)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            if port not in _returned:
                _returned.add(port)
                return port


def run(command, **options):
    """Runs a command to its end; what it printed."""
    done = subprocess.run(command, text=True, capture_output=True, stdin=subprocess.DEVNULL, **options)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def until(find, what, seconds=READY_SECONDS):
    """What `find` returns once that is true."""
    end = time.monotonic() + seconds
    while True:
        found = find()
        if found:
            return found
        assert time.monotonic() < end, f"not in time: {what() if callable(what) else what}"
        time.sleep(0.2)


class Stack:
    """The services of a compose file, by their names."""

    def __init__(self, project, variables, *, files, profiles=()):
        self.project = project
        self.grpc, self._prometheus = free_port(), free_port()
        self.admin = free_port()
        self._variables = {
            **os.environ,
            "TRESTLE_BUILD_TARGET": "local",
            "TRESTLE_PORT": str(self.grpc),
            "TRESTLE_AZURE_BLOB_PORT": str(free_port()),
            "TRESTLE_AZURE_QUEUE_PORT": str(free_port()),
            "TRESTLE_AZURE_TABLE_PORT": str(free_port()),
            "TRESTLE_ADMIN_PORT": str(self.admin),
            "PROMETHEUS_PORT": str(self._prometheus),
            "TRESTLE_GATEWAY_SECRET": secrets.token_hex(32),
            "GRAFANA_ADMIN_PASSWORD": secrets.token_hex(32),
            **variables,
        }
        compose = ["docker", "compose"] if ENGINE == "docker" else [os.environ["PODMAN_COMPOSE"]]
        self._compose = [*compose, "--project-name", project]
        for file in files:
            self._compose += ["--file", str(file)]
        for profile in profiles:
            self._compose += ["--profile", profile]

    def compose(self, *arguments, **variables):
        """Runs a command of compose."""
        return run([*self._compose, *arguments], env={**self._variables, **variables})

    def up(self, *services, **variables):
        """Starts services, those they depend on apart, and creates containers that changed again."""
        self.compose("up", "--detach", "--no-build", "--no-deps", *services, **variables)

    def remove(self):
        """Removes everything that the stack has made."""
        self.compose("down", "--volumes", "--timeout", "0")

    def container(self, service):
        """The id of the container of a service."""
        filters = [
            f"--filter=label=com.docker.compose.project={self.project}",
            f"--filter=label=com.docker.compose.service={service}",
        ]
        (found,) = run([ENGINE, "ps", "--all", "--quiet", *filters]).split()
        return found

    def engine(self, command, service, *arguments):
        """Runs a command of the engine on the container of a service."""
        return run([ENGINE, command, *arguments, self.container(service)])

    def address(self, service):
        """The address of the container of a service in the network of the stack."""
        found = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return self.engine("inspect", service, "--format", found).strip()

    def logs(self, service):
        """Everything that a service has printed."""
        command = [ENGINE, "logs", self.container(service)]
        done = subprocess.run(command, text=True, capture_output=True, check=True)
        return done.stdout + done.stderr

    def shell(self, command):
        """What the shell of the object store prints for a command."""
        words = [ENGINE, "exec", "--interactive", self.container("s3"), "weed", "shell"]
        done = subprocess.run(words, input=command, text=True, capture_output=True, timeout=60)
        return done.stdout

    def is_healthy(self, service):
        """Whether the health check of the image succeeds in the container of a service."""
        command = [ENGINE, "exec", self.container(service), "/trestle", "healthcheck"]
        return subprocess.run(command, capture_output=True).returncode == 0

    def until_healthy(self, *services):
        """Waits until services serve."""
        for service in services:
            until(
                lambda service=service: self.is_healthy(service),
                lambda service=service: f"{service} is healthy: {self.logs(service)[-2000:]}",
            )

    def prometheus(self, path, **parameters):
        """The data of an answer of the API of Prometheus."""
        query = urllib.parse.urlencode(parameters, doseq=True)
        url = f"http://127.0.0.1:{self._prometheus}/api/v1/{path}?{query}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        """The samples of an expression: labels and value."""
        found = self.prometheus("query", query=expression)["result"]
        return [(sample["metric"], float(sample["value"][1])) for sample in found]
