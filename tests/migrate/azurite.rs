//! `import azurite`: what is copied, what is rejected, and how that is reported.

use std::{fs, os::unix::fs::symlink, path::Path};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::{TempDir, tempdir};

use crate::{
    command::{run, run_within_limit, start, succeeds},
    workspace::{TEXTS, Workspace},
};

const DEV: &str = "devstoreaccount1";

fn small() -> Workspace {
    let mut workspace = Workspace::default();
    let entities = [("p", "1", r#""n":1"#), ("p", "2", r#""d":2,"d@odata.type":"Edm.Double""#)];
    workspace.table(DEV, "Orders", &entities);
    workspace.queue(DEV, "jobs", r#""Owner":"me""#);
    workspace.message(DEV, "jobs", "m1", "one");
    workspace.message(DEV, "jobs", "m2", "zwei\n€");
    workspace
}

/// Changes the text of a file.
type Damage = fn(String) -> String;

fn written(workspace: &Workspace) -> TempDir {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("ws")).unwrap();
    workspace.write(&directory.path().join("ws"));
    directory
}

fn path(directory: &TempDir) -> String {
    directory.path().join("ws").to_str().unwrap().to_owned()
}

#[test]
fn a_workspace_is_copied_and_compared() {
    let (data, directory) = (tempdir().unwrap(), written(&small()));
    let server = start(&data);

    let output = succeeds(&server, &["import", "azurite", &path(&directory), "--json"]);

    assert!(
        output.ends_with(
            "{\"tables\":1,\"queues\":1,\"containers\":0,\"blobs\":0,\"bytes\":0,\"not_copied\":0,\"match\":true}\n"
        ),
        "{output}"
    );
    assert!(
        output.contains(r#""table":"Orders","read":2,"written":2,"rejected":0,"target":2"#),
        "{output}"
    );
    let rows = succeeds(&server, &["table", "query", "orders", "--json"]);
    assert!(rows.contains(r#""n":1}"#) && rows.contains(r#""d":2.0}"#), "{rows}");
    let messages = succeeds(&server, &["queue", "peek", "jobs", "--max", "32", "--json"]);
    assert!(messages.contains(r#""text":"one""#) && messages.contains(r#""text":"zwei\n€""#));
    assert!(messages.contains(r#""expiration_time":null"#), "{messages}");
    let queues = succeeds(&server, &["queue", "list", "--json"]);
    assert!(queues.contains(r#""metadata":{"Owner":"me"}"#), "{queues}");
    assert!(!directory.path().join("ws.trestle-import").exists(), "the checkpoint is removed");
}

#[test]
fn rejects_targets_that_are_not_empty_without_into_existing() {
    let (data, directory) = (tempdir().unwrap(), written(&small()));
    let server = start(&data);
    succeeds(&server, &["table", "create", "ORDERS"]);
    succeeds(&server, &["table", "insert", "orders", "-p", "p", "-r", "1", "-s", "mine=1"]);

    let import = ["import", "azurite", &path(&directory)];
    let rejected = run(&server, &import);

    assert_eq!(rejected.code, Some(2), "{rejected:?}");
    assert!(rejected.errors.contains("table `Orders`; nothing was copied"), "{rejected:?}");
    let rows = succeeds(&server, &["table", "query", "orders", "--json"]);
    assert!(rows.contains("mine") && rows.lines().count() == 1, "{rows}");
    assert_eq!(succeeds(&server, &["queue", "list", "--json"]), "", "nothing was copied");

    succeeds(&server, &[&import[..], &["--into-existing"]].concat());
    let rows = succeeds(&server, &["table", "query", "orders", "--json"]);
    assert!(!rows.contains("mine") && rows.lines().count() == 2, "{rows}");
}

#[test]
fn a_difference_between_source_and_target_fails_the_command() {
    let (data, directory) = (tempdir().unwrap(), written(&small()));
    let server = start(&data);
    succeeds(&server, &["table", "create", "orders"]);
    succeeds(&server, &["table", "insert", "orders", "-p", "other", "-r", "1"]);

    let ended = run(&server, &["import", "azurite", &path(&directory), "--into-existing"]);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.output.contains("\tfalse\n"), "{ended:?}");
    assert!(ended.errors.contains("tables, queues and containers that differ: 1,"), "{ended:?}");
}

#[test]
fn reports_skipped_items_with_the_reason_and_copies_the_rest() {
    let mut workspace = small();
    workspace.raw_entity(r#"{"PartitionKey":1,"RowKey":"r","properties":{}}"#);
    workspace.raw_entity(
        r#"{"PartitionKey":"p","RowKey":"bad","properties":{"PartitionKey":"p","RowKey":"bad","a-b":1}}"#,
    );
    workspace.raw_message(r#"{"queueName":7}"#);
    workspace.message_at(DEV, "jobs", "m3", r#"{"id":"absent","offset":0,"count":4}"#);
    workspace.message_at(DEV, "jobs", "m4", r#"{"id":"../x","offset":0,"count":4}"#);
    workspace.table(DEV, "ORDERS", &[("p", "9", "")]);
    workspace.queue(DEV, "Bad--Name", "");
    let (data, directory) = (tempdir().unwrap(), written(&workspace));
    let server = start(&data);

    let ended = run(&server, &["import", "azurite", &path(&directory)]);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    for text in [
        "table `Orders`, document 3: is not an entity",
        "table `Orders`, PartitionKey=`p` RowKey=`bad`: PROPERTY_NAME_INVALID",
        "table `ORDERS`: another table has this name in another case",
        "queue `Bad--Name`: ",
        "messages, document 3: is not a message",
        "queue `jobs`, message `m3`: its text is missing: file=`absent` does not exist",
        "queue `jobs`, message `m4`: its text is in a file with a name that Azurite does not use",
    ] {
        assert!(ended.output.contains(&format!("not copied: {text}")), "{text}: {ended:?}");
    }
    let rows = succeeds(&server, &["table", "query", "orders", "--json"]);
    assert_eq!(rows.lines().count(), 2, "{rows}");
    let messages = succeeds(&server, &["queue", "peek", "jobs", "--max", "32", "--json"]);
    assert_eq!(messages.lines().count(), 2, "{messages}");
}

#[test]
fn rejects_a_damaged_workspace_before_anything_is_written() {
    let data = tempdir().unwrap();
    let server = start(&data);
    let damages: [(&str, Damage); 4] = [
        ("__azurite_db_table__.json", |text| text[..text.len() * 2 / 3].to_owned()),
        ("__azurite_db_queue__.json", |text| text[..text.len() - 1].to_owned()),
        ("__azurite_db_table__.json", |_| "[1]".to_owned()),
        ("__azurite_db_queue__.json", |text| text.replace(r#""name":"jobs""#, r#""name":5"#)),
    ];
    for (file, damage) in damages {
        let directory = written(&small());
        let database = directory.path().join("ws").join(file);
        let text = fs::read_to_string(&database).unwrap();
        fs::write(&database, damage(text)).unwrap();

        let ended = run(&server, &["import", "azurite", &path(&directory)]);

        assert_eq!(ended.code, Some(2), "{ended:?}");
        let named = ended.errors.contains(file) || ended.errors.contains("$QUEUES_COLLECTION$");
        assert!(named, "{ended:?}");
        assert_eq!(succeeds(&server, &["table", "list", "--json"]), "", "nothing was written");
        assert_eq!(succeeds(&server, &["queue", "list", "--json"]), "", "nothing was written");
    }
}

/// Makes something else than a file at a path, from the file or the folder that was there.
type Replacement = fn(original: &Path, path: &Path);

/// Everything but a regular file: a pipe without a writer, a link to the original, and a folder.
const NO_FILES: [(&str, Replacement); 3] = [
    ("pipe", |_, path| {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }),
    ("link", |original, path| symlink(original, path).unwrap()),
    ("folder", |_, path| fs::create_dir(path).unwrap()),
];

/// A workspace in which something else is in place of a file or folder, which is beside the workspace.
fn replaced(name: &str, replacement: Replacement) -> TempDir {
    let directory = written(&small());
    let (original, path) =
        (directory.path().join("original"), directory.path().join("ws").join(name));
    fs::rename(&path, &original).unwrap();
    replacement(&original, &path);
    directory
}

#[test]
fn rejects_a_workspace_whose_databases_are_not_regular_files() {
    let data = tempdir().unwrap();
    let server = start(&data);
    for file in ["__azurite_db_table__.json", "__azurite_db_queue__.json"] {
        for (kind, replacement) in NO_FILES {
            let directory = replaced(file, replacement);

            let ended = run_within_limit(&server, &["import", "azurite", &path(&directory)]);

            assert_eq!(ended.code, Some(2), "{file}, {kind}: {ended:?}");
            assert!(ended.errors.contains(file), "{file}, {kind}: {ended:?}");
            assert!(ended.errors.contains("must be a regular file"), "{file}, {kind}: {ended:?}");
            assert_eq!(succeeds(&server, &["table", "list", "--json"]), "", "{file}, {kind}");
            assert_eq!(succeeds(&server, &["queue", "list", "--json"]), "", "{file}, {kind}");
        }
    }
}

#[test]
fn skips_messages_whose_texts_are_not_in_regular_files_of_the_workspace() {
    let texts = &format!("__queuestorage__/{TEXTS}");
    let of_texts = NO_FILES.map(|(kind, replacement)| (texts.as_str(), kind, replacement));
    let of_folder = NO_FILES.map(|(kind, replacement)| ("__queuestorage__", kind, replacement));
    for (name, kind, replacement) in of_texts.into_iter().chain(of_folder) {
        let (data, directory) = (tempdir().unwrap(), replaced(name, replacement));
        let server = start(&data);

        let ended = run_within_limit(&server, &["import", "azurite", &path(&directory)]);

        assert_eq!(ended.code, Some(1), "{name}, {kind}: {ended:?}");
        let why = match (name, kind) {
            ("__queuestorage__", "folder") => "its text is missing",
            _ => "must be a regular file",
        };
        for message in ["m1", "m2"] {
            let skipped = format!("not copied: queue `jobs`, message `{message}`: its text ");
            let line = ended.output.lines().find(|line| line.contains(&skipped));
            let line = line.unwrap_or_else(|| panic!("{name}, {kind}: {ended:?}"));
            assert!(line.contains(why), "{name}, {kind}: {line}");
        }
        let rows = succeeds(&server, &["table", "query", "orders", "--json"]);
        assert_eq!(rows.lines().count(), 2, "{name}, {kind}: {rows}");
        let messages = succeeds(&server, &["queue", "peek", "jobs", "--max", "32", "--json"]);
        assert_eq!(messages, "", "{name}, {kind}");
    }
}

#[test]
fn a_directory_without_a_workspace_is_a_usage_error() {
    let (data, empty) = (tempdir().unwrap(), tempdir().unwrap());
    let server = start(&data);
    let empty = empty.path().to_str().unwrap();
    for (directory, code, text) in [
        ("/nowhere/at/all", 2, "cannot read the workspace"),
        (empty, 2, "is not an Azurite workspace"),
        ("mysql://root:hunter2@127.0.0.1:3306/azurite", 2, "only blobs in an SQL database"),
    ] {
        let ended = run(&server, &["import", "azurite", directory]);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.errors.contains(text) && !ended.errors.contains("hunter2"), "{ended:?}");
    }
}

#[test]
fn a_workspace_of_several_accounts_needs_from_account() {
    let mut workspace = small();
    workspace.table("other", "Others", &[("p", "1", "")]);
    let (data, directory) = (tempdir().unwrap(), written(&workspace));
    let server = start(&data);
    let path = path(&directory);

    let ended = run(&server, &["import", "azurite", &path]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.errors.contains("--from-account: `devstoreaccount1`, `other`"), "{ended:?}");
    let ended = run(&server, &["import", "azurite", &path, "--from-account", "absent"]);
    assert!(ended.code == Some(2) && ended.errors.contains("`absent`"), "{ended:?}");

    succeeds(&server, &["import", "azurite", &path, "--from-account", "other"]);
    let tables = succeeds(&server, &["table", "list", "--json"]);
    assert!(tables.contains("Others") && !tables.contains("Orders"), "{tables}");
}
