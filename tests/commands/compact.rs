//! The command `compact`: the space of deleted rows is given back, and all else stays as it was.

use std::{fs, path::Path};

use tempfile::{TempDir, tempdir};
use trestle_tests::{Server, Table};

use crate::client::{Ended, bare, succeeds};

/// Rows that are deleted, in a table of their own.
const DELETED: usize = 60;
/// Characters of a value, which is not a repetition and so hardly compressed.
const VALUE_CHARS: usize = 30_000;

fn serve(data: &TempDir) -> Server {
    Server::start(&["--data-dir", data.path().to_str().unwrap()], &[])
}

fn compact(path: &Path, more: &[&str]) -> Ended {
    let mut compact = bare(&["compact", "--data-dir", path.to_str().unwrap()]);
    compact.args(more);
    Ended::of(compact)
}

/// Rows as lines of an import, with the numbers of a generator as values.
fn rows(count: usize, chars: usize) -> String {
    let mut state = 1_u64;
    let mut digits = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{state:016x}")
    };
    let row = |row| {
        let value: String = (0..chars / 16).map(|_| digits()).collect();
        format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{row:05}\",\"value\":\"{value}\"}}\n")
    };
    (0..count).map(row).collect()
}

fn import(server: &Server, table: &str, lines: &str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), lines).unwrap();
    let file = file.path().to_str().unwrap();
    succeeds(server, &["table", "import", table, file, "--format", "jsonl"]);
}

/// Deletes the rows over one connection: a server that runs for long compacts by itself.
fn delete_rows(server: &Server) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let table = Table::over(&server.channel(), "deleted");
        for row in 0..DELETED {
            table.delete("p", &format!("{row:05}"), None).await.unwrap();
        }
    });
}

/// Bytes of all files of the engine.
fn disk_bytes(path: &Path) -> u64 {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let bytes = entries.map(|entry| match entry.file_type().unwrap().is_dir() {
        true => disk_bytes(&entry.path()),
        false => entry.metadata().unwrap().len(),
    });
    bytes.sum()
}

fn export(server: &Server, table: &str) -> String {
    succeeds(server, &["table", "export", table, "-"]).output
}

/// Files of the keyspaces, without journals.
fn keyspace_bytes(data: &TempDir) -> u64 {
    disk_bytes(&data.path().join("kv/db/keyspaces"))
}

#[test]
fn compact_gives_back_deleted_rows_and_keeps_all_else() {
    let data = tempdir().unwrap();
    let server = serve(&data);
    for table in ["kept", "deleted"] {
        succeeds(&server, &["table", "create", table]);
    }
    import(&server, "kept", &rows(20, 400));
    import(&server, "deleted", &rows(DELETED, VALUE_CHARS));
    let kept = export(&server, "kept");
    assert_eq!(kept.lines().count(), 20, "{kept}");
    assert_eq!(server.terminate(), Some(0));
    // What is deleted is in files.
    let full = compact(data.path(), &[]);
    assert_eq!(full.code, Some(0), "{full:?}");
    let full_bytes = keyspace_bytes(&data);

    let server = serve(&data);
    delete_rows(&server);
    assert_eq!(server.terminate(), Some(0));
    let ended = compact(data.path(), &["--json"]);

    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report: serde_json::Value = serde_json::from_str(&ended.output).unwrap();
    let total = |key: &str| report[key].as_u64().unwrap();
    let rows_bytes = u64::try_from(DELETED * VALUE_CHARS / 4).unwrap();
    assert!(total("bytes_before") > total("bytes_after") + rows_bytes, "{report}");
    assert!(full_bytes > keyspace_bytes(&data) + rows_bytes, "{full_bytes}: {report}");
    let parts = report["keyspaces"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|part| part["bytes_after"].as_u64().unwrap()).sum();
    assert_eq!(sum, total("bytes_after"), "{report}");
    assert!(parts.iter().all(|part| part["complete"] == true), "{report}");
    let server = serve(&data);
    assert_eq!(export(&server, "kept"), kept);
    assert_eq!(export(&server, "deleted"), "");
    assert_eq!(server.terminate(), Some(0));
    let again = compact(data.path(), &[]);
    assert!(again.output.contains("keyspace=`entity`, bytes_before=`"), "{again:?}");
    assert!(again.output.contains("\ntotal: bytes_before=`"), "{again:?}");
}

#[test]
fn compact_is_rejected_while_a_server_runs_and_where_there_is_no_store() {
    let data = tempdir().unwrap();
    let running = serve(&data);
    let locked = compact(data.path(), &[]);
    assert_eq!(locked.code, Some(3), "{locked:?}");
    let directory = data.path().join("kv");
    for part in [directory.to_str().unwrap(), "stop the server"] {
        assert!(locked.errors.contains(part), "{part}: {locked:?}");
    }
    assert_eq!(running.terminate(), Some(0));

    let empty = tempdir().unwrap();
    fs::create_dir(empty.path().join("other")).unwrap();
    for path in [empty.path(), Path::new("/nonexistent")] {
        let none = compact(path, &[]);
        assert_eq!(none.code, Some(4), "{none:?}");
        assert!(none.errors.contains(path.to_str().unwrap()), "{none:?}");
        assert!(!empty.path().join("kv").exists(), "a store was made");
    }
    fs::create_dir(empty.path().join("kv")).unwrap();
    let none = compact(empty.path(), &[]);
    assert_eq!(none.code, Some(4), "{none:?}");
    assert!(none.errors.contains("there is no store"), "{none:?}");
    assert_eq!(fs::read_dir(empty.path().join("kv")).unwrap().count(), 0, "a store was made");
}
