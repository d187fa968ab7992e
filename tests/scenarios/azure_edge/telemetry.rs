//! Telemetry of a request: the log line and the metrics of its gRPC call.

use std::{fs, path::Path, time::Duration};

use serde_json::Value;
use trestle_tests::metric;

use super::endpoint::{ACCOUNT, EDGES, ServedEdge, TABLES};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Waits for so many lines of the access log; the first is of the setup.
async fn lines(log: &Path, count: usize) -> Vec<Value> {
    let mut lines = Vec::new();
    for _ in 0..100 {
        let text = fs::read_to_string(log).unwrap_or_default();
        lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        if lines.len() >= count {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(lines.len(), count, "{lines:#?}");
    lines
}

#[tokio::test]
async fn request_is_logged_and_counted_as_its_grpc_method() {
    for edge in EDGES {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("access.log");
        let settings = [
            ("TRESTLE__TELEMETRY__ACCESS_LOG", log.to_str().unwrap()),
            ("TRESTLE__TELEMETRY__LOG_FORMAT", "json"),
        ];
        let endpoint = ServedEdge::open(edge, &settings).await;
        let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
        let traced = [("traceparent", parent.as_str())];
        let wrong = [traced[0], ("authorization", "SharedKey devstoreaccount1:AAAA")];

        let put = endpoint.put(edge.put.body.as_bytes(), &traced).await;
        let absent = endpoint.get(edge.absent.0, &traced).await;
        let rejected = endpoint.get(edge.list, &wrong).await;

        let (kind, of_put, of_absent, of_list) = if edge.name == TABLES.name {
            ("table", "InsertEntity", "QueryEntities", "ListTables")
        } else {
            ("queue", "SendMessages", "GetQueue", "ListQueues")
        };
        let service =
            format!("trestle.{kind}.v1.{}Service", if kind == "table" { "Table" } else { "Queue" });
        let lines = lines(&log, 4).await;
        for (line, response, method, status, named) in [
            (&lines[1], &put, of_put, "OK", "things"),
            (&lines[2], &absent, of_absent, "NOT_FOUND", "nothings"),
            (&lines[3], &rejected, of_list, "UNAUTHENTICATED", ""),
        ] {
            assert_eq!(line["method"], format!("{service}/{method}"), "{line:#}");
            assert_eq!(line["status"], status, "{line:#}");
            assert_eq!(line["request_id"], response.header("x-ms-request-id"), "{line:#}");
            assert_eq!(line["trace_id"], TRACE, "{line:#}");
            assert_eq!(line[kind].as_str().unwrap_or_default(), named, "{line:#}");
            assert!(line["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{line:#}");
            assert!(line["duration_us"].as_u64().is_some(), "{line:#}");
        }
        for line in &lines[1..3] {
            assert_eq!((&line["account"], &line["credential"]), (&ACCOUNT.into(), &"owner".into()));
        }
        assert_eq!(lines[3]["account"], Value::Null, "the caller is unknown");
        assert_eq!(lines[3]["reason"], "AUTHENTICATION_FAILED");
        let page = endpoint.metrics().await;
        assert_eq!(metric(&page, "trestle_rpc_server_active_calls"), Some(0.0));
        let counted = page.lines().find(|line| {
            line.starts_with("rpc_server_call_duration_seconds_count{") && line.contains(of_put)
        });
        assert!(counted.is_some_and(|line| line.ends_with(" 1")), "{page}");
    }
}
