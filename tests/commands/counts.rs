//! Counts of entities.

use std::fs;

use serde_json::Value;
use trestle_tests::Server;

use crate::client::{Ended, bare, run, server, succeeds};

/// Rows of each of two partitions: more than one message of a stream.
const ROWS: usize = 1300;

/// A server with two partitions, one of them with a quote in its key; every fourth entity has `state` paid.
fn with_orders() -> Server {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let file = folder.path().join("orders.jsonl");
    let row = |partition: &str, row: usize| {
        let state = if row.is_multiple_of(4) { "paid" } else { "open" };
        format!(
            "{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row:04}\",\"state\":\"{state}\"}}\n"
        )
    };
    let rows = ["it's", "other"].into_iter().flat_map(|key| (0..ROWS).map(move |at| row(key, at)));
    fs::write(&file, rows.collect::<String>()).unwrap();
    succeeds(&server, &["table", "create", "orders"]);
    succeeds(&server, &["table", "import", "orders", file.to_str().unwrap()]);
    server
}

#[test]
fn a_count_is_the_number_of_rows_of_its_query() {
    let server = with_orders();
    let count = |args: &[&str]| -> usize {
        let counted = succeeds(&server, &[&["entity", "count", "orders"], args].concat());
        assert_eq!(counted.errors, "", "{args:?}");
        counted.output.trim_end().parse().unwrap()
    };
    let query = |filter: &str| {
        let query = ["entity", "query", "orders", "--json", "--filter", filter];
        succeeds(&server, &query).output.lines().count()
    };

    let either = "RowKey lt '0010' or state eq 'paid'";
    assert_eq!(count(&[]), query(""));
    assert_eq!(count(&["--where", either]), query(either));
    assert_eq!(count(&["-p", "it's"]), query("PartitionKey eq 'it''s'"));
    let one = format!("PartitionKey eq 'it''s' and ({either})");
    assert_eq!(count(&["-p", "it's", "--filter", either]), query(&one));
    assert!(query(&one) < query(either), "the partition has a part of them");
    assert_eq!(count(&["--partition-key", "", "-q"]), 0);
}

#[test]
fn a_count_is_an_object_of_json_and_words_in_a_table() {
    let server = with_orders();
    let count = |form: &str| succeeds(&server, &["entity", "count", "orders", "-o", form]).output;
    let query = succeeds(&server, &["entity", "query", "orders", "--json"]).output;
    let all = query.lines().count();

    for form in ["json", "jsonl"] {
        let object: Value = serde_json::from_str(&count(form)).unwrap();
        assert_eq!(object, serde_json::json!({ "table": "orders", "entities": all }));
    }
    assert_eq!(count("csv"), format!("table,entities\norders,{all}\n"));
    assert_eq!(count("plain"), format!("{all}\n"));
    assert_eq!(count("table").replace(',', ""), format!("{all} entities\n"));
    let cost = ["entity", "count", "orders", "-p", "other", "--where", "state eq 'x'", "--cost"];
    let cost = succeeds(&server, &[&cost[..], &["--json"]].concat());
    let object: Value = serde_json::from_str(&cost.errors).unwrap();
    assert_eq!(object["cost"]["scanned"], ROWS, "only the partition is read: {cost:?}");
    assert_eq!(object["cost"]["scope"], "PARTITION");
}

#[test]
fn a_filter_is_counted_as_it_is_alone_and_errors_have_their_exit_codes() {
    let server = with_orders();
    let count = |args: &[&str]| run(&server, &[&["entity", "count"], args].concat());

    let split = "RowKey eq '0000') or (RowKey eq '0001'";
    for partition in [&["-p", "other"][..], &[]] {
        let rejected = count(&[&["orders", "--filter", split], partition].concat());
        assert_eq!((rejected.code, rejected.output.as_str()), (Some(2), ""), "{rejected:?}");
    }
    assert_eq!(count(&["nosuch"]).code, Some(3));
    assert_eq!(count(&["nosuch", "-p", "p", "--filter", "a eq 1"]).code, Some(3));
    assert_eq!(count(&["orders", "extra"]).code, Some(2));
    let unserved = ["entity", "count", "orders", "--endpoint", "http://127.0.0.1:1"];
    assert_eq!(Ended::of(bare(&unserved)).code, Some(5));
}
