"""The file system of Apache Arrow for blobs, which its data sets and its C++ users have."""

import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest
from pyarrow.fs import FileSelector, FileType

MIB = 1 << 20


@pytest.fixture
def table():
    """Rows to write."""
    kinds = [f"k{row % 3}" for row in range(1000)]
    return pyarrow.table({"id": list(range(1000)), "kind": kinds})


def kinds_of(arrow, *paths):
    """What is at some paths."""
    return [info.type for info in arrow.get_file_info(list(paths))]


def written(arrow, path, content=b"hello"):
    """Writes a file."""
    with arrow.open_output_stream(path) as stream:
        stream.write(content)


def test_files_and_folders_are_listed(arrow, container):
    arrow.create_dir(f"{container}/empty")
    written(arrow, f"{container}/dir/below/a.txt")
    written(arrow, f"{container}/b.txt")
    listed = arrow.get_file_info(FileSelector(container, recursive=True))
    assert [(info.path.removeprefix(f"{container}/"), info.size) for info in listed] == [
        ("b.txt", 5),
        ("dir", None),
        ("dir/below", None),
        ("dir/below/a.txt", 5),
        ("empty", None),
    ]
    direct = arrow.get_file_info(FileSelector(f"{container}/dir"))
    assert [info.base_name for info in direct] == ["below"]
    assert kinds_of(arrow, container, f"{container}/b.txt", f"{container}/c", "absent") == [
        FileType.Directory,
        FileType.File,
        FileType.NotFound,
        FileType.NotFound,
    ]


def test_a_large_file_is_written_in_blocks_and_read_by_ranges(arrow, service, container):
    content = bytes(range(256)) * (25 * MIB // 256)
    with arrow.open_output_stream(f"{container}/large") as stream:
        for start in range(0, len(content), 5 * MIB):
            stream.write(content[start : start + 5 * MIB])
    committed, _ = service.get_blob_client(container, "large").get_block_list("all")
    assert len(committed) > 1
    with arrow.open_input_file(f"{container}/large") as file:
        assert file.size() == len(content)
        file.seek(20 * MIB + 1)
        assert file.read(4) == b"\1\2\3\4"
        assert file.read_at(4, 256) == b"\0\1\2\3"
    assert arrow.open_input_stream(f"{container}/large").read() == content


def test_metadata_and_type_of_a_file_are_kept(arrow, container):
    metadata = {"Content-Type": "text/plain", "owner": "me"}
    with arrow.open_output_stream(f"{container}/a", metadata=metadata) as stream:
        stream.write(b"x")
    got = arrow.open_input_file(f"{container}/a").metadata()
    assert (got["Content-Type"], got["owner"]) == (b"text/plain", b"me")


def test_a_file_is_copied_and_deleted(arrow, container):
    written(arrow, f"{container}/from é.txt")
    arrow.copy_file(f"{container}/from é.txt", f"{container}/to.txt")
    arrow.delete_file(f"{container}/from é.txt")
    assert arrow.open_input_stream(f"{container}/to.txt").read() == b"hello"
    with pytest.raises(FileNotFoundError):
        arrow.open_input_stream(f"{container}/from é.txt")
    with pytest.raises(FileNotFoundError):
        arrow.delete_file(f"{container}/from é.txt")


def test_folders_and_containers_are_deleted(arrow, container):
    for path in ("dir/a", "dir/below/b", "other/c"):
        written(arrow, f"{container}/{path}")
    arrow.delete_dir_contents(f"{container}/dir")
    assert kinds_of(arrow, f"{container}/dir", f"{container}/dir/a") == [
        FileType.Directory,
        FileType.NotFound,
    ]
    arrow.delete_dir(f"{container}/other")
    assert kinds_of(arrow, f"{container}/other") == [FileType.NotFound]
    arrow.create_dir(f"{container}-made")
    arrow.delete_dir(f"{container}-made")
    assert kinds_of(arrow, f"{container}-made") == [FileType.NotFound]


def test_parquet_is_written_and_read_by_columns(arrow, container, table):
    pyarrow.parquet.write_table(table, f"{container}/rows.parquet", filesystem=arrow)
    read = pyarrow.parquet.read_table(f"{container}/rows.parquet", filesystem=arrow, columns=["id"])
    assert read == table.select(["id"])


def test_a_data_set_is_partitioned_replaced_and_filtered(arrow, container, table):
    for _ in range(2):
        pyarrow.dataset.write_dataset(
            table,
            f"{container}/rows",
            format="parquet",
            partitioning=["kind"],
            partitioning_flavor="hive",
            filesystem=arrow,
            existing_data_behavior="delete_matching",
        )
    rows = pyarrow.dataset.dataset(f"{container}/rows", filesystem=arrow, partitioning="hive")
    assert rows.count_rows() == 1000
    chosen = rows.to_table(filter=pyarrow.dataset.field("kind") == "k2")
    assert sorted(chosen["id"].to_pylist()) == list(range(2, 1000, 3))
