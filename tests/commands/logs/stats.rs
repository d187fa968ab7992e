//! `trestle log stats`.

use std::fs;

use serde_json::json;

use super::*;

/// Six requests of two minutes, one without a duration.
fn requests() -> (Server, tempfile::TempDir) {
    let (server, directory) = (with_stream(), tempfile::tempdir().unwrap());
    let lines = [
        r#"{"time":"2026-11-25T10:00:01Z","level":"info","path":"/pay","ms":10}"#,
        r#"{"time":"2026-11-25T10:00:02Z","level":"error","path":"/pay","ms":30}"#,
        r#"{"time":"2026-11-25T10:00:03Z","level":"info","path":"/cart","ms":2.5}"#,
        r#"{"time":"2026-11-25T10:01:01Z","level":"info","path":"/pay"}"#,
        r#"{"time":"2026-11-25T10:01:02Z","level":"info","path":"/cart","ms":7}"#,
        r#"{"time":"2026-11-25T10:01:03Z","level":"info","path":"/cart","ms":8}"#,
    ];
    let file = directory.path().join("requests.jsonl");
    fs::write(&file, lines.join("\n")).unwrap();
    succeeds(&server, &["log", "append", "app", file.to_str().unwrap()]);
    (server, directory)
}

fn stats(server: &Server, args: &[&str]) -> Vec<Value> {
    lines(&succeeds(server, &[&["log", "stats", "app", "-o", "jsonl"], args].concat()).output)
}

#[test]
fn records_are_counted_by_time_and_property() {
    let (server, _directory) = requests();
    assert_eq!(stats(&server, &[]), [json!({ "count": 6 })]);
    let by_minute = [
        json!({ "time": "2026-11-25T10:00:00Z", "attributes/path": "/pay", "count": 2 }),
        json!({ "time": "2026-11-25T10:00:00Z", "attributes/path": "/cart", "count": 1 }),
        json!({ "time": "2026-11-25T10:01:00Z", "attributes/path": "/cart", "count": 2 }),
        json!({ "time": "2026-11-25T10:01:00Z", "attributes/path": "/pay", "count": 1 }),
    ];
    assert_eq!(stats(&server, &["count", "by", "minute", "attributes/path"]), by_minute);
    assert_eq!(stats(&server, &["--by", "1m,attributes/path"]), by_minute);
    let largest = stats(&server, &["by", "minute,attributes/path", "-n", "1"]);
    assert_eq!(largest, [by_minute[0].clone(), by_minute[2].clone()]);

    succeeds(&server, &["log", "flush", "app"]);
    let errors = stats(&server, &["by", "severity", "--where", "severity ge 'warn'"]);
    assert_eq!(errors, [json!({ "severity": 17, "count": 1 })]);
    let table = succeeds(&server, &["log", "stats", "app", "by", "severity", "-o", "table"]);
    assert!(table.output.contains("ERROR") && table.output.contains("INFO"), "{table:?}");
    let range = ["--since", "2026-11-25T10:00:00Z", "--until", "2026-11-25T10:00:30Z"];
    assert_eq!(
        stats(&server, &[&["count", "rate"], &range[..]].concat()),
        [json!({ "count": 3, "rate": 0.1 })]
    );
}

#[test]
fn numbers_are_summarized() {
    let (server, _directory) = requests();
    let words = [
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "p50",
        "by",
        "attributes/path",
        "--of",
        "attributes/ms",
    ];
    let found = stats(&server, &words);
    let of = |path: &str, numbers: Value| {
        let p50 =
            found.iter().find(|group| group["attributes/path"] == path).unwrap()["p50"].clone();
        let [sum, avg, min, max] = [0, 1, 2, 3].map(|at| numbers[at].clone());
        json!({
            "attributes/path": path, "count": 3, "sum": sum, "avg": avg, "min": min, "max": max, "p50": p50,
        })
    };
    let (cart, pay) =
        (of("/cart", json!([17.5, 5.83333, 2.5, 8])), of("/pay", json!([40, 20, 10, 30])));
    assert_eq!(found, [cart, pay]);
    let median = |at: usize| found[at]["p50"].as_f64().unwrap();
    assert!((median(0) - 7.0).abs() <= 0.07 && (median(1) - 10.0).abs() <= 0.1, "{found:?}");

    let none = succeeds(&server, &["log", "stats", "app", "max", "--of", "attributes/path"]);
    assert!(none.errors.contains("no record has a number in `attributes/path`"), "{none:?}");
}

#[test]
fn words_and_properties_that_are_none_are_named() {
    let (server, _directory) = requests();
    let rejected = |words: &[&str], text: &str| {
        let ended = run(&server, &[&["log", "stats", "app"], words].concat());
        assert_eq!(ended.code, Some(2), "{words:?}: {ended:?}");
        assert!(ended.errors.contains(text), "{words:?}: {ended:?}");
    };
    rejected(&["minute"], "`minute`: must be count, rate");
    rejected(&["p99"], "`p99`: needs --of");
    rejected(&["rate"], "`rate`: needs --since");
    rejected(&["by", "minute", "hour"], "one interval");
    rejected(&["by", "path"], "`path`, expected `severity`");
    assert_eq!(run(&server, &["log", "stats", "absent"]).code, Some(3));
}
