"""The commands and programs of docs/guides print what the pages show."""

import re

import pytest

from transcript import GUIDES, MARK, ROOT, blocks, console, run, stable, steps

DEFAULT = "127.0.0.1:50051"


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_a_guide_prints_what_it_shows(path, server, connection, environment, tmp_path):
    page = path.read_text(encoding="utf-8")
    page = page.replace(DEFAULT, server.grpc).replace("UseDevelopmentStorage=true", connection)
    expected = steps(page)

    done = run([command for command, _ in expected], tmp_path, environment)

    assert len(done) == len(expected), (tmp_path / "transcript").read_text(encoding="utf-8")
    for (command, shown), (printed, code) in zip(expected, done, strict=True):
        if shown is None:
            assert code == 0, (command, printed)
        else:
            assert stable(printed) == stable(shown), (command, printed)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_a_guide_has_its_four_parts(path):
    headings = re.findall(r"^## (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)

    assert headings == ["When", "How", "Cost", "Avoid"]


def test_every_guide_is_found_by_what_it_is_for():
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    table = index.split("## I need …")[1].split("\n## ")[0]

    assert sorted(set(re.findall(r"guides/([\w-]+)\.md", table))) == [path.stem for path in GUIDES]


def test_a_block_of_commands_has_their_output():
    block = "$ a 'b\n c'\n1\n$ d \\\n  e\n$ f\n2\n3\n"

    assert console(block) == [("a 'b\n c'\n", "1\n"), ("d \\\n  e\n", ""), ("f\n", "2\n3\n")]
    assert blocks(f"text\n```sh\nx\n```\n```console\n{block}```\n") == [("sh", "x\n"), ("console", block)]


def test_a_step_that_prints_something_else_is_found(tmp_path):
    commands = ["x=1", "echo $x; false", "echo x >&2"]

    assert run(commands, tmp_path, {"PATH": "/usr/bin:/bin"}) == [("", 0), ("1\n", 1), ("x\n", 0)]
    assert stable("in 1.2 s at 2026-01-02T03:04:05.6Z") == stable("in 30 ms at 2027-11-12T13:14:15Z")
    assert stable("5 scanned, 10 B") == stable("5 scanned, 1.5 KiB") != stable("6 scanned, 10 B")
    assert MARK not in "".join(stable("a\n\n b  c"))
