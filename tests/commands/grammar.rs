//! One grammar: the noun, the verb, then what it is about.

use serde_json::Value;
use trestle_tests::Server;

use crate::client::{Ended, bare, run, server, succeeds, trestle};

fn object(server: &Server, args: &[&str]) -> Value {
    let output = succeeds(server, &[args, &["-o", "json"]].concat()).output;
    serde_json::from_str(&output).unwrap()
}

#[test]
fn an_entity_is_inserted_updated_read_and_deleted() {
    let server = server();
    succeeds(&server, &["table", "create", "orders"]);

    let insert = ["entity", "insert", "orders", "c42", "0001"];
    succeeds(
        &server,
        &[&insert[..], &["--set", "state=open", "--set", "total:int64=990"]].concat(),
    );
    let keys = ["--partition-key", "c42", "--row-key", "0001"];
    let update = ["entity", "update", "orders", "--set", "state=paid"];
    succeeds(&server, &[&update[..], &keys].concat());
    let stale = run(&server, &[&update[..], &keys, &["--if-match", "W/\"x\""]].concat());

    let found = object(&server, &[&["entity", "get", "orders"][..], &keys].concat());
    assert_eq!((&found["state"], &found["total"]), (&"paid".into(), &"990".into()), "{found}");
    assert_ne!(stale.code, Some(0), "{stale:?}");
    let missing = [&update[..], &["c42", "0002"]].concat();
    assert_eq!(run(&server, &missing).code, Some(3), "an update changes what exists");
    assert_eq!(run(&server, &["entity", "get", "orders", "c42"]).code, Some(2));
    succeeds(&server, &["entity", "delete", "orders", "c42", "0001"]);
    assert_eq!(run(&server, &["entity", "get", "orders", "c42", "0001"]).code, Some(3));
    assert_eq!(object(&server, &["table", "get", "orders"])["table"], "orders");
}

#[test]
fn earlier_spellings_work_and_are_not_in_the_help() {
    let server = server();
    succeeds(&server, &["table", "create", "orders"]);
    succeeds(&server, &["table", "insert", "orders", "-p", "p", "-r", "r", "-s", "a=1"]);
    succeeds(&server, &["table", "upsert", "orders", "-p", "p", "-r", "r", "-s", "b=1"]);
    succeeds(&server, &["table", "explain", "orders", "--filter", "a eq '1'"]);
    assert_eq!(object(&server, &["table", "get", "orders", "p", "r"])["b"], "1");
    succeeds(&server, &["table", "delete", "orders", "p", "r"]);
    assert_eq!(succeeds(&server, &["table", "query", "orders", "--json"]).output, "");
    succeeds(&server, &["queue", "create", "jobs"]);
    succeeds(&server, &["queue", "send", "jobs", "a", "--delay", "1s"]);
    succeeds(&server, &["queue", "peek", "jobs"]);

    let help = |noun: &str| Ended::of(bare(&[noun, "--help"])).output;
    for (noun, verb) in [("table", "upsert"), ("table", "query"), ("queue", "receive")] {
        assert!(!help(noun).contains(&format!("  {verb} ")), "{noun} {verb}");
    }
    assert!(help("entity").contains("  upsert ") && help("message").contains("  receive "));
}

#[test]
fn a_received_message_is_extended_released_and_deleted() {
    let server = server();
    succeeds(&server, &["queue", "create", "jobs"]);
    succeeds(&server, &["message", "send", "jobs", "a job", "--ttl", "1h"]);
    let receive = ["message", "receive", "jobs", "--visibility-timeout", "1m"];

    let received = object(&server, &receive);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (id, receipt) = (text(&received[0]["message_id"]), text(&received[0]["pop_receipt"]));
    let extend = ["message", "extend", "jobs", &id, &receipt, "--text", "half a job"];
    let extended = object(&server, &[&extend[..], &["--visibility-timeout", "5m"]].concat());
    let newer = text(&extended["pop_receipt"]);
    let stale = run(&server, &["message", "release", "jobs", &id, &receipt]);
    succeeds(&server, &["message", "release", "jobs", &id, &newer]);
    let again = object(&server, &receive);

    assert_eq!(stale.code, Some(3), "{stale:?}");
    assert_eq!(again[0]["text"], "half a job");
    assert_eq!(again[0]["dequeue_count"], 2);
    succeeds(&server, &["message", "delete", "jobs", &id, &text(&again[0]["pop_receipt"])]);
    assert_eq!(object(&server, &["queue", "get", "jobs"])["messages"], 0);
}

#[test]
fn the_settings_of_a_queue_are_changed_one_by_one() {
    let server = server();
    succeeds(&server, &["queue", "create", "failed"]);
    let first = ["--metadata", "owner=me", "--dead-letter", "failed", "--max-dequeue-count", "3"];
    succeeds(&server, &[&["queue", "create", "jobs"][..], &first].concat());

    succeeds(&server, &["queue", "update", "jobs", "--metadata", "owner=you"]);
    let kept = object(&server, &["queue", "get", "jobs"]);
    succeeds(&server, &["queue", "update", "jobs", "--no-dead-letter", "--no-metadata"]);
    let removed = object(&server, &["queue", "get", "jobs"]);

    assert_eq!(
        (&kept["metadata"]["owner"], &kept["dead_letter"]),
        (&"you".into(), &"failed".into())
    );
    assert_eq!(removed["dead_letter"], Value::Null, "{removed}");
    assert_eq!(removed["metadata"], serde_json::json!({}), "{removed}");
    assert_eq!(run(&server, &["queue", "update", "jobs"]).code, Some(2), "nothing to change");
}

