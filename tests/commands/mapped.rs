//! Imports of files whose columns have other names.

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use trestle_tests::Server;

use crate::client::{Ended, bare, run, server, succeeds};

/// A server with a table `rows`, and a folder with a file.
struct Import {
    server: Server,
    folder: TempDir,
}

impl Import {
    fn new() -> Self {
        let (server, folder) = (server(), tempdir().unwrap());
        succeeds(&server, &["table", "create", "rows"]);
        Self { server, folder }
    }

    /// Imports a file with this content.
    fn run(&self, name: &str, content: &str, options: &[&str]) -> Ended {
        let file = self.folder.path().join(name);
        fs::write(&file, content).unwrap();
        let import = ["table", "import", "rows", file.to_str().unwrap()];
        run(&self.server, &[&import[..], options].concat())
    }

    /// The entities, as an export has them.
    fn rows(&self) -> Vec<String> {
        let export = succeeds(&self.server, &["table", "export", "rows", "-"]).output;
        export.lines().map(str::to_owned).collect()
    }
}

const CSV: &str = "customer,number,total,note\nc1,0001,5,first\nc2,0002,,\n";
const JSONL: &str =
    "{\"customer\":\"c1\",\"number\":1,\"total\":5}\n{\"number\":9999999999,\"customer\":\"c2\"}\n";
const KEYS: [&str; 4] = ["--partition-key", "customer", "--row-key", "number"];

#[test]
fn columns_of_other_names_are_the_keys() {
    let (csv, jsonl) = (Import::new(), Import::new());

    let typed = csv.run("rows.csv", CSV, &[&KEYS[..], &["--types", "total=int32"]].concat());
    let members = jsonl.run("rows.jsonl", JSONL, &KEYS);

    assert_eq!((typed.code, members.code), (Some(0), Some(0)), "{typed:?} {members:?}");
    assert_eq!(
        csv.rows(),
        [
            r#"{"PartitionKey":"c1","RowKey":"0001","note":"first","total":5}"#,
            r#"{"PartitionKey":"c2","RowKey":"0002","note":""}"#,
        ]
    );
    assert_eq!(
        jsonl.rows(),
        [
            r#"{"PartitionKey":"c1","RowKey":"1","total":5}"#,
            r#"{"PartitionKey":"c2","RowKey":"9999999999"}"#,
        ]
    );
}

#[test]
fn a_constant_is_a_property_or_a_key_of_every_entity() {
    let constants = ["--constant", "source=web", "--constant", "year:int32=2026"];
    let key = ["--constant", "PartitionKey=it's", "--row-key", "number"];
    for (name, content) in [
        ("rows.csv", "number\n0001\n0002\n"),
        ("rows.jsonl", "{\"number\":\"0001\"}\n{\"number\":\"0002\"}\n"),
    ] {
        let import = Import::new();

        let ended = import.run(name, content, &[&constants[..], &key].concat());

        assert_eq!(ended.code, Some(0), "{ended:?}");
        let rows = import.rows();
        let rows: Vec<Value> = rows.iter().map(|row| serde_json::from_str(row).unwrap()).collect();
        assert_eq!(rows.len(), 2, "{rows:?}");
        for row in &rows {
            assert_eq!(row["PartitionKey"], "it's", "{row}");
            assert_eq!((&row["source"], &row["year"]), (&"web".into(), &2026.into()), "{row}");
            assert_eq!(row["number"], Value::Null, "it is the key: {row}");
        }
    }
}

