"""Prints every grpcurl command of Markdown files, each ended by a NUL byte.

    commands.py FILE...
"""

import pathlib
import shlex
import sys


def commands(text):
    """The commands of the code blocks of a page: a line, and the lines that continue it."""
    is_code, command = False, ""
    for line in text.splitlines():
        if line.startswith("```"):
            is_code, command = not is_code, ""
            continue
        if not is_code:
            continue
        if not command and not line.removeprefix("$ ").startswith("grpcurl "):
            continue
        command += line if command else line.removeprefix("$ ")
        if is_complete(command):
            yield command
            command = ""
        else:
            command += "\n"


def is_complete(command):
    """Whether no quotation and no line is continued."""
    if command.endswith("\\"):
        return False
    try:
        shlex.split(command)
    except ValueError:
        return False
    return True


for path in sys.argv[1:]:
    for found in commands(pathlib.Path(path).read_text(encoding="utf-8")):
        sys.stdout.write(f"{found}\0")
