//! `import trestle` from another server, from the same one, and from a backup that a server shows.

mod access;
mod copies;
mod names;

use std::{fmt::Write as _, fs, path::Path, process::Stdio, time::Instant};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use trestle_tests::{HANG, Server};

use crate::{
    blobs::{MANY, check, described, every_type, lines, many, path, written},
    command::{Ended, bare, run, start, succeeds, trestle},
};

/// Enough for many messages of a stream, so that a kill falls between two of them.
const ENTITIES: u32 = 60_000;
/// An entity with each type of a property.
const TYPED: &str = r#"{"PartitionKey":"it's ä","RowKey":"","text":"ü","flag":true,"small":-7,"real":0.5,
    "large":"9007199254740993","large@odata.type":"Edm.Int64","bytes":"AAH/","bytes@odata.type":"Edm.Binary",
    "id":"c9da6455-213d-42c9-9a79-3e9149a57833","id@odata.type":"Edm.Guid",
    "at":"2026-01-31T08:00:00.1234567Z","at@odata.type":"Edm.DateTime",
    "none":"NaN","none@odata.type":"Edm.Double"}"#;

/// Two servers, and a folder for files.
struct Pair {
    /// Held, because dropping them deletes them.
    _data: [TempDir; 2],
    folder: TempDir,
    source: Server,
    server: Server,
}

impl Pair {
    fn new() -> Self {
        let data = [tempdir().unwrap(), tempdir().unwrap()];
        let (source, server) = (start(&data[0]), start(&data[1]));
        Self { _data: data, folder: tempdir().unwrap(), source, server }
    }

    /// The arguments of an import from the source.
    fn import(&self, more: &[&str]) -> Vec<String> {
        arguments(&self.source, self.folder.path(), more)
    }

    fn run(&self, more: &[&str]) -> Ended {
        run_owned(&self.server, &self.import(more))
    }
}

fn arguments(source: &Server, folder: &Path, more: &[&str]) -> Vec<String> {
    let checkpoint = format!("--checkpoint={}", folder.join("checkpoint").display());
    let (address, checkpoint) = (source.endpoint(), checkpoint.as_str());
    let args = ["import", "trestle", &address, checkpoint, "--json"];
    args.iter().chain(more).map(|text| (*text).to_owned()).collect()
}

fn run_owned(server: &Server, args: &[String]) -> Ended {
    run(server, &args.iter().map(String::as_str).collect::<Vec<_>>())
}

fn import_rows(server: &Server, folder: &Path, table: &str, rows: &str) {
    let file = folder.join("rows.jsonl");
    fs::write(&file, rows).unwrap();
    succeeds(server, &["table", "create", table]);
    succeeds(server, &["table", "import", table, file.to_str().unwrap()]);
}

/// The rows of a large table.
fn many_rows() -> String {
    let mut rows = String::new();
    for number in 0..ENTITIES {
        let key = format!("{number:06}");
        writeln!(rows, "{}", json!({ "PartitionKey": key, "RowKey": "r", "n": number })).unwrap();
    }
    rows
}

fn one(server: &Server, args: &[&str]) -> Value {
    serde_json::from_str(&succeeds(server, &[args, &["--json"]].concat())).unwrap()
}

/// The messages of a queue, without what a server makes anew.
fn messages(server: &Server, queue: &str) -> Vec<(Value, Value, bool)> {
    let peeked = succeeds(server, &["message", "peek", queue, "-n", "32", "--json"]);
    let content = |message: Value| {
        let (text, data) = (message["text"].clone(), message["data_base64"].clone());
        (text, data, message["expiration_time"].is_null())
    };
    lines(&peeked).into_iter().map(content).collect()
}

