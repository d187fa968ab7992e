//! `import azure` from a live account, which is another server: encrypted, and emptied of messages
//! by an import that is killed.

use std::{fs, path::Path, process::Stdio, time::Instant};

use tempfile::{TempDir, tempdir};
use trestle_identity::account::DEVELOPMENT_KEY;
use trestle_tests::{CertificateAuthority, HANG, Server};

use crate::command::{run, start, succeeds, trestle};

/// Enough for many receives of 32, so that a kill falls between two of them.
const MESSAGES: usize = 640;

/// The connection string of the account of a server.
fn connection(server: &Server, scheme: &str) -> String {
    let at = |name: &str| format!("{scheme}://{}/devstoreaccount1", server.address(name));
    let (tables, queues) = (at("azure_table"), at("azure_queue"));
    let key = format!("AccountName=devstoreaccount1;AccountKey={DEVELOPMENT_KEY}");
    format!("{key};TableEndpoint={tables};QueueEndpoint={queues}")
}

/// Sends so many messages, each with a text of its own.
fn send(server: &Server, queue: &str, count: usize) {
    succeeds(server, &["queue", "create", queue]);
    let texts: Vec<_> = (0..count).map(|number| format!("text {number}")).collect();
    for texts in texts.chunks(100) {
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        succeeds(server, &[&["queue", "send", queue], &*texts].concat());
    }
}

fn messages(server: &Server, queue: &str) -> usize {
    let stats = succeeds(server, &["queue", "stats", queue, "--json"]);
    let count = stats.split("\"messages\":").nth(1).and_then(|rest| rest.split(',').next());
    count.and_then(|count| count.parse().ok()).expect("a number of messages")
}

/// Kills an import in the middle of the messages that it moves, once its checkpoint records that it holds
/// some and has moved so many.
fn kill_after_progress(server: &Server, args: &[&str], checkpoint: &Path, moved: usize) {
    let mut import = trestle(server, args);
    let mut import = import.stdout(Stdio::null()).spawn().expect("the client runs");
    let started = Instant::now();
    loop {
        let text = fs::read_to_string(checkpoint).unwrap_or_default();
        let read = text.split("\"read\":").nth(1).and_then(|rest| rest.split(',').next());
        let read: usize = read.and_then(|read| read.parse().ok()).unwrap_or(0);
        if read >= moved && text.contains("\"receipt\":") {
            break;
        }
        assert!(started.elapsed() < HANG, "no progress: {text}");
        let ended = import.try_wait().expect("the client is ours");
        assert!(ended.is_none(), "the import ended before it was killed: {ended:?}");
    }
    import.kill().expect("the client is killed");
    import.wait().expect("the client is ours");
}

#[test]
fn a_killed_import_moves_every_message_once() {
    let (source_data, data, directory) =
        (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let (source, server) = (start(&source_data), start(&data));
    send(&source, "jobs", MESSAGES);
    let connection = connection(&source, "http");
    let checkpoint = directory.path().join("checkpoint");
    let import = [
        "import",
        "azure",
        &connection,
        "--queues",
        "receive",
        "--checkpoint",
        checkpoint.to_str().unwrap(),
    ];

    kill_after_progress(&server, &import, &checkpoint, 32);
    kill_after_progress(&server, &[&import[..], &["--resume"]].concat(), &checkpoint, 128);
    assert!(messages(&source, "jobs") > 0, "the import was killed before its end");
    let output = succeeds(&server, &[&import[..], &["--resume", "--json"]].concat());

    assert!(output.ends_with("\"not_copied\":0,\"match\":true}\n"), "{output}");
    assert!(output.contains(&format!("\"read\":{MESSAGES},\"sent\":{MESSAGES}")), "{output}");
    assert_eq!((messages(&source, "jobs"), messages(&server, "jobs")), (0, MESSAGES));
    let mut texts = Vec::new();
    while texts.len() < MESSAGES {
        let more = succeeds(&server, &["queue", "receive", "jobs", "--max", "32", "--json"]);
        assert!(!more.is_empty(), "{} messages were moved", texts.len());
        let text = |line: &str| {
            line.split("\"text\":\"").nth(1).unwrap().split('"').next().map(str::to_owned)
        };
        texts.extend(more.lines().filter_map(text));
    }
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), MESSAGES, "each was moved once");
}

#[test]
fn a_peek_reports_the_messages_that_remain_in_the_source() {
    let (source_data, data, directory) =
        (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let (source, server) = (start(&source_data), start(&data));
    send(&source, "jobs", 40);
    let (connection, checkpoint) =
        (connection(&source, "http"), directory.path().join("checkpoint"));
    let import = ["import", "azure", &connection, "--checkpoint", checkpoint.to_str().unwrap()];

    let peeked = run(&server, &import);
    let again = run(&server, &[&import[..], &["--into-existing", "--json"]].concat());

    assert_eq!((peeked.code, again.code), (Some(1), Some(1)), "{peeked:?} {again:?}");
    let line = "not copied: queue `jobs`, 8 messages: in the source; --queues receive";
    assert!(peeked.output.contains(line), "{peeked:?}");
    assert!(peeked.errors.contains("items and messages that were not copied: 8"), "{peeked:?}");
    assert!(again.output.contains(r#""not_copied":8,"match":false"#), "{again:?}");
    assert_eq!(messages(&source, "jobs"), 40, "nothing was changed");
}

/// An account that is served encrypted, with a table and a queue.
fn encrypted(data: &TempDir, settings: &[(&str, &str)]) -> Server {
    let plain = start(data);
    succeeds(&plain, &["table", "create", "Orders"]);
    succeeds(&plain, &["table", "insert", "orders", "-p", "p", "-r", "1", "-s", "state=open"]);
    send(&plain, "jobs", 3);
    assert_eq!(plain.terminate(), Some(0));
    Server::start(&["--data-dir", data.path().to_str().unwrap()], settings)
}

#[test]
fn an_account_is_read_over_tls_with_a_trusted_ca() {
    let (source_data, data, directory) =
        (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let authority = CertificateAuthority::new("of the account");
    let source = encrypted(&source_data, &authority.issue("127.0.0.1").settings());
    let server = start(&data);
    let connection = connection(&source, "https");
    let checkpoint = directory.path().join("checkpoint");
    let import = ["import", "azure", &connection, "--checkpoint", checkpoint.to_str().unwrap()];

    let other = CertificateAuthority::new("of another owner");
    let file = other.file();
    let args = [&import[..], &["--source-ca-file", file.to_str().unwrap()]].concat();
    let ended = run(&server, &args);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.errors.contains("cannot be reached"), "{ended:?}");
    assert!(!ended.errors.contains(DEVELOPMENT_KEY), "{ended:?}");
    let file = authority.file();
    let args = [&import[..], &["--source-ca-file", file.to_str().unwrap(), "--json"]].concat();
    let output = succeeds(&server, &args);

    let summary = "{\"tables\":1,\"queues\":1,\"containers\":0,\"blobs\":0,\"bytes\":0,\
        \"not_copied\":0,\"match\":true}\n";
    assert!(output.ends_with(summary), "{output}");
    let rows = succeeds(&server, &["table", "query", "orders", "--json"]);
    assert!(rows.contains("\"state\":\"open\""), "{rows}");
    assert_eq!(source.terminate(), Some(0));
    assert_eq!(messages(&start(&source_data), "jobs"), 3, "nothing is consumed");
}
