//! Overload and quotas on the Azure ports: 503 with `Retry-After`.

use std::time::{Duration, Instant};

use trestle_tests::HANG;

use super::endpoint::{EDGES, ServedEdge, TABLES};

/// The bytes of bodies in these tests; the minimum of the setting.
const BODIES_BYTES_MAX: usize = 16 * 1024 * 1024;

#[tokio::test]
async fn overload_is_503_with_retry_after() {
    for edge in EDGES {
        let settings = [
            ("TRESTLE__LIMITS__BODY_BYTES_MAX", &*BODIES_BYTES_MAX.to_string()),
            ("TRESTLE__LIMITS__REQUEST_WITHIN_SECONDS", "60"),
        ];
        let endpoint = ServedEdge::open(edge, &settings).await;
        let length = edge.body_bytes_max.to_string();
        let headers = [("content-length", &*length), ("content-type", edge.put.content_type)];
        let head = endpoint.head(edge.put.method, edge.put.target, &headers);
        // Bodies that lack their last byte, as many as fit.
        let most = vec![b' '; edge.body_bytes_max - 1];
        let mut held = Vec::new();
        for _ in 0..BODIES_BYTES_MAX / most.len() {
            let mut wire = endpoint.connect().await;
            wire.send(&[head.as_bytes(), &most].concat()).await;
            held.push(wire);
        }
        let padding = vec![b' '; edge.body_bytes_max - edge.put.body.len()];
        let body = [edge.put.body.as_bytes(), &padding].concat();

        // Earlier ones may not have been read.
        let until = Instant::now() + HANG;
        let mut response = endpoint.put(&body, &[]).await;
        while response.status != 503 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
            // An earlier one may have been rejected while the last one was in flight.
            let mut wire = endpoint.connect().await;
            wire.send(&[head.as_bytes(), &most].concat()).await;
            held.push(wire);
            response = endpoint.put(&body, &[]).await;
        }

        assert_eq!(response.failure(), (503, "ServerBusy"));
        let seconds: u64 = response.header("retry-after").parse().expect("whole seconds");
        assert!((1..=60).contains(&seconds), "{response:?}");
        drop(held);
        assert_eq!(endpoint.get(edge.list, &[]).await.status, 200);
    }
}

#[tokio::test]
async fn exceeded_quota_is_503_with_retry_after() {
    let quota = [
        ("TRESTLE__QUOTAS__PARTITION_ENTITIES_PER_SECOND", "1"),
        ("TRESTLE__QUOTAS__PARTITION_BURST_ENTITIES", "1"),
    ];
    let endpoint = ServedEdge::open(&TABLES, &quota).await;
    let body = |row: usize| format!(r#"{{"PartitionKey":"p","RowKey":"{row}"}}"#);

    let mut rejected = None;
    for row in 0..1000 {
        let response = endpoint.put(body(row).as_bytes(), &[]).await;
        if response.status != 201 {
            rejected = Some(response);
            break;
        }
    }

    let response = rejected.expect("a thousand inserts take longer than the quota allows");
    assert_eq!(response.failure(), (503, "ServerBusy"));
    let seconds: u64 = response.header("retry-after").parse().expect("whole seconds");
    assert!((1..=5).contains(&seconds), "{response:?}");
}

#[tokio::test]
async fn a_creation_over_a_quota_is_403_which_clients_do_not_retry() {
    let quota = [("TRESTLE__QUOTAS__ACCOUNT_TABLES_MAX", "1")];
    let endpoint = ServedEdge::open(&TABLES, &quota).await;

    let body = br#"{"TableName":"another"}"#;
    let response = endpoint.call(TABLES.make, body, &[]).await;

    assert_eq!(response.failure(), (403, "InsufficientAccountPermissions"));
    let text = response.text();
    assert!(text.contains("Write operations are not allowed."), "{text}");
    assert!(text.contains("quotas.account_tables_max"), "{text}");
    assert_eq!(endpoint.get(TABLES.list, &[]).await.status, 200);
    let existing = endpoint.call(TABLES.make, TABLES.make.body.as_bytes(), &[]).await;
    assert_eq!(existing.failure(), (409, "TableAlreadyExists"));
}

#[tokio::test]
async fn stored_bytes_over_a_quota_are_503_until_they_are_measured_and_403_then() {
    let quota = [("TRESTLE__QUOTAS__ACCOUNT_STORED_BYTES_MAX", "100000")];
    let endpoint = ServedEdge::open(&TABLES, &quota).await;
    let padding = "x".repeat(30_000);
    let insert = async |row: usize| {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}","padding":"{padding}"}}"#);
        endpoint.put(body.as_bytes(), &[]).await
    };
    let mut rows = 0;
    let rejected = loop {
        let response = insert(rows).await;
        if response.status != 201 {
            break response;
        }
        rows += 1;
    };

    assert!((2..6).contains(&rows), "{rows} entities");
    assert!(rejected.text().contains("quotas.account_stored_bytes_max"), "{rejected:?}");
    if rejected.status == 503 {
        assert_eq!(rejected.failure(), (503, "ServerBusy"));
        assert_eq!(rejected.header("retry-after"), "10");
    }
    let measured = async {
        while insert(rows).await.status != 403 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(HANG, measured).await.expect("the usage is measured");
    assert_eq!(insert(rows).await.failure(), (403, "InsufficientAccountPermissions"));
}

#[tokio::test]
async fn requests_of_rest_over_a_quota_are_503_with_retry_after() {
    for edge in EDGES {
        let quotas = [
            ("TRESTLE__QUOTAS__ACCOUNT_OPERATIONS_PER_SECOND", "1"),
            ("TRESTLE__QUOTAS__ACCOUNT_BURST_OPERATIONS", "10"),
        ];
        let endpoint = ServedEdge::open(edge, &quotas).await;
        let mut rejected = None;
        for _ in 0..1000 {
            let response = endpoint.get(edge.list, &[]).await;
            if response.status != 200 {
                rejected = Some(response);
                break;
            }
        }
        let response = rejected.expect("a thousand requests take longer than the quota allows");
        assert_eq!(response.failure(), (503, "ServerBusy"));
        assert_eq!(response.header("retry-after"), "1");
        assert!(response.text().contains("quotas.account_operations_per_second"));
    }
}
