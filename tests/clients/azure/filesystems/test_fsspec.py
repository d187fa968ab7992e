"""adlfs: the file system of fsspec for blobs, as pandas, Dask and DuckDB use it."""

import datetime
import urllib.request

import duckdb
import fsspec
import pandas
import pytest

MIB = 1 << 20
PATHS = ["a.txt", "dir/b.txt", "dir/below/c d é+%.txt"]


@pytest.fixture
def filled(files, container):
    """The paths of some files."""
    paths = [f"{container}/{path}" for path in PATHS]
    for number, path in enumerate(paths):
        files.pipe(path, b"x" * number)
    return paths


@pytest.fixture
def frame():
    """Rows to write."""
    return pandas.DataFrame({"id": range(1000), "kind": [f"k{row % 3}" for row in range(1000)]})


def test_files_are_listed_by_folder_and_as_a_tree(files, container, filled):
    assert files.ls(container) == [f"{container}/a.txt", f"{container}/dir"]
    assert sorted(files.find(container)) == sorted(filled)
    assert files.glob(f"{container}/dir/*.txt") == [f"{container}/dir/b.txt"]
    walked = [(sorted(folders), sorted(names)) for _, folders, names in files.walk(container)]
    assert walked == [(["dir"], ["a.txt"]), (["below"], ["b.txt"]), ([], ["c d é+%.txt"])]
    assert files.du(container) == 3


def test_a_file_is_described(files, container, filled):
    info = files.info(filled[2])
    assert (info["name"], info["type"], info["size"]) == (filled[2], "file", 2)
    assert files.modified(filled[2]).tzinfo == datetime.timezone.utc
    assert files.isdir(f"{container}/dir/below") and not files.isfile(f"{container}/dir")
    assert not files.exists(f"{container}/missing")
    with pytest.raises(FileNotFoundError):
        files.info(f"{container}/missing")


def test_a_large_file_is_written_in_blocks_and_read_by_ranges(files, service, container):
    content = bytes(range(256)) * (9 * MIB // 256)
    with files.open(f"{container}/large", "wb", block_size=4 * MIB) as file:
        for start in range(0, len(content), MIB):
            file.write(content[start : start + MIB])
    committed, _ = service.get_blob_client(container, "large").get_block_list("all")
    assert len(committed) > 1
    with files.open(f"{container}/large", "rb", block_size=MIB) as file:
        file.seek(5 * MIB + 1)
        assert file.read(10) == content[5 * MIB + 1 : 5 * MIB + 11]
    assert files.cat(f"{container}/large") == content
    ranges = files.cat_ranges([f"{container}/large"] * 2, [0, 8 * MIB], [4, 8 * MIB + 4])
    assert ranges == [b"\0\1\2\3"] * 2


def test_a_file_is_appended_to(files, service, container):
    path = f"{container}/log.txt"
    for line in ["one\n", "two\n"]:
        with files.open(path, "ab") as file:
            file.write(line.encode())
    assert files.cat(path) == b"one\ntwo\n"
    kind = service.get_blob_client(container, "log.txt").get_blob_properties().blob_type
    assert kind == "AppendBlob"


def test_folders_are_uploaded_downloaded_and_copied(files, container, tmp_path):
    (tmp_path / "from" / "below").mkdir(parents=True)
    (tmp_path / "from" / "a").write_text("a")
    (tmp_path / "from" / "below" / "b").write_text("b")
    files.put(str(tmp_path / "from"), f"{container}/up", recursive=True)
    files.copy(f"{container}/up", f"{container}/copied", recursive=True)
    files.mv(f"{container}/copied/a", f"{container}/copied/moved")
    files.get(f"{container}/copied", str(tmp_path / "to"), recursive=True)
    assert (tmp_path / "to" / "moved").read_text() == "a"
    assert (tmp_path / "to" / "below" / "b").read_text() == "b"
    assert not files.exists(f"{container}/copied/a")


def test_files_folders_and_containers_are_deleted(files, service, container, filled):
    files.rm(f"{container}/dir", recursive=True)
    assert files.find(container) == [f"{container}/a.txt"]
    files.rm(f"{container}/a.txt")
    files.rm(container, recursive=True)
    assert container not in [item.name for item in service.list_containers()]


def test_a_container_is_made_and_removed(files, container):
    made = f"{container}-made"
    files.mkdir(made)
    with pytest.raises(FileExistsError):
        files.mkdir(made, exist_ok=False)
    assert made in files.ls("")
    files.rmdir(made)
    assert made not in files.ls("", invalidate_cache=True)


def test_metadata_of_a_file_is_kept(files, container):
    path = f"{container}/described"
    with files.open(path, "wb", metadata={"owner": "me"}) as file:
        file.write(b"x")
    assert files.getxattr(path, "owner") == "me"
    files.setxattrs(path, owner="you")
    assert files.getxattr(path, "owner") == "you"


def test_a_signed_address_is_read_by_any_program(files, target, container):
    files.pipe(f"{container}/dir/signed é.txt", b"signed")
    url = files.sign(f"{container}/dir/signed é.txt", expiration=60)
    with urllib.request.urlopen(url, timeout=10) as response:
        assert response.read() == b"signed"


def test_pandas_writes_and_reads_parquet_and_csv(container, options, frame):
    for scheme in ("abfs", "az"):
        url = f"{scheme}://{container}/{scheme}/rows.parquet"
        frame.to_parquet(url, storage_options=options)
        pandas.testing.assert_frame_equal(
            pandas.read_parquet(url, storage_options=options, columns=["id", "kind"]), frame
        )
    url = f"abfs://{container}/rows.csv.gz"
    frame.to_csv(url, index=False, storage_options=options)
    pandas.testing.assert_frame_equal(pandas.read_csv(url, storage_options=options), frame)


def test_pandas_partitions_a_data_set(files, container, options, frame):
    url = f"abfs://{container}/rows"
    frame.to_parquet(url, partition_cols=["kind"], storage_options=options)
    assert len(files.glob(f"{container}/rows/kind=*/*.parquet")) == 3
    read = pandas.read_parquet(url, storage_options=options, filters=[("kind", "==", "k1")])
    assert sorted(read["id"]) == list(range(1, 1000, 3))


def test_duckdb_queries_and_exports_files(files, container, options, frame):
    for kind, rows in frame.groupby("kind"):
        url = f"abfs://{container}/rows/{kind}.parquet"
        rows.to_parquet(url, index=False, storage_options=options)
    with duckdb.connect() as database:
        database.register_filesystem(files)
        query = f"select kind, count(*) as rows from 'abfs://{container}/rows/*.parquet'"
        query += " group by kind order by kind"
        assert database.sql(query).fetchall() == [("k0", 334), ("k1", 333), ("k2", 333)]
        database.sql(f"copy ({query}) to 'abfs://{container}/counts.parquet'")
        read = database.sql(f"select sum(rows) from 'abfs://{container}/counts.parquet'")
        assert read.fetchall() == [(1000,)]


def test_a_url_with_its_options_is_opened(container, options):
    url = f"az://{container}/one.txt"
    with fsspec.open(url, "w", **options) as file:
        file.write("één")
    with fsspec.open(url, "r", **options) as file:
        assert file.read() == "één"
