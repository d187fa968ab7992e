"""The log of the package manager of Debian: that of the machine, or one of the same form."""

import datetime
import pathlib

MACHINE = pathlib.Path("/var/log/dpkg.log")
PATTERN = "%Y-%m-%d %H:%M:%S"
# What dpkg writes of one installation.
_STEPS = ("install {} <none> 1.2-3", "status half-installed {} 1.2-3", "status unpacked {} 1.2-3",
          "configure {} 1.2-3 <none>", "status half-configured {} 1.2-3", "status installed {} 1.2-3")


def lines():
    """The lines of the machine, or made ones, ordered by time."""
    try:
        found = MACHINE.read_text(encoding="utf-8").splitlines()
    except OSError:
        found = []
    # A clock that was set back while dpkg ran leaves lines out of order.
    return sorted(found or _made(), key=_time)


def write(path, count):
    """Writes at least `count` lines to a file: the log again and again, each time some days earlier, so that most
    lines are late. Returns the lines as pairs of a time and a text."""
    once = lines()
    first, last = _time(once[0]), _time(once[-1])
    span = datetime.timedelta(days=(last - first).days + 1)
    written = []
    while len(written) < count:
        earlier = span * (len(written) // len(once))
        written += [(_time(line) - earlier, line[20:]) for line in once]
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{time:{PATTERN}} {text}\n" for time, text in written)
    return written


def _time(line):
    return datetime.datetime.strptime(line[:19], PATTERN)


def _made():
    time = datetime.datetime(2026, 11, 20, 9, 0, 0)
    for package in range(900):
        for step in _STEPS:
            yield f"{time:{PATTERN}} {step.format(f'libexample{package}:amd64')}"
            time += datetime.timedelta(seconds=package % 3)
