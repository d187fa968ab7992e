"""DuckDB, pandas and Polars read what `trestle` exports."""

import datetime
import json

import duckdb
import pandas
import polars
import pytest

UTC = datetime.UTC
ROWS = 70_000
GUID = "00112233-4455-6677-8899-aabbccddeeff"


def row(number):
    """An entity of every type; those with an odd number lack most of them."""
    entity = {"PartitionKey": f"p{number // 1000:03}", "RowKey": f"{number:06}", "n": number}
    if number % 2 == 0:
        typed = {
            "big": ("Int64", str(number * 10**12)),
            "created": ("DateTime", "2026-01-31T08:00:00.123456Z"),
            "data": ("Binary", "AP8="),
            "id": ("Guid", GUID),
        }
        for name, (edm, value) in typed.items():
            entity[f"{name}@odata.type"] = f"Edm.{edm}"
            entity[name] = value
        entity |= {"ok": number % 4 == 0, "ratio": number + 0.5, "text": f"row {number}"}
    if number in (6, 7):
        entity["mixed"] = 1 if number == 6 else "one"
    if number == 8:
        entity["fine@odata.type"] = "Edm.DateTime"
        entity["fine"] = "2026-01-31T08:00:00.1234567Z"
    return entity


@pytest.fixture(scope="module")
def exported(server, tmp_path_factory):
    """A table as a file of Parquet."""
    folder = tmp_path_factory.mktemp("exports")
    rows = folder / "rows.jsonl"
    rows.write_text("".join(json.dumps(row(number)) + "\n" for number in range(ROWS)), encoding="utf-8")
    server.trestle("table", "create", "rows")
    server.trestle("table", "import", "rows", rows)
    file = folder / "rows.parquet"
    server.trestle("table", "export", "rows", file, "--with-timestamp")
    return file


def test_duckdb_reads_an_exported_table(exported):
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    table = f"read_parquet('{exported}')"
    types = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()}
    properties = {
        "big": "BIGINT",
        "created": "TIMESTAMP WITH TIME ZONE",
        "data": "BLOB",
        "fine": "TIMESTAMPTZ_NS",
        "id": "VARCHAR",
        "mixed": "VARCHAR",
        "n": "INTEGER",
        "ok": "BOOLEAN",
        "ratio": "DOUBLE",
        "text": "VARCHAR",
    }
    keys = {"PartitionKey": "VARCHAR", "RowKey": "VARCHAR", "Timestamp": "TIMESTAMPTZ_NS"}
    assert list(types.items()) == list((keys | properties).items())

    query = f"SELECT count(*), count(created), sum(n), sum(big), min(ratio), max(text) FROM {table}"
    even = range(0, ROWS, 2)
    expected = (ROWS, ROWS // 2, sum(range(ROWS)), sum(even) * 10**12, 0.5, "row 9998")
    assert connection.execute(query).fetchone() == expected
    query = f"SELECT created, data, id, ok, mixed FROM {table} WHERE RowKey IN ('000006', '000007') ORDER BY RowKey"
    created = datetime.datetime(2026, 1, 31, 8, 0, 0, 123456, tzinfo=UTC)
    rows = [(created, b"\x00\xff", GUID, False, "1"), (None, None, None, None, "one")]
    assert connection.execute(query).fetchall() == rows
    metadata = f"SELECT DISTINCT row_group_id, row_group_num_rows FROM parquet_metadata('{exported}') ORDER BY 1"
    assert connection.execute(metadata).fetchall() == [(0, 65_536), (1, ROWS - 65_536)]


def test_pandas_and_polars_read_times_of_100_nanoseconds(exported):
    frame = pandas.read_parquet(exported, filters=[("RowKey", "==", "000008")])
    assert frame["fine"][0] == pandas.Timestamp("2026-01-31T08:00:00.1234567Z")
    lazy = polars.scan_parquet(exported).filter(polars.col("RowKey") == "000008")
    values = lazy.select(polars.col("fine").dt.epoch("ns"), "n", "id").collect().row(0)
    assert values == (1_769_846_400_123_456_700, 8, GUID)


def test_duckdb_reads_an_exported_stream(server, tmp_path):
    lines = [
        {"time": f"2026-01-31T08:00:{number:02}Z", "severity": "error" if number % 5 == 0 else "info",
         "body": f'request "{number}"', "n": number}
        for number in range(60)
    ]
    server.trestle("log", "create", "exported")
    server.trestle("log", "append", "exported", text="".join(json.dumps(line) + "\n" for line in lines))
    for name, reader in (("jsonl", "read_json"), ("csv", "read_csv")):
        file = tmp_path / f"app.{name}"
        server.trestle("log", "export", "exported", file, "--filter", "severity ge 'error'")
        query = f"SELECT count(*), min(body), max(severity_number) FROM {reader}('{file}')"
        assert duckdb.connect().execute(query).fetchone() == (12, 'request "0"', 17), name
