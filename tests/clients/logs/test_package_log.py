"""A real log of the machine: appended, read by time range, followed, and sealed."""

import datetime

import pytest

import package_log

LINES = 100_000


@pytest.fixture(scope="module")
def written(server, tmp_path_factory):
    """The stream `packages` with the lines of a file; the lines."""
    path = tmp_path_factory.mktemp("log") / "dpkg.log"
    written = package_log.write(path, LINES)
    server.trestle("log", "create", "packages")
    arguments = ["--format", "text", "--timestamp-pattern", package_log.PATTERN]
    printed = server.trestle("log", "append", "packages", path, *arguments)
    assert printed == f"appended {len(written):,} records to packages\n"
    return written


def read(server, *arguments):
    """The records of the stream, as times and texts, and their sequences."""
    records = server.records("read", "packages", *arguments)
    pairs = [
        (datetime.datetime.strptime(record["time"], "%Y-%m-%dT%H:%M:%SZ"), record["body"])
        for record in records
    ]
    return pairs, [record["sequence"] for record in records]


def in_order(written):
    """As a read returns them: by time, and lines of one second as they were appended."""
    return sorted(written, key=lambda line: line[0])


def middle(written):
    """A range of time with about a tenth of the lines."""
    times = sorted(time for time, _ in written)
    return times[len(times) * 45 // 100], times[len(times) * 55 // 100]


def check_reads(server, written):
    everything, sequences = read(server)
    assert everything == in_order(written)
    assert sorted(sequences) == list(range(len(written)))

    since, until = middle(written)
    expected = [line for line in in_order(written) if since <= line[0] < until]
    assert 0 < len(expected) < len(written)
    window = ["--since", f"{since.isoformat()}Z", "--until", f"{until.isoformat()}Z"]
    found, sequences = read(server, *window)
    assert found == expected
    assert read(server, *window, "--reverse") == (expected[::-1], sequences[::-1])
    assert read(server, *window, "--limit", "7") == (expected[:7], sequences[:7])
    installed = [line for line in expected if line[1].startswith("status installed ")]
    found, _ = read(server, *window, "--filter", "startswith(body, 'status installed ')")
    assert found == installed and installed


def test_a_time_range_is_read_in_order_before_and_after_the_records_are_sealed(server, written):
    check_reads(server, written)

    printed = server.trestle("log", "flush", "packages")

    segments = server.records("segments", "packages")
    assert printed == (
        f"sealed {len(written):,} records of stream packages into {len(segments)} segments\n"
    )
    assert sum(segment["records"] for segment in segments) == len(written)
    days = {time.date().isoformat() for time, _ in written}
    assert {segment["url"].split("/date=")[1][:10] for segment in segments} == days
    stored = sum(segment["bytes"] for segment in segments)
    plain = sum(len(text) + 21 for _, text in written)
    assert stored * 5 < plain, "a log of text is compressed"
    check_reads(server, written)


def test_segments_are_listed_by_time_range(server, written):
    server.trestle("log", "flush", "packages")
    since, until = middle(written)

    window = ["--since", f"{since.isoformat()}Z", "--until", f"{until.isoformat()}Z"]
    listed = server.records("segments", "packages", *window)

    days = {time.date().isoformat() for time, _ in written if since <= time < until}
    assert {segment["url"].split("/date=")[1][:10] for segment in listed} == days
    assert len(listed) < len(server.records("segments", "packages"))


def test_the_last_records_are_printed_and_new_ones_follow(server, tmp_path):
    path = tmp_path / "dpkg.log"
    written = package_log.write(path, 1)
    server.trestle("log", "create", "followed")
    arguments = ["--format", "text", "--timestamp-pattern", package_log.PATTERN]
    server.trestle("log", "append", "followed", path, *arguments)

    last = server.records("tail", "followed", "-n", "3")
    assert [record["body"] for record in last] == [text for _, text in written[-3:]]

    tail = server.begin("log", "tail", "followed", "-f", "-n", "1")
    try:
        assert tail.stdout.readline().endswith(f" {written[-1][1]}\n")
        server.trestle("log", "append", "followed", "--format", "text", text="one more\n")
        assert tail.stdout.readline().endswith(" one more\n")
        server.trestle("log", "flush", "followed")
        server.trestle("log", "append", "followed", "--format", "text", text="after the seal\n")
        assert tail.stdout.readline().endswith(" after the seal\n")
    finally:
        tail.kill()
        tail.communicate()


def test_a_file_that_is_appended_again_adds_nothing(server, tmp_path):
    path = tmp_path / "dpkg.log"
    written = package_log.write(path, 1)
    server.trestle("log", "create", "repeated")
    arguments = ["--format", "text", "--timestamp-pattern", package_log.PATTERN]
    arguments += ["--request-id-prefix", "dpkg"]

    for _ in range(2):
        server.trestle("log", "append", "repeated", path, *arguments)

    assert len(server.records("read", "repeated")) == len(written)