#[test]
fn one_column_may_be_both_keys() {
    for (name, content) in
        [("rows.csv", "id,a\nx,1\n"), ("rows.jsonl", "{\"id\":\"x\",\"a\":\"1\"}\n")]
    {
        let import = Import::new();

        let ended = import.run(name, content, &["--partition-key", "id", "--row-key", "id"]);

        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(import.rows(), [r#"{"PartitionKey":"x","RowKey":"x","a":"1"}"#]);
    }
}

#[test]
fn keys_and_constants_that_contradict_the_file_or_each_other_are_rejected() {
    let import = Import::new();
    let named = "PartitionKey,RowKey,a\np,r,1\n";

    for (content, options, rule) in [
        (
            named,
            &["--partition-key", "a"][..],
            "field=`PartitionKey`, is a key, which comes from elsewhere",
        ),
        (named, &["--partition-key", "b"], "value=`b`: column is required"),
        (named, &["--constant", "a=2"], "field=`a`, is given as a constant too"),
        (named, &["--types", "a=int32", "--row-key", "a"], "field=`RowKey`, is a key"),
        (
            "a,b\n1,2\n",
            &["--partition-key", "a", "--row-key", "b", "--types", "a=int32"],
            "no type may be given",
        ),
        (
            named,
            &["--constant", "RowKey=x", "--row-key", "a"],
            "the key is given twice, also by --row-key",
        ),
        (named, &["--constant", "RowKey:int32=1"], "a key is text"),
        (named, &["--constant", "b=1", "--constant", "b=2"], "the property is given twice"),
        (named, &["--constant", "Timestamp=x"], "the server sets it"),
        (named, &["--constant", "b"], "--constant is malformed: `b`: must be NAME[:TYPE]=VALUE"),
    ] {
        let ended = import.run("rows.csv", content, options);
        assert_eq!(ended.code, Some(2), "{options:?}: {ended:?}");
        assert!(ended.errors.contains(rule), "{rule}: {ended:?}");
    }
    for (content, options, rule) in [
        (
            "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"a\":1}\n",
            &["--row-key", "a"][..],
            "field=`RowKey`, is a key",
        ),
        ("{\"PartitionKey\":\"p\"}\n", &["--row-key", "a"], "field=`a`, is required"),
        (
            "{\"PartitionKey\":\"p\",\"a\":null}\n",
            &["--row-key", "a"],
            "must be a string, a number, true or false",
        ),
        (
            "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"a\":1}\n",
            &["--constant", "a=2"],
            "field=`a`, is given as a constant",
        ),
    ] {
        let ended = import.run("rows.jsonl", content, options);
        assert_eq!(ended.code, Some(1), "{options:?}: {ended:?}");
        assert!(ended.errors.contains(rule), "{rule}: {ended:?}");
    }
    assert_eq!(import.rows(), [""; 0]);
}

#[test]
fn an_interrupted_import_is_resumed_with_the_same_keys_only() {
    let import = Import::new();
    let bad = format!("{}c3\n", CSV);
    let resume = |options: &[&str]| import.run("rows.csv", CSV, &[options, &["--resume"]].concat());
    let constant = [&KEYS[..], &["--constant", "a=1"]].concat();

    let stopped = import.run("rows.csv", &bad, &KEYS);
    let other = resume(&constant);
    let resumed = resume(&KEYS);

    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.errors.contains("constants changed: was=`none`"), "{other:?}");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(import.rows().len(), 2);
}

#[test]
fn the_commands_of_the_page_import_a_file_with_other_columns() {
    let (server, folder) = (server(), tempdir().unwrap());
    succeeds(&server, &["table", "create", "orders"]);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join("docs/tables.md");
    let page = fs::read_to_string(page).unwrap();
    let mut blocks = page.split("```sh\n").map(|rest| rest.split("```").next().unwrap());
    let block = blocks.find(|block| block.contains("customer,number,total")).unwrap();
    let program = bare(&[]);
    let program = program.get_program().to_str().unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("set -e\ntrestle() {{ '{program}' \"$@\"; }}\n{block}")]);
    shell.current_dir(folder.path()).env("TRESTLE_ENDPOINT", server.endpoint());

    let ended = Ended::of(shell);

    assert_eq!(ended.code, Some(0), "{ended:?}");
    for field in ["RowKey\t0001\n", "source\tshop\n", "total\t990\n"] {
        assert!(ended.output.contains(field), "{field}: {ended:?}");
    }
}
