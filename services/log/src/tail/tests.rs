mod bounds;

use std::time::Duration;

use prost::Message as _;
use trestle_proto::log::v1::Record;

use super::*;
use crate::fixture::{LogFixture, account, name, record, texts};

async fn follow(fixture: &LogFixture, stream: &Arc<OpenStream>, from: FollowFrom) -> Follower {
    let stream = Arc::clone(stream);
    fixture.logs.follow(stream, from, None, RecordFields::ALL).await.unwrap()
}

async fn next(follower: &mut Follower) -> Vec<Record> {
    let rows = tokio::time::timeout(Duration::from_secs(20), follower.next()).await;
    let rows = rows.expect("records come").unwrap();
    rows.into_iter().map(|row| Record::decode(row.record).unwrap()).collect()
}

#[tokio::test]
async fn a_follower_gets_records_in_the_order_of_arrival_as_they_are_appended() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    fixture.append(&stream, &[record(9, "a"), record(1, "b")]).await.unwrap();
    let mut all = follow(&fixture, &stream, FollowFrom::Sequence(0)).await;
    let mut last = follow(&fixture, &stream, FollowFrom::Last(1)).await;
    let mut new = follow(&fixture, &stream, FollowFrom::Last(0)).await;

    assert_eq!(texts(&next(&mut all).await), ["a", "b"]);
    assert_eq!(texts(&next(&mut last).await), ["b"]);
    let appended = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        fixture.append(&stream, &[record(0, "c")]).await.unwrap();
    };
    let (found, ()) = tokio::join!(next(&mut new), appended);
    assert_eq!(texts(&found), ["c"]);
    assert_eq!(texts(&next(&mut all).await), ["c"]);
    assert_eq!((all.next_sequence(), new.next_sequence()), (3, 3));
}

#[tokio::test]
async fn a_follower_that_is_behind_gets_what_was_sealed_meanwhile() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let mut follower = follow(&fixture, &stream, FollowFrom::Last(0)).await;
    let mut expected = Vec::new();
    for round in 0..5_u64 {
        let records: Vec<_> = (0..600)
            .map(|number| record((7_u64.wrapping_sub(number)) % 5, &format!("{round}-{number}")))
            .collect();
        fixture.append(&stream, &records).await.unwrap();
        expected.extend((0..600).map(|number| format!("{round}-{number}")));
        if round < 4 {
            fixture.logs.flush(&stream).await.unwrap();
            fixture.sweep().await;
        }
    }

    let mut found = Vec::new();
    while found.len() < expected.len() {
        let records = next(&mut follower).await;
        assert!(records.len() <= ROWS_MAX);
        found.extend(texts(&records).into_iter().map(str::to_owned));
    }
    assert_eq!(found, expected);
}

#[tokio::test]
async fn following_ends_when_the_stream_is_deleted() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let mut follower = follow(&fixture, &stream, FollowFrom::Last(0)).await;

    let deleted = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        fixture.logs.delete(&account(), &name("web")).await.unwrap();
    };
    let (ended, ()) = tokio::join!(follower.next(), deleted);

    assert!(matches!(ended, Err(LogError::StreamNotFound(_))), "{ended:?}");
}