/// A table, two queues and a container with everything that is copied.
fn fill(server: &Server, folder: &Path) -> TempDir {
    import_rows(server, folder, "Orders", &TYPED.replace('\n', " "));
    succeeds(server, &["table", "policy", "set", "orders", "readers", "--permissions", "r"]);
    succeeds(server, &["queue", "create", "failed"]);
    let settings =
        ["--metadata", "owner=me", "--dead-letter", "failed", "--max-dequeue-count", "3"];
    let create = ["queue", "create", "jobs", "--deduplication-window", "5m"];
    succeeds(server, &[&create[..], &settings].concat());
    succeeds(server, &["message", "send", "jobs", "first", "--never-expires"]);
    succeeds(server, &["message", "send", "jobs", "second", "--ttl", "1h"]);
    let file = folder.join("messages.jsonl");
    fs::write(&file, r#"{"data_base64":"AAH/"}"#).unwrap();
    succeeds(server, &["queue", "load", "jobs", file.to_str().unwrap()]);
    let workspace = written(&every_type());
    succeeds(server, &["import", "azurite", &path(&workspace), "--snapshots"]);
    // An archived blob cannot be read.
    succeeds(server, &["blob", "rm", "docs/archived"]);
    workspace
}

#[tokio::test]
async fn everything_of_a_server_is_copied_and_compared() {
    let pair = Pair::new();
    let Pair { source, server, folder, .. } = &pair;
    let workspace = fill(source, folder.path());

    let ended = pair.run(&["--snapshots"]);

    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = lines(&ended.output);
    let summary = found.last().unwrap();
    let count = |name: &str| summary[name].as_u64().unwrap();
    let counts = ["tables", "queues", "containers", "blobs", "not_copied"].map(count);
    assert_eq!(counts, [1, 2, 1, 7, 0], "{summary}");
    assert_eq!(summary["match"], true, "{summary}");
    let exported = |server| succeeds(server, &["table", "export", "orders", "-"]);
    assert_eq!(exported(server), exported(source));
    assert!(exported(server).contains("Edm.Guid"), "{}", exported(server));
    for of_both in [
        &["table", "list"][..],
        &["table", "policy", "list", "orders"],
        &["queue", "get", "jobs"],
        &["queue", "get", "failed"],
    ] {
        let values = [source, server].map(|server| {
            let mut values = lines(&succeeds(server, &[of_both, &["--json"]].concat()));
            for value in &mut values {
                let fields = value.as_object_mut().unwrap();
                fields.retain(|name, _| !name.contains("time") && !name.contains("age"));
            }
            values
        });
        assert_eq!(values[0], values[1], "{of_both:?}");
    }
    assert_eq!(one(server, &["queue", "get", "jobs"])["dead_letter"], "failed");
    let expected = [
        (json!("first"), Value::Null, true),
        (json!("second"), Value::Null, false),
        (Value::Null, json!("AAH/"), false),
    ];
    assert_eq!(messages(server, "jobs"), expected);
    assert_eq!(messages(source, "jobs"), expected, "the source is only read");
    check(server, workspace.path(), true).await;
    assert_eq!(described(source, true).await, described(server, true).await);
    assert!(!folder.path().join("checkpoint").exists());
}

#[test]
fn every_message_is_copied_and_archived_blobs_are_reported() {
    let pair = Pair::new();
    let texts: Vec<_> = (0..40).map(|number| format!("text {number}")).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    for queue in ["jobs", "groups"] {
        succeeds(&pair.source, &["queue", "create", queue]);
    }
    succeeds(&pair.source, &[&["message", "send", "jobs"], &texts[..]].concat());
    succeeds(&pair.source, &["message", "receive", "jobs", "--visibility-timeout", "1h"]);
    succeeds(&pair.source, &["message", "send", "jobs", "late", "--delay", "1h"]);
    succeeds(&pair.source, &["message", "send", "groups", "a", "b", "--group", "g"]);
    let workspace = written(&every_type());
    succeeds(&pair.source, &["import", "azurite", &path(&workspace)]);

    let ended = pair.run(&[]);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    let found = lines(&ended.output);
    let of = |queue: &str| found.iter().find(|line| line["queue"] == queue).unwrap();
    let counts = ["read", "sent", "remaining", "target"].map(|name| of("jobs")[name].as_u64());
    assert_eq!(counts, [41, 41, 0, 41].map(Some), "{found:?}");
    let of_group = ["read", "sent", "remaining"].map(|name| of("groups")[name].as_u64());
    assert_eq!(of_group, [2, 2, 0].map(Some), "{found:?}");
    let skipped: Vec<_> = found.iter().filter_map(|line| line["which"].as_str()).collect();
    assert!(skipped.contains(&"blob `archived`"), "{skipped:?}");
    assert!(!skipped.iter().any(|which| which.contains("message")), "{skipped:?}");
    let all = |server| lines(&succeeds(server, &["message", "peek", "jobs", "--all", "--json"]));
    let seen = |server| {
        let seen = |line: &Value| (line["text"].to_string(), line["next_visible_time"].to_string());
        all(server).iter().map(seen).collect::<Vec<_>>()
    };
    let (before, after) = (seen(&pair.source), seen(&pair.server));
    assert_eq!((before.len(), after.len()), (41, 41), "{after:?}");
    let visible = |found: &[(String, String)]| {
        found.iter().take(39).map(|(text, _)| text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(visible(&before), visible(&after));
    assert_eq!(messages(&pair.server, "jobs").len(), 32, "what was received remains invisible");
    assert_eq!(found.iter().find(|line| line["container"] == "docs").unwrap()["rejected"], 1);
    succeeds(&pair.server, &["message", "send", "groups", "c", "--group", "g"]);
    let peeked = messages(&pair.server, "groups");
    assert_eq!(
        (peeked.len(), &peeked[0].0),
        (1, &json!("a")),
        "it is still the first of its group"
    );
    succeeds(&pair.server, &["message", "receive", "groups", "--delete"]);
    assert_eq!(messages(&pair.server, "groups")[0].0, json!("b"));
    let selected = pair.run(&["--queue", "groups=other", "--into-existing"]);
    assert!(!selected.output.contains("\"queue\":\"jobs\""), "{selected:?}");
}

#[tokio::test]
async fn the_same_server_is_a_source_where_everything_gets_a_new_name() {
    let (data, folder) = (tempdir().unwrap(), tempdir().unwrap());
    let server = start(&data);
    fill(&server, folder.path());
    let import = |more: &[&str]| run_owned(&server, &arguments(&server, folder.path(), more));
    // Another spelling of the address does not hide that it is the same server.
    let address = server.endpoint().replace("127.0.0.1", "localhost");
    let elsewhere = |more: &[&str]| {
        run(
            &server,
            &[&["import", "trestle", &address, "--account", "devstoreaccount1"], more].concat(),
        )
    };

    for (ended, rule) in [
        (import(&[]), "name what to copy, with a new name"),
        (elsewhere(&[]), "name what to copy, with a new name"),
        (
            import(&["--table", "orders"]),
            "--table: source and target are one account of one server",
        ),
        (import(&["--queue", "jobs=failed", "--queue=failed=x1"]), "--queue: source and target"),
        (import(&["--table", "orders=a1", "--table", "ORDERS=a2"]), "--table: each name may be"),
        (
            import(&["--container", "docs=c1", "--container", "d=c1"]),
            "--container: another one has",
        ),
        (
            import(&["--table", "orders=copied", "--table", "nosuch=other"]),
            "--table: the source does not have it: value=`nosuch=other`",
        ),
        (import(&["--queue", "nosuch=other"]), "--queue: the source does not have it"),
        (import(&["--container", "nosuch=other"]), "--container: the source does not have it"),
        (import(&["--table", "a_b=other"]), "--table: "),
        (import(&["--table", "=b"]), "must be NAME, or NAME=NEW"),
        (import(&["--container", "docs=d1", "--skip-blobs"]), "cannot be used with --skip-blobs"),
        (import(&["--queue", "failed=jobs"]), "targets are not empty: queue `jobs`"),
    ] {
        assert_eq!(ended.code, Some(2), "{rule}: {ended:?}");
        assert!(ended.errors.contains(rule), "{rule}: {ended:?}");
    }
    assert_eq!(lines(&succeeds(&server, &["table", "list", "--json"])).len(), 1);

    let names = ["--table", "orders=ordersBefore", "--queue", "jobs=jobs-before", "--container"];
    let ended = import(&[&names[..], &["docs=docs-before", "--queue", "failed=failed2"]].concat());

    assert_eq!(ended.code, Some(0), "{ended:?}");
    let exported = |table| succeeds(&server, &["table", "export", table, "-"]);
    assert_eq!(exported("ordersBefore"), exported("orders"));
    assert_eq!(messages(&server, "jobs-before"), messages(&server, "jobs"));
    let dead_letter = &one(&server, &["queue", "get", "jobs-before"])["dead_letter"];
    assert_eq!(dead_letter, "failed2", "a queue that is renamed too");
    let listed = |container| lines(&succeeds(&server, &["blob", "ls", container, "--json"])).len();
    assert_eq!((listed("docs-before"), listed("docs")), (6, 6));
    let content = succeeds(&server, &["blob", "cat", "docs-before/a/ü 1.txt"]);
    assert_eq!(content, "hello2");
}

/// Kills an import once its checkpoint records a position of this kind.
fn kill_after_progress(server: &Server, args: &[String], folder: &Path, position: &str) {
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let mut import = trestle(server, &args).stdout(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    loop {
        let text = fs::read_to_string(folder.join("checkpoint")).unwrap_or_default();
        if text.contains(&format!("{{\"{position}\":")) {
            break;
        }
        assert!(started.elapsed() < HANG, "no progress: {text}");
        assert!(import.try_wait().unwrap().is_none(), "the import ended before it was killed");
    }
    import.kill().unwrap();
    import.wait().unwrap();
}

#[test]
fn a_killed_import_from_a_server_resumes_without_loss_or_duplicates() {
    let pair = Pair::new();
    let Pair { source, server, folder, .. } = &pair;
    import_rows(source, folder.path(), "Large", &many_rows());
    succeeds(source, &["queue", "create", "jobs"]);
    succeeds(source, &["message", "send", "jobs", "a", "b", "c"]);
    let names = ["--table", "large=Copied", "--queue", "jobs=copied"];

    kill_after_progress(server, &pair.import(&names), folder.path(), "Message");
    let again = pair.run(&names);
    let other = pair.run(&["--table", "large=Copied", "--resume"]);
    let resumed = pair.run(&[&names[..], &["--resume"]].concat());

    assert_eq!((again.code, other.code), (Some(2), Some(2)), "{again:?} {other:?}");
    assert!(again.errors.contains("continue with --resume"), "{again:?}");
    assert!(other.errors.contains("was another one"), "{other:?}");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let counts = format!("\"table\":\"Copied\",\"read\":{ENTITIES},\"written\":{ENTITIES},");
    assert!(resumed.output.contains(&counts), "{resumed:?}");
    let exported = |server, table| succeeds(server, &["table", "export", table, "-"]);
    assert!(exported(server, "copied") == exported(source, "large"), "every entity is equal");
    assert_eq!(one(server, &["queue", "stats", "copied"])["messages"], 3);
}

#[test]
fn a_table_of_a_backup_is_copied_beside_the_one_of_now() {
    let (data, folder) = (tempdir().unwrap(), tempdir().unwrap());
    let server = start(&data);
    let insert = ["entity", "insert", "orders", "-p", "p", "-r", "1", "--set", "state=open"];
    succeeds(&server, &["table", "create", "orders"]);
    succeeds(&server, &insert);
    succeeds(&server, &["queue", "create", "jobs"]);
    succeeds(&server, &["message", "send", "jobs", "a"]);
    succeeds(&server, &["blob", "container", "create", "docs"]);
    let target = folder.path().join("backups");
    let target = target.to_str().unwrap();
    let data_dir = data.path().to_str().unwrap();
    let created = Ended::of(bare(&["backup", "create", target, "--data-dir", data_dir]));
    assert_eq!(created.code, Some(0), "{created:?}");
    succeeds(&server, &["entity", "delete", "orders", "p", "1"]);
    let shown = Server::start(&["--backup", target], &[]);

    let names =
        ["--table", "orders=ordersBefore", "--queue", "jobs=before", "--container=docs=old"];
    let ended = run_owned(&server, &arguments(&shown, folder.path(), &names));

    assert_eq!(ended.code, Some(0), "{ended:?}");
    let row = one(&server, &["entity", "get", "ordersBefore", "p", "1"]);
    assert_eq!(row["state"], "open");
    assert_eq!(succeeds(&server, &["table", "export", "orders", "-"]), "");
    assert_eq!(messages(&server, "before").len(), 1);
    let containers = succeeds(&server, &["blob", "container", "list", "--json"]);
    assert_eq!(lines(&containers).len(), 2, "{containers}");
}

#[test]
fn a_source_has_its_own_address_credentials_and_context() {
    let pair = Pair::new();
    let Pair { source, server, folder, .. } = &pair;
    succeeds(source, &["table", "create", "orders"]);
    let key = folder.path().join("key");
    fs::write(&key, "aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnRlcjI=").unwrap();
    let key = format!("--source-account-key-file={}", key.display());

    let foreign = pair.run(&["--source-account=acme", &key]);
    let unknown = run(server, &["import", "trestle", "127.0.0.1:1"]);
    let no_address = run(server, &["import", "trestle"]);
    let malformed = run(server, &["import", "trestle", "127.0.0.1:99999"]);
    let alone = pair.run(&["--source-account=acme"]);

    assert_eq!(foreign.code, Some(1), "{foreign:?}");
    let text = format!("endpoint=`{}`", source.endpoint());
    assert!(foreign.errors.contains("the source rejects the list of tables"), "{foreign:?}");
    assert!(foreign.errors.contains(&text) && !foreign.errors.contains("aHVu"), "{foreign:?}");
    assert_eq!(unknown.code, Some(5), "{unknown:?}");
    let text = "cannot connect to the source: ";
    assert!(unknown.errors.contains(text), "{unknown:?}");
    assert!(unknown.errors.contains("endpoint=`http://127.0.0.1:1`"), "{unknown:?}");
    for (ended, rule) in [
        (no_address, "<ADDRESS>"),
        (malformed, "the address of the source: port must be 1 to 65535"),
        (alone, "--source-account: needs a key or a signature too: --source-account-key-file"),
    ] {
        assert_eq!(ended.code, Some(2), "{rule}: {ended:?}");
        assert!(ended.errors.contains(rule), "{rule}: {ended:?}");
    }

    let with_context = |args: &[&str]| {
        let mut command = bare(args);
        command.env("XDG_CONFIG_HOME", folder.path()).current_dir(folder.path());
        Ended::of(command)
    };
    let (from, to) = (source.endpoint(), server.endpoint());
    let account = ["--account", "devstoreaccount1"];
    let set =
        with_context(&[&["context", "set", "old", "--endpoint", &from], &account[..]].concat());
    assert_eq!(set.code, Some(0), "{set:?}");
    let import = ["import", "trestle", "--source-context", "old", "--endpoint", &to];
    let ended = with_context(&import);
    let both = with_context(&[&import[..], &[&from]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(both.code, Some(2), "{both:?}");
    assert!(succeeds(server, &["table", "list"]).contains("orders"));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert!(left.iter().all(|it| !it.file_name().display().to_string().contains("import")));
}
