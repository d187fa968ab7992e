"""Every method of the clients is called by one of these suites: a new method in a client is
not left half tested."""

import inspect
import pathlib
import re

import pytest

from clients import FLAVOURS

# Addresses that a client builds itself; no request is sent.
LOCAL = {
    "location_mode",
    "primary_endpoint",
    "primary_hostname",
    "secondary_endpoint",
    "secondary_hostname",
}
CLIENTS = [
    (module, name)
    for modules in FLAVOURS.values()
    for module in modules
    for name in dir(module)
    if name.endswith("Client")
]


def suites():
    """The text of all suites but this one."""
    own = pathlib.Path(__file__)
    files = [file for file in own.parent.glob("*.py") if file != own]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize(
    ("module", "client"), CLIENTS, ids=lambda value: getattr(value, "__name__", value)
)
def test_every_method_of_a_client_is_called(module, client):
    names = {name for name, _ in inspect.getmembers(getattr(module, client))}
    public = {name for name in names if not name.startswith("_")} - LOCAL
    assert len(public) >= 5, "the client has methods"
    text = suites()
    # Called, or named to one of the helpers that call.
    missing = {name for name in public if not re.search(rf"""\.{name}\b|["']{name}["']""", text)}
    assert missing == set()
