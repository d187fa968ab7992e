//! Exports of tables and streams.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::{TempDir, tempdir};
use trestle_tests::Server;

use crate::client::{becomes, is_pipe, pipe, run, send, server, spawned, succeeds, trestle, wait};

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

/// A server with the streams `app`, which has these lines, and `copy`.
fn with_streams(folder: &Folder, lines: &str) -> Server {
    let server = server();
    let input = folder.path("input");
    fs::write(&input, lines).unwrap();
    for stream in ["app", "copy"] {
        succeeds(&server, &["log", "create", stream]);
    }
    succeeds(&server, &["log", "append", "app", &input, "-q"]);
    server
}

/// The records of a stream, as a read prints them, without their positions.
fn records(server: &Server, stream: &str) -> Vec<Value> {
    let read = succeeds(server, &["log", "read", stream, "-o", "jsonl"]).output;
    let record = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        drop(record["sequence"].take());
        record
    };
    read.lines().map(record).collect()
}

const RECORDS: &str = r#"{"time":"2026-01-31T08:00:00.000000001Z","level":"info","msg":"one","n":1}
{"time":"2026-01-31T08:00:01Z","level":"error","msg":"two, \"quoted\"","n":2.5,"o":{"a":[null,true]}}
{"time":"2026-01-31T08:00:02Z","severity_text":"odd","value":3,"trace_id":"000102030405060708090a0b0c0d0e0f"}
"#;

#[test]
fn an_exported_stream_is_appended_equal() {
    let folder = Folder::new();
    let server = with_streams(&folder, RECORDS);
    let file = folder.path("app.jsonl");

    let exported = succeeds(&server, &["log", "export", "app", &file]);

    assert_eq!(exported.errors, "exported 3 records\n");
    assert_eq!(folder.names(), ["app.jsonl", "input"], "no part and no checkpoint remain");
    succeeds(&server, &["log", "append", "copy", &file]);
    let (app, copy) = (records(&server, "app"), records(&server, "copy"));
    assert_eq!(app.len(), 3);
    assert_eq!(app, copy);
    let read = succeeds(&server, &["log", "read", "app", "-o", "jsonl"]).output;
    assert_eq!(fs::read_to_string(&file).unwrap(), read);
    let object = succeeds(&server, &["log", "export", "app", &file, "--json"]).output;
    let object: Value = serde_json::from_str(&object).unwrap();
    assert_eq!((&object["exported"], &object["file"]), (&3.into(), &file.as_str().into()));
}

#[test]
fn a_part_of_a_stream_is_exported() {
    let folder = Folder::new();
    let server = with_streams(&folder, RECORDS);
    let export =
        |more: &[&str]| succeeds(&server, &[&["log", "export", "app", "-"], more].concat()).output;
    let read = |more: &[&str]| succeeds(&server, &[&["log", "read", "app"], more].concat()).output;

    let range = ["--since", "2026-01-31T08:00:01Z", "--until", "2026-01-31T08:00:02Z"];
    for part in [
        &range[..],
        &["--filter", "severity ge 'error'"],
        &["--grep", "two"],
        &["--fields", "time,body"],
        &["--grep", "nothing"],
    ] {
        assert_eq!(export(part), read(&[part, &["-o", "jsonl"]].concat()), "{part:?}");
        let csv = read(&[part, &["-o", "csv"]].concat());
        assert_eq!(export(&[part, &["--format", "csv"]].concat()), csv, "{part:?}");
        assert_eq!(export(&[part, &["-o", "csv"]].concat()), csv, "{part:?}");
    }
    assert_eq!(export(&range).lines().count(), 1);
    let parquet = run(&server, &["log", "export", "app", &folder.path("app.parquet")]);
    let rule = "files of Parquet already: `trestle log segments app` lists them";
    assert!(parquet.code == Some(2) && parquet.errors.contains(rule), "{parquet:?}");
    let missing = run(&server, &["log", "export", "nosuch", &folder.path("nosuch.jsonl")]);
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert_eq!(folder.names(), ["input"]);
}

/// Lines of enough records that their export takes longer than the time between two checkpoints.
fn many() -> String {
    let text = "x".repeat(100);
    let line = |number: u32| {
        format!("{{\"time\":{},\"msg\":\"{text}{number}\",\"n\":1}}\n", 1_769_846_400 + number)
    };
    (0..100_000).map(line).collect()
}

#[test]
fn a_killed_export_of_a_stream_is_resumed() {
    let folder = Folder::new();
    let server = with_streams(&folder, &many());
    for name in ["app.jsonl", "app.csv"] {
        let (file, whole) = (folder.path(name), folder.path(&format!("whole-{name}")));
        let (part, checkpoint) =
            (format!("{file}.trestle-part"), PathBuf::from(format!("{file}.trestle-export")));
        let export = ["log", "export", "app", &file, "--since", "36500d"];
        let child = spawned(&server, &export);
        assert!(becomes(|| checkpoint.exists()), "no checkpoint");
        send(&child, Signal::KILL);
        assert_eq!(wait(child).code, None, "it was killed before its end");
        assert!(!Path::new(&file).exists() && Path::new(&part).exists());

        let other = run(&server, &[&export[..], &["--resume", "--grep", "1"]].concat());
        assert!(other.code == Some(2) && other.errors.contains("filter changed"), "{other:?}");
        let resumed = succeeds(&server, &[&export[..], &["--resume"]].concat());

        assert_eq!(resumed.errors, "exported 100,000 records\n");
        succeeds(&server, &["log", "export", "app", &whole]);
        assert!(fs::read(&file).unwrap() == fs::read(&whole).unwrap(), "{name}");
        assert!(!checkpoint.exists() && !Path::new(&part).exists());
    }
}
