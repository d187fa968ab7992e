"""The virtual environment of the pages is made by their line, and is the one that its shell uses."""

import re
import subprocess

from transcript import ROOT

LINE = "python3 -m venv .venv && . .venv/bin/activate"


def test_the_line_of_the_pages_makes_an_environment_and_uses_it(tmp_path):
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    lines = re.findall(r"^(?:\$ )?(python3 -m venv.*)$", text, re.MULTILINE)
    assert len(lines) >= 2 and set(lines) == {LINE}

    script = f"{LINE}\npython -c 'import sys; print(sys.prefix)'"
    done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == f"{tmp_path / '.venv'}\n"
