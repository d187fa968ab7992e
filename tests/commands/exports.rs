//! Exports of tables.

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use trestle_tests::Server;

use crate::client::{is_pipe, pipe, run, server, succeeds, trestle};

/// A server with a table of two entities, whose property `n` has two types.
fn with_table() -> Server {
    let server = server();
    succeeds(&server, &["table", "create", "rows"]);
    let insert = ["entity", "insert", "rows", "p"];
    for set in
        [&["1", "--set", "n:int32=7", "--set", "big:int64=5"][..], &["2", "--set", "n=seven"]]
    {
        succeeds(&server, &[&insert[..], set].concat());
    }
    server
}

/// A folder whose files are named as arguments.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            names.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }
}

/// Whether the bytes begin and end as a file of Parquet does.
fn is_parquet(bytes: &[u8]) -> bool {
    bytes.len() > 12 && bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")
}

#[test]
fn a_table_is_exported_as_parquet() {
    let (server, folder) = (with_table(), Folder::new());
    let file = folder.path("rows.parquet");

    let by_name = succeeds(&server, &["table", "export", "rows", &file]);

    let note = "`n` is a column of text: its values have several types: Edm.String, Edm.Int32\n";
    assert_eq!(by_name.errors, format!("{note}exported 2 entities\n"));
    let bytes = fs::read(&file).unwrap();
    assert!(is_parquet(&bytes), "{} bytes", bytes.len());
    succeeds(&server, &["table", "export", "rows", &folder.path("any"), "--format", "parquet"]);
    assert!(fs::read(folder.path("any")).unwrap() == bytes, "the same content, the same bytes");
    assert_eq!(folder.names(), ["any", "rows.parquet"]);
    let standard = ["table", "export", "rows", "-", "--format", "parquet", "-q"];
    let standard = trestle(&server, &standard).output().unwrap();
    assert!(standard.stdout == bytes && standard.stderr.is_empty(), "{standard:?}");
    let json = succeeds(&server, &["table", "export", "rows", &file, "--json"]);
    let note: Value = serde_json::from_str(json.errors.lines().next().unwrap()).unwrap();
    assert_eq!(note["text_column"], "n", "{json:?}");
}

#[test]
fn parquet_is_written_to_a_pipe() {
    let (server, folder) = (with_table(), Folder::new());
    let (fifo, copy) = (folder.path("pipe"), folder.path("copy"));
    pipe(Path::new(&fifo));
    let out = std::process::Stdio::from(fs::File::create(&copy).unwrap());
    let mut reader = std::process::Command::new("cat").arg(&fifo).stdout(out).spawn().unwrap();

    let ended = run(&server, &["table", "export", "rows", &fifo, "--format", "parquet"]);

    if ended.code != Some(0) {
        reader.kill().unwrap();
    }
    reader.wait().unwrap();
    assert!(ended.code == Some(0) && is_pipe(Path::new(&fifo)), "{ended:?}");
    assert!(is_parquet(&fs::read(copy).unwrap()));
}

#[test]
fn what_parquet_cannot_have_is_rejected_and_leaves_no_file() {
    let (server, folder) = (with_table(), Folder::new());
    let file = folder.path("rows.parquet");

    for (more, rule) in [
        (&["--resume"][..], "a file of Parquet cannot be continued"),
        (&["--no-types"], "--no-types is for JSONL and CSV"),
        (
            &["--columns", "n,big,n"],
            "has each column once, its keys and time by themselves: column=`n`",
        ),
        (&["--columns", "RowKey"], "column=`RowKey`"),
        (&["-o", "csv"], "which is Parquet: give --format csv"),
    ] {
        let rejected = run(&server, &[&["table", "export", "rows", &file], more].concat());
        assert_eq!(rejected.code, Some(2), "{rejected:?}");
        assert!(rejected.errors.contains(rule), "{rule}: {rejected:?}");
    }
    let missing = run(&server, &["table", "export", "nosuch", &file]);
    assert_eq!(missing.code, Some(3), "{missing:?}");
    let unknown = run(&server, &["table", "export", "rows", &folder.path("rows.xlsx")]);
    let rule = "unknown extension: give --format jsonl, csv or parquet";
    assert!(unknown.code == Some(2) && unknown.errors.contains(rule), "{unknown:?}");
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn rows_are_exported_without_types() {
    let server = with_table();
    let export = |more: &[&str]| {
        succeeds(&server, &[&["table", "export", "rows", "-", "--no-types"], more].concat()).output
    };

    assert_eq!(export(&["--format", "csv"]), "PartitionKey,RowKey,big,n\np,1,5,7\np,2,,seven\n");
    let json = "{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"big\":\"5\",\"n\":7}\n\
                {\"PartitionKey\":\"p\",\"RowKey\":\"2\",\"n\":\"seven\"}\n";
    assert_eq!(export(&[]), json);
}
