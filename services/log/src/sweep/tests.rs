mod steps;

use crate::{
    fixture::{LogFixture, SECOND, record, texts},
    stream::StreamSettings,
};
use std::time::Duration;

#[tokio::test]
async fn segments_whose_records_are_all_past_the_retention_are_removed() {
    let fixture = LogFixture::new();
    let retention = Some(Duration::from_secs(100));
    let stream = fixture.stream(StreamSettings { retention, ..StreamSettings::default() }).await;
    for records in [
        [record(0, "old"), record(9 * SECOND, "older than some")],
        [record(5 * SECOND, "old too"), record(50 * SECOND, "kept")],
    ] {
        fixture.append(&stream, &records).await.unwrap();
        fixture.logs.flush(&stream).await.unwrap();
    }

    fixture.advance(Duration::from_secs(109));
    fixture.sweep().await;
    assert_eq!(fixture.read_all(&stream).await.unwrap().len(), 4, "not past it yet");
    fixture.advance(Duration::from_secs(1));
    fixture.sweep().await;

    let records = fixture.read_all(&stream).await.unwrap();
    assert_eq!(texts(&records), ["old too", "kept"], "a segment is removed as a whole");
    let head = fixture.head(stream.record.id).await.unwrap();
    assert_eq!((head.segments, head.segment_records), (1, 2));
    for _ in 0..2 {
        fixture.advance(super::RESTORABLE + Duration::from_secs(1));
        fixture.sweep().await;
    }
    assert!(fixture.objects().await.is_empty());
    assert!(fixture.read_all(&stream).await.unwrap().is_empty());
}

#[tokio::test]
async fn objects_that_a_backup_reads_are_deleted_after_it() {
    let fixture = LogFixture::new();
    let retention = Some(Duration::from_secs(100));
    let stream = fixture.stream(StreamSettings { retention, ..StreamSettings::default() }).await;
    let hold = &fixture.logs.area.hold;
    fixture.append(&stream, &[record(0, "old")]).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();
    fixture.advance(Duration::from_secs(101));
    fixture.sweep().await;

    hold.set(true);
    for _ in 0..3 {
        fixture.advance(super::RESTORABLE);
        fixture.sweep().await;
    }
    assert_eq!(fixture.objects().await.len(), 1, "of a segment past its retention");
    hold.set(false);
    fixture.sweep().await;
    assert!(fixture.objects().await.is_empty());

    fixture.append(&stream, &[record(3 * 24 * 3600 * SECOND, "new")]).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();
    fixture.logs.streams.delete(&stream.account, &stream.name).await.unwrap();
    hold.set(true);
    fixture.advance(super::STREAM_GRACE + Duration::from_secs(1));
    fixture.sweep().await;
    assert_eq!(fixture.objects().await.len(), 1, "of a deleted stream");
    assert!(hold.is_effective());
    hold.set(false);
    fixture.sweep().await;
    assert!(fixture.objects().await.is_empty());
}
