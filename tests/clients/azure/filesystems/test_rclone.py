"""rclone: folders copied, compared and synchronised with blobs, by a signature of the account."""

import datetime
import json
import os
import shutil
import subprocess

import pytest
from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

from target import ACCOUNT, KEY

COMMAND_SECONDS = 30
BLOCK = ["--azureblob-chunk-size", "1Mi", "--azureblob-upload-cutoff", "1Mi"]
LARGE = bytes(range(256)) * (9 * (1 << 20) // 256) + b"end"

pytestmark = pytest.mark.skipif(not shutil.which("rclone"), reason="no rclone on this machine")


@pytest.fixture
def rclone(target):
    """Runs a command in which `blobs:` is the account; returns what it printed."""
    expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    permission = AccountSasPermissions.from_string("rwdlactxp")
    token = generate_account_sas(ACCOUNT, KEY, ResourceTypes.from_string("sco"), permission, expiry)
    settings = {
        "RCLONE_CONFIG": "/dev/null",
        "RCLONE_CONFIG_BLOBS_TYPE": "azureblob",
        "RCLONE_CONFIG_BLOBS_SAS_URL": f"{target.blob}?{token}",
        # A failure is not masked by a retry.
        "RCLONE_RETRIES": "1",
        "RCLONE_LOW_LEVEL_RETRIES": "1",
    }

    def run(*command, code=0, **options):
        ended = subprocess.run(
            ["rclone", *map(str, command)],
            env={**os.environ, **settings},
            capture_output=True,
            timeout=COMMAND_SECONDS,
            **options,
        )
        assert ended.returncode == code, ended.stderr.decode()
        return ended.stdout

    return run


@pytest.fixture
def folder(tmp_path):
    """A folder with files, one of which is large."""
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "a b é+%.txt").write_text("hello")
    (folder / "empty").touch()
    (folder / "large").write_bytes(LARGE)
    return folder


@pytest.fixture
def copied(rclone, container, folder):
    """Where the files of the folder are in the account."""
    rclone("copy", *BLOCK, folder, f"blobs:{container}/copy")
    return f"blobs:{container}/copy"


def listed(rclone, remote):
    """The files below a path, by their paths."""
    return {item["Path"]: item for item in json.loads(rclone("lsjson", "-R", "--hash", remote))}


def test_a_folder_is_copied_compared_and_listed(rclone, service, container, copied, folder):
    rclone("check", folder, copied)
    rclone("check", "--download", folder, copied)
    items = listed(rclone, copied)
    assert sorted(items) == ["below", "below/a b é+%.txt", "empty", "large"]
    assert (items["large"]["Size"], items["large"]["Tier"]) == (len(LARGE), "Hot")
    assert items["below/a b é+%.txt"]["Hashes"]["md5"] == "5d41402abc4b2a76b9719d911017c592"
    blocks, _ = service.get_blob_client(container, "copy/large").get_block_list("committed")
    assert len(blocks) == 10


def test_a_difference_is_found_and_synchronised(rclone, container, copied, folder):
    (folder / "empty").unlink()
    (folder / "below" / "a b é+%.txt").write_text("other")
    rclone("check", folder, copied, code=1)
    rclone("sync", folder, copied)
    rclone("check", folder, copied)
    assert sorted(listed(rclone, copied)) == ["below", "below/a b é+%.txt", "large"]


def test_files_are_copied_back_with_their_times(rclone, copied, folder, tmp_path):
    os.utime(folder / "empty", (1, 1))
    rclone("sync", folder, copied)
    rclone("copy", copied, tmp_path / "back")
    back = {path.name: path for path in (tmp_path / "back").rglob("*") if path.is_file()}
    assert back["large"].read_bytes() == LARGE and back["a b é+%.txt"].read_text() == "hello"
    assert back["empty"].stat().st_mtime == 1


def test_the_server_copies_and_moves(rclone, service, container, copied, folder):
    other = f"blobs:{container}-other/copy"
    rclone("copy", copied, other)
    rclone("moveto", f"{other}/empty", f"{other}/moved")
    assert sorted(listed(rclone, other)) == ["below", "below/a b é+%.txt", "large", "moved"]
    properties = service.get_blob_client(f"{container}-other", "copy/large").get_blob_properties()
    assert (properties.copy.status, properties.size) == ("success", len(LARGE))
    assert f"/{container}/copy/large" in properties.copy.source


def test_a_stream_of_unknown_length_is_written_and_read_by_range(rclone, container):
    rclone("rcat", *BLOCK, f"blobs:{container}/stream", input=LARGE)
    assert rclone("cat", f"blobs:{container}/stream") == LARGE
    read = rclone("cat", "--offset", "257", "--count", "3", f"blobs:{container}/stream")
    assert read == b"\1\2\3"


def test_a_tier_and_a_time_are_set(rclone, copied):
    rclone("settier", "Cool", f"{copied}/large")
    rclone("touch", "-t", "2020-01-02T03:04:05", f"{copied}/empty")
    items = listed(rclone, copied)
    assert (items["large"]["Tier"], items["empty"]["Tier"]) == ("Cool", "Hot")
    assert items["empty"]["ModTime"].startswith("2020-01-02T03:04:05")


def test_files_and_containers_are_deleted(rclone, service, container, copied):
    rclone("delete", copied, "--include", "*.txt")
    assert sorted(listed(rclone, copied)) == ["empty", "large"]
    rclone("purge", copied)
    assert listed(rclone, f"blobs:{container}") == {}
    rclone("mkdir", f"blobs:{container}-made")
    rclone("rmdir", f"blobs:{container}-made")
    rclone("purge", f"blobs:{container}")
    names = [item.name for item in service.list_containers(name_starts_with=container)]
    assert names == []
