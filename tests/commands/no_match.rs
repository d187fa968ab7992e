//! What a query without a result reports.

use serde_json::Value;
use trestle_tests::Server;

use crate::client::{run, server, succeeds};

/// A server with an order and a customer.
fn with_orders() -> Server {
    let server = server();
    succeeds(&server, &["table", "create", "orders"]);
    for (row, sets) in [
        ("0001", ["total:int32=990", "state=open", "at:datetime=2026-01-31T08:00:00Z"]),
        ("0002", ["total:int64=5", "state=paid", "at:datetime=2026-02-28T08:00:00Z"]),
    ] {
        let sets: Vec<_> = sets.iter().flat_map(|set| ["--set", set]).collect();
        succeeds(&server, &[&["entity", "insert", "orders", "c42", row][..], &sets].concat());
    }
    server
}

/// What a query or count prints on standard error.
fn errors(server: &Server, verb: &str, filter: &str, more: &[&str]) -> String {
    let args = ["entity", verb, "orders", "--filter", filter];
    let ended = run(server, &[&args[..], more].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.errors
}

#[test]
fn a_query_without_a_result_is_followed_by_what_can_be_the_reason() {
    let server = with_orders();
    let queried = |filter: &str| errors(&server, "query", filter, &[]);

    for (filter, reason) in [
        (
            "totl gt 100",
            "none of the 2 entities scanned has a property `totl`; the nearest name is `total`",
        ),
        (
            "total eq '990'",
            "`total` is Edm.Int32 or Edm.Int64, and Edm.String in the filter: write 990, not '990'",
        ),
        ("state eq 5", "`state` is Edm.String, and Edm.Int32 in the filter: write '5', not 5"),
        (
            "at gt '2026-01-01T00:00:00Z' and at lt '2026-12-31T00:00:00Z'",
            "`at` is Edm.DateTime, and Edm.String in the filter: write \
             datetime'2026-01-01T00:00:00Z', not '2026-01-01T00:00:00Z'",
        ),
        (
            "PartitionKey eq 'C42'",
            "no entity has a key in the range of the filter; keys are compared with their case",
        ),
        (
            "PartitionKey eq 42",
            "`PartitionKey` is Edm.String, and Edm.Int32 in the filter: write '42', not 42",
        ),
    ] {
        assert_eq!(queried(filter), format!("0 entities\nnote: {reason}\n"), "{filter}");
    }
    for filter in ["total eq 991L", "state eq 'closed'", "not (total ge 0) and state eq 'open'"] {
        assert_eq!(queried(filter), "0 entities\n", "{filter}");
    }
    let counted = errors(&server, "count", "totl eq 1", &["-p", "c42"]);
    assert!(counted.starts_with("note: none of the 2 entities scanned has"), "{counted}");
}

#[test]
fn no_note_is_printed_where_none_is_read() {
    let server = with_orders();
    let filter = "totl gt 100";

    for more in [&["-o", "json"][..], &["--json"], &["-q"]] {
        assert_eq!(errors(&server, "query", filter, more), "", "{more:?}");
    }
    assert_eq!(errors(&server, "query", "total gt 100", &[]), "1 entity\n");
    assert_eq!(errors(&server, "query", filter, &["--limit", "0"]), "0 entities\n");
    assert_eq!(errors(&server, "query", filter, &["-o", "csv"]).lines().count(), 2);
    succeeds(&server, &["table", "create", "empty"]);
    let empty = succeeds(&server, &["entity", "query", "empty"]);
    assert_eq!(empty.errors, "0 entities\n", "{empty:?}");
}

#[test]
fn an_analyzed_explanation_has_the_reasons() {
    let server = with_orders();
    let explain = |filter: &str, more: &[&str]| -> Value {
        let explain = ["entity", "explain", "orders", "--json", "--filter", filter];
        let explained = succeeds(&server, &[&explain[..], more].concat()).output;
        let explained: Value = serde_json::from_str(&explained).unwrap();
        explained["no_match_reasons"].clone()
    };

    let reasons = explain("total eq '990'", &["--analyze"]);
    assert!(reasons[0].as_str().unwrap().ends_with(": write 990, not '990'"), "{reasons}");
    assert_eq!(explain("total eq 990", &["--analyze"]), serde_json::json!([]), "one matches");
    assert_eq!(explain("total eq '990'", &[]), serde_json::json!([]), "nothing is read");
}
