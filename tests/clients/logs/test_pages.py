"""The commands and programs of the pages, run as they are in them."""

import os
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEFAULT = "127.0.0.1:50051"
DPKG = """\
2026-11-25 09:14:02 startup archives unpack
2026-11-25 09:14:02 install libfoo:amd64 <none> 1.2-3
2026-11-25 09:14:05 status installed libfoo:amd64 1.2-3
"""


def blocks(page):
    """The code blocks of a page, with their languages."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def prepare(server):
    """Makes the files of the examples beside the data directory, and `trestle` on the path."""
    folder = server.data.parent
    (folder / "dpkg.log").write_text(DPKG, encoding="utf-8")
    (folder / "bin").mkdir(exist_ok=True)
    link = folder / "bin" / "trestle"
    link.unlink(missing_ok=True)
    link.symlink_to(pathlib.Path(os.environ["TRESTLE_BIN"]).absolute())
    path = f"{link.parent}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**server.environment(), "PATH": path}


def run(server, script, environment):
    """What a script of bash prints; it must succeed."""
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script.replace(DEFAULT, server.grpc)],
        cwd=server.data.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, (script, done.stdout, done.stderr)
    return done.stdout


def test_the_first_commands_of_the_page_print_what_is_in_it(server):
    environment = prepare(server)
    (block,) = [text for _, text in blocks("docs/logs.md") if "trestle log create dpkg" in text]
    commands = [part.split("\n", 1) for part in block.split("$ ")[1:]]
    assert len(commands) == 3

    # Standard output has no count of records.
    for command, printed in commands:
        assert run(server, command, environment) == printed.removesuffix("1 record\n"), command
    server.trestle("log", "delete", "dpkg", "--yes")


def test_the_page_about_logs_is_true_in_its_order(server):
    environment = prepare(server)
    languages = {"sh": "{}", "python": "python - <<'PYTHON'\n{}PYTHON\n"}
    parts = [
        languages[language].format(text)
        for language, text in blocks("docs/logs.md")
        if language in languages
    ]
    assert len(parts) >= 9

    printed = run(server, "echo ---\n".join(parts), environment)

    assert "error payment failed http.route=/pay" in printed
    assert "status installed libfoo:amd64 1.2-3" in printed and ".parquet" in printed
    assert re.search(r"ERROR payment failed .*http\.route=/pay.*service\.name=checkout", printed)
    assert re.search(r" \S+ GET /pay http\.route=/pay span\.kind=server", printed)
    assert "2026-11-25T09:15:00.500Z warn slow" in printed
    # On loopback a call without a signature would be the owner's: only what is rejected shows that it counts.
    (signed,) = [
        output
        for part, output in zip(parts, printed.split("---\n"), strict=True)
        if "trestle sas log" in part
    ]
    assert "status installed" in signed and "payment failed" not in signed, signed
    assert signed.endswith("orders: exit code 1\nappend: exit code 1\n"), signed
    by_range, of_polars, of_pandas, by_list = printed.split("---\n")[-4:]
    assert "status installed" in by_range and "startup" not in by_range, by_range
    assert of_polars.strip() == "6", of_polars
    counts = re.findall(r"^\d{4}-\d\d-\d\d +(\d+)$", of_pandas, flags=re.MULTILINE)
    assert sum(map(int, counts)) == 6, of_pandas
    assert re.search(r" 6 ", by_list), by_list


def test_the_settings_of_the_page_are_valid(server, tmp_path):
    (text,) = [text for language, text in blocks("docs/logs.md") if language == "toml"]
    assert tomllib.loads(text)["telemetry"]["trace_sample_ratio"] > 0
    path = tmp_path / "trestle.toml"
    path.write_text(text, encoding="utf-8")

    server.trestle("config", "check", "--config", path)