#[test]
fn deduplication_of_a_queue_is_stopped() {
    let server = server();
    let window = ["--deduplication-window", "5m"];
    succeeds(&server, &[&["queue", "create", "jobs", "--metadata", "a=b"][..], &window].concat());
    let update = ["queue", "update", "jobs", "--no-deduplication-window"];
    let send = ["message", "send", "jobs", "a job", "--id", "1"];
    succeeds(&server, &send);

    let changed = succeeds(&server, &update).output;

    assert_eq!(changed, "changed deduplication_window of queue jobs\n");
    let found = object(&server, &["queue", "get", "jobs"]);
    assert_eq!(found["deduplication_window_seconds"], Value::Null, "{found}");
    assert_eq!(found["metadata"]["a"], "b", "{found}");
    assert_eq!(run(&server, &send).code, Some(2), "a message with an id is rejected");
    let both = run(&server, &[&update[..], &window].concat());
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn tables_and_queues_have_access_policies_and_properties() {
    let server = server();
    succeeds(&server, &["table", "create", "orders"]);
    succeeds(&server, &["queue", "create", "jobs1"]);

    for (noun, name, letters) in [("table", "orders", "r"), ("queue", "jobs1", "rp")] {
        let set = [noun, "policy", "set", name, "readers", "--permissions", letters];
        succeeds(&server, &[&set[..], &["--expiry", "2030-01-31"]].concat());
        succeeds(&server, &[noun, "policy", "set", name, "others", "--permissions", "a"]);
        let listed = object(&server, &[noun, "policy", "list", name]);
        assert_eq!(listed[0]["permissions"], letters, "{listed}");
        assert_eq!(listed[0]["expiry_time"], "2030-01-31T00:00:00Z", "{listed}");
        succeeds(&server, &[noun, "policy", "delete", name, "readers"]);
        let listed = object(&server, &[noun, "policy", "list", name]);
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(run(&server, &[noun, "policy", "delete", name, "readers"]).code, Some(3));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("properties.json");
        std::fs::write(&file, r#"{"logging":{"read":true}}"#).unwrap();
        succeeds(&server, &[noun, "properties", "set", file.to_str().unwrap()]);
        let properties = object(&server, &[noun, "properties", "get"]);
        assert_eq!(properties["logging"]["read"], true, "{properties}");
    }
}

#[test]
fn a_bench_needs_no_arguments() {
    let server = server();
    let short = ["--duration", "200ms", "--warmup", "1ms", "--clients", "2", "--json"];

    for noun in ["table", "queue"] {
        let bench = succeeds(&server, &[&["bench", noun][..], &short].concat()).output;
        let bench: Value = serde_json::from_str(&bench).unwrap();
        assert!(bench["ops"].as_u64() > Some(0), "{bench}");
    }
    assert_eq!(succeeds(&server, &["table", "list", "--json"]).output, "", "it removes its own");
    assert_eq!(succeeds(&server, &["queue", "list", "--json"]).output, "");
    let all = ["bench", "queue", "--op"];
    for op in ["send", "peek"] {
        succeeds(&server, &[&all[..], &[op], &short].concat());
    }
}

#[test]
fn an_import_without_a_written_row_reports_that() {
    let server = server();
    succeeds(&server, &["table", "create", "rows"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.jsonl");
    let row = |number| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{number}\",\"n\":1}}\n");
    std::fs::write(&file, (0..5).map(row).collect::<String>()).unwrap();
    let import = ["table", "import", "rows", file.to_str().unwrap(), "--keep-going"];
    succeeds(&server, &import);
    std::fs::write(&file, (0..5).map(row).collect::<String>().replace("\"n\":1", "\"n\":2"))
        .unwrap();

    let again = run(&server, &import);

    assert_eq!(again.code, Some(1), "{again:?}");
    let reported = "nothing was written, 5 rows failed and not written";
    assert!(again.errors.contains(reported), "{again:?}");
    assert!(again.errors.contains("5 rows not imported, 0 rows written"), "{again:?}");
    assert!(trestle(&server, &["status"]).status().unwrap().success());
}

#[test]
fn completions_and_man_pages_are_of_the_whole_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("man1");

    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let completions = Ended::of(bare(&["completions", shell]));
        assert_eq!(completions.code, Some(0), "{completions:?}");
        assert!(completions.output.contains("visibility-timeout"), "{shell}");
    }
    // Earlier spellings work, and are not offered.
    let bash = Ended::of(bare(&["completions", "bash"])).output;
    assert!(bash.contains("trestle__subcmd__message__subcmd__peek"), "{bash}");
    assert!(!bash.contains("trestle__subcmd__queue__subcmd__peek"), "{bash}");
    assert!(bash.contains("--endpoint") && !bash.contains("terminal"), "{bash}");
    let written = Ended::of(bare(&["man", folder.to_str().unwrap()]));
    assert_eq!(written.code, Some(0), "{written:?}");
    let page = std::fs::read_to_string(folder.join("trestle-entity-query.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("filter"), "{page}");
    let pages = std::fs::read_dir(&folder).unwrap().map(|page| page.unwrap().file_name());
    let pages: Vec<_> = pages.map(|name| name.into_string().unwrap()).collect();
    let unwritten = Ended::of(bare(&["man", "/dev/null/man1"]));
    assert_eq!(unwritten.code, Some(1), "{unwritten:?}");
    assert!(unwritten.errors.contains("folder=`/dev/null/man1`"), "{unwritten:?}");
    let of_help: Vec<_> = pages.iter().filter(|name| name.contains("help")).collect();
    assert!(pages.len() > 100 && of_help.is_empty(), "{of_help:?}");
}
