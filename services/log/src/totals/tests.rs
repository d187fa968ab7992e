//! Tests of the totals.

use std::{sync::Arc, time::Duration};

use trestle_objects::faulty::{FaultyObjects, ObjectFault};

use super::*;
use crate::{
    fixture::{LogFixture, record},
    stream::{RollPolicy, StreamSettings},
};

const MAX_AGE: Duration = Duration::from_secs(10);

fn rolling() -> StreamSettings {
    let roll = RollPolicy { max_age: MAX_AGE, max_bytes: 1024 * 1024 };
    StreamSettings { roll, ..StreamSettings::default() }
}

#[tokio::test]
async fn totals_follow_appends_and_seals_and_survive_a_restart() {
    let fixture = LogFixture::new();
    assert_eq!(fixture.logs.totals().await.unwrap(), StreamTotals::default());
    let stream = fixture.stream(rolling()).await;
    fixture.append(&stream, &[record(0, "a"), record(1, "b")]).await.unwrap();

    let unsealed = fixture.logs.totals().await.unwrap();
    let restarted = fixture.reopened().logs.totals().await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();
    let sealed = fixture.logs.totals().await.unwrap();

    let head = fixture.head(stream.record.id).await.unwrap();
    assert_eq!((unsealed.streams, unsealed.segments, unsealed.segment_bytes), (1, 0, 0));
    assert!(unsealed.unsealed_bytes > 0);
    assert_eq!(restarted, unsealed);
    let segment_bytes = head.segment_bytes;
    assert_eq!(
        sealed,
        StreamTotals { streams: 1, segments: 1, segment_bytes, ..Default::default() }
    );
}

#[tokio::test]
async fn records_that_cannot_be_sealed_are_late_from_the_age_of_their_policy_on() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = LogFixture::on_store(Arc::clone(&store) as _);
    let stream = fixture.stream(rolling()).await;
    fixture.append(&stream, &[record(0, "a")]).await.unwrap();
    let delay = async || fixture.logs.totals().await.unwrap().seal_delay;

    fixture.advance(MAX_AGE);
    assert_eq!(delay().await, Duration::ZERO);
    // A little more: the age counts from the version of the append.
    fixture.advance(Duration::from_millis(30_001));
    store.plan([ObjectFault::Failed]);
    assert!(fixture.logs.seal_due().await.is_err());
    assert_eq!(delay().await.as_secs(), 30);
    assert!(fixture.logs.seal_due().await.unwrap());
    assert_eq!(delay().await, Duration::ZERO);
}
