"""DuckDB and pandas read the segments of a stream, without the server, and see what a read returns."""

import pathlib
import time

import duckdb
import pandas
import polars
import pyarrow.dataset
import pyarrow.parquet
import pytest

from server import Server

# More than a row group has at most: 131,072 rows.
RECORDS = 150_000
BATCH = 10_000
DAY_NANOS = 86_400_000_000_000
ROUTES = ("/pay", "/cart", "/search")


def trace_of(number):
    """The trace of a record: four records have the same."""
    return (number // 4 + 1).to_bytes(16)


def make(api, number, start):
    """A record, of one day or of the next."""
    record = api.record.Record(
        time_unix_nano=start + number * 500_123_457,
        observed_time_unix_nano=start + number * 500_123_457 + 7,
        severity_number=17 if number % 50 == 0 else 9,
        trace_id=trace_of(number),
        span_id=(number + 1).to_bytes(8),
    )
    record.body.string_value = f"request {number}"
    record.attributes["http.route"].string_value = ROUTES[number % 3]
    record.attributes["items"].int_value = number
    return record


@pytest.fixture(scope="module")
def start():
    """A time three days ago, and an hour before midnight: most records are of the next day."""
    return (time.time_ns() // DAY_NANOS - 3) * DAY_NANOS - DAY_NANOS // 24


@pytest.fixture(scope="module")
def stream(api, stub, server, start):
    """A sealed stream with a promoted attribute."""
    name = "web"
    server.trestle("log", "create", name, "--promote", "http.route:string:indexed")
    for first in range(0, RECORDS, BATCH):
        records = [make(api, number, start) for number in range(first, first + BATCH)]
        # Late records: a batch is not ordered by time.
        records.reverse()
        stub.AppendRecords(api.pb.AppendRecordsRequest(stream=name, records=records))
    server.trestle("log", "flush", name)
    return name


@pytest.fixture(scope="module")
def files(server, stream):
    """The pattern of the files in the data directory, and a connection that reads in UTC."""
    pattern = f"{server.data}/log/*/stream=*/date=*/*.parquet"
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        f"CREATE VIEW logs AS SELECT * FROM read_parquet('{pattern}', hive_partitioning = true)"
    )
    yield connection
    connection.close()


def read(api, stub, stream, **request):
    """What ReadRecords returns, as rows of plain values."""
    request = api.pb.ReadRecordsRequest(stream=stream, **request)
    for answer in stub.ReadRecords(request):
        for record in answer.records:
            yield (
                record.time_unix_nano,
                record.observed_time_unix_nano,
                record.sequence,
                record.severity_number,
                record.body.string_value,
                record.attributes["http.route"].string_value,
                record.attributes["items"].int_value,
                record.trace_id,
                record.span_id,
            )


# The same of the columns of a segment.
COLUMNS = """
    epoch_us(time) * 1000 + time_ns, observed_time, sequence, severity_number, body,
    "attr_http.route", CAST(attributes->>'$.items' AS BIGINT), trace_id, span_id
"""


def test_duckdb_reads_the_rows_of_a_read(api, stub, stream, files):
    query = f"SELECT {COLUMNS} FROM logs WHERE stream = 'web' ORDER BY time, time_ns, sequence"
    rows = files.execute(query).fetchall()

    assert len(rows) == RECORDS
    assert rows == list(read(api, stub, stream))


def test_pandas_reads_the_rows_of_a_read(api, stub, server, stream):
    frame = pandas.read_parquet(
        server.data / "log",
        filters=[("stream", "==", stream), ("severity_number", ">=", 17)],
    )
    frame = frame.sort_values(["time", "time_ns", "sequence"])
    nanos = frame["time"].astype("datetime64[ns, UTC]").astype("int64") + frame["time_ns"]

    expected = list(read(api, stub, stream, filter="severity ge 'error'"))
    assert len(expected) == RECORDS // 50
    assert list(nanos) == [row[0] for row in expected]
    assert list(frame["body"]) == [row[4] for row in expected]
    assert list(frame["attr_http.route"]) == [row[5] for row in expected]
    assert list(frame["trace_id"]) == [row[7] for row in expected]


def test_a_folder_is_a_day_and_a_file_is_ordered_and_described(server, stream, start):
    urls = [segment["url"] for segment in server.records("segments", stream)]
    paths = [pathlib.Path(url.removeprefix("file://")) for url in urls]
    assert sorted(paths) == sorted(server.data.resolve().glob("log/*/stream=web/date=*/*.parquet"))
    for path in paths:
        table = pyarrow.parquet.read_table(path, columns=["time"], partitioning=None)
        days = {time.date().isoformat() for time in table["time"].to_pylist()}
        assert path.parent.name == f"date={days.pop()}" and not days

        file = pyarrow.parquet.ParquetFile(path)
        for index, column in enumerate(("time", "time_ns", "observed_time", "sequence"), start=1):
            field = file.schema_arrow.field(column)
            assert field.metadata[b"PARQUET:field_id"] == str(index).encode()
        groups = [file.metadata.row_group(index) for index in range(file.num_row_groups)]
        for group in groups:
            time_column = group.column(0)
            assert time_column.statistics.has_min_max and time_column.has_offset_index
            trace_column = group.column(12)
            assert trace_column.path_in_schema == "trace_id" and trace_column.bloom_filter_offset
            assert time_column.compression == "ZSTD"
        bounds = [group.column(0).statistics for group in groups]
        assert all(a.max <= b.min for a, b in zip(bounds, bounds[1:])), "row groups are ordered"


def plan(files, condition):
    """What DuckDB did to count rows by a condition, and how many there are. Every row has a body."""
    query = f"SELECT count(body) FROM logs WHERE {condition}"
    (count,) = files.execute(query).fetchone()
    (_, text), *_ = files.execute(f"EXPLAIN ANALYZE {query}").fetchall()
    return text, count


def scanned(text):
    """Row groups that were read, and how many the files have."""
    (line,) = [line for line in text.splitlines() if "Row Groups Scanned:" in line]
    read, of = line.split(":")[1].strip(" │").split("/")
    return int(read), int(of)


def test_duckdb_skips_row_groups_by_time(api, stub, stream, files, start):
    text, count = plan(files, f"time < make_timestamptz({start // 1000} + 3_600_000_000 - 1000)")
    read_groups, groups = scanned(text)

    assert count == sum(1 for number in range(RECORDS) if number * 500_123_457 < DAY_NANOS // 24 - 10**6)
    assert read_groups < groups, text


def test_duckdb_skips_folders_by_date(files, start):
    day = time.strftime("%Y-%m-%d", time.gmtime(start / 10**9))
    text, count = plan(files, f"date = '{day}'")

    assert 0 < count < RECORDS
    assert "Scanning Files: 1/2" in text, text


def test_duckdb_skips_row_groups_by_trace_id(api, stub, stream, files):
    trace_id = trace_of(RECORDS - 1)
    text, count = plan(files, f"trace_id = unhex('{trace_id.hex()}')")
    rows = list(read(api, stub, stream, filter=f"trace_id eq '{trace_id.hex()}'"))

    assert count == len(rows) == 4
    read_groups, groups = scanned(text)
    assert read_groups < groups, text


def test_pyarrow_skips_row_groups_by_time(server, stream, start):
    dataset = pyarrow.dataset.dataset(server.data / "log" / "devstoreaccount1", partitioning="hive")
    bound = pandas.Timestamp(start + DAY_NANOS // 24, tz="UTC")
    before = pyarrow.dataset.field("time") < bound
    parts = [part for of_file in dataset.get_fragments(before) for part in of_file.split_by_row_group(before)]
    touched = [group.id for part in parts for group in part.row_groups]
    everything = [group.id for part in dataset.get_fragments() for group in part.row_groups]

    assert len(touched) < len(everything)
    count = sum(1 for number in range(RECORDS) if number * 500_123_457 < DAY_NANOS // 24)
    assert dataset.count_rows(filter=before) == count


def test_the_list_of_segments_has_every_record_once_after_they_were_merged(api, stub, server, files):
    server.trestle("log", "create", "small")
    for number in range(8):
        server.trestle("log", "append", "small", "--format", "text", text=f"line {number}\n")
        server.trestle("log", "flush", "small")
    until = time.monotonic() + 40
    while len(segments := server.records("segments", "small")) != 1:
        assert time.monotonic() < until, segments
        time.sleep(0.2)
    assert (segments[0]["level"], segments[0]["records"]) == (1, 8)

    urls = [segment["url"].removeprefix("file://") for segment in segments]
    by_list = files.execute("SELECT body FROM read_parquet(?) ORDER BY sequence", [urls]).fetchall()
    assert by_list == [(f"line {number}",) for number in range(8)]
    # The files that were merged remain for reads that have begun: a glob has to leave repeated rows out.
    glob = "SELECT {} FROM logs WHERE stream = 'small'"
    assert files.execute(glob.format("count(*)")).fetchone() == (16,)
    assert files.execute(glob.format("count(DISTINCT sequence)")).fetchone() == (8,)


@pytest.mark.parametrize("name", ["007", "2026-11-20", "1e3", "true", "2026-11-20t10"])
def test_the_name_of_a_stream_that_looks_like_another_type_is_text(server, name):
    server.trestle("log", "create", name)
    server.trestle("log", "append", name, text='{"body":"x"}\n')
    server.trestle("log", "flush", name)
    folder = server.data / "log" / "devstoreaccount1"
    files = f"{folder}/stream={name}/date=*/*.parquet"

    # As the page has it.
    types = "hive_partitioning = true, hive_types = {'stream': VARCHAR, 'date': DATE}"
    of_duckdb = duckdb.sql(f"SELECT DISTINCT stream FROM read_parquet('{files}', {types})").fetchall()
    schema = {"stream": polars.String, "date": polars.Date}
    of_polars = polars.scan_parquet(files, hive_schema=schema).filter(polars.col("stream") == name)
    of_pandas = pandas.read_parquet(folder, filters=[("stream", "==", name)])

    assert of_duckdb == [(name,)]
    assert list(of_polars.collect()["stream"]) == [name]
    assert list(of_pandas["body"]) == ["x"]


def test_the_files_are_complete_without_the_server(tmp_path):
    server = Server(tmp_path)
    server.trestle("log", "create", "packages")
    text = "".join(f"line {number}\n" for number in range(100))
    server.trestle("log", "append", "packages", "--format", "text", text=text)
    server.trestle("log", "flush", "packages")
    server.end()

    frame = pandas.read_parquet(server.data / "log")

    assert list(frame.sort_values("sequence")["body"]) == text.splitlines()
    assert set(frame["stream"]) == {"packages"}
