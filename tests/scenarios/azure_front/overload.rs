//! A server that has too much to do says so, and when to come again.

use std::time::{Duration, Instant};

use super::door::{Door, FRONTS, TABLES};

/// How long a server may take to read what was sent to it.
const READ_WITHIN: Duration = Duration::from_secs(40);
/// Bytes that bodies may hold in these tests; the least that can be set.
const BODIES_BYTES_MAX: usize = 16 * 1024 * 1024;

#[tokio::test]
async fn overload_is_503_with_retry_after() {
    for front in FRONTS {
        let settings = [
            ("TRESTLE__LIMITS__BODY_BYTES_MAX", &*BODIES_BYTES_MAX.to_string()),
            ("TRESTLE__LIMITS__REQUEST_WITHIN_SECONDS", "60"),
        ];
        let door = Door::open(front, &settings).await;
        let length = front.body_bytes_max.to_string();
        let headers = [("content-length", &*length), ("content-type", front.put.content_type)];
        let head = door.head(front.put.method, front.put.target, &headers);
        // Bodies of which all but the last byte is there, as many as there is room for.
        let most = vec![b' '; front.body_bytes_max - 1];
        let mut held = Vec::new();
        for _ in 0..BODIES_BYTES_MAX / most.len() {
            let mut wire = door.connect().await;
            wire.send(&[head.as_bytes(), &most].concat()).await;
            held.push(wire);
        }
        let padding = vec![b' '; front.body_bytes_max - front.put.body.len()];
        let body = [front.put.body.as_bytes(), &padding].concat();

        // Those before may not have been read yet.
        let until = Instant::now() + READ_WITHIN;
        let mut told = door.put(&body, &[]).await;
        while told.status != 503 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
            // One of those before may have been turned away while the last one was here.
            let mut wire = door.connect().await;
            wire.send(&[head.as_bytes(), &most].concat()).await;
            held.push(wire);
            told = door.put(&body, &[]).await;
        }

        assert_eq!(told.failure(), (503, "ServerBusy"));
        let seconds: u64 = told.header("retry-after").parse().expect("whole seconds");
        assert!((1..=60).contains(&seconds), "{told:?}");
        drop(held);
        assert_eq!(door.get(front.list, &[]).await.status, 200);
    }
}

#[tokio::test]
async fn exceeded_quota_is_503_with_retry_after() {
    let quota = [
        ("TRESTLE__QUOTAS__PARTITION_ENTITIES_PER_SECOND", "1"),
        ("TRESTLE__QUOTAS__PARTITION_BURST_ENTITIES", "1"),
    ];
    let door = Door::open(&TABLES, &quota).await;
    let body = |row: usize| format!(r#"{{"PartitionKey":"p","RowKey":"{row}"}}"#);

    let mut refused = None;
    for row in 0..1000 {
        let told = door.put(body(row).as_bytes(), &[]).await;
        if told.status != 201 {
            refused = Some(told);
            break;
        }
    }

    let told = refused.expect("a thousand inserts take longer than the quota allows");
    assert_eq!(told.failure(), (503, "ServerBusy"));
    let seconds: u64 = told.header("retry-after").parse().expect("whole seconds");
    assert!((1..=5).contains(&seconds), "{told:?}");
}
