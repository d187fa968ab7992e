//! Reads of segments whose store is absent, or has lost one.

use std::{fs, time::Duration};

use trestle_objects::ObjectArea;

use super::*;
use crate::{keys::StreamRow, stream::StreamSettings, sweep::RESTORABLE};

#[tokio::test]
async fn segments_are_unavailable_while_their_directory_is_absent_and_lost_if_one_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, away) = (folder.path().join("log"), folder.path().join("away"));
    let fixture = LogFixture::on(ObjectArea::in_directory(&directory, None).unwrap());
    let retention = Some(Duration::from_secs(100));
    let stream = fixture.stream(StreamSettings { retention, ..StreamSettings::default() }).await;
    fixture.append(&stream, &[record(0, "first")]).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();
    fixture.advance(Duration::from_secs(101));
    fixture.sweep().await;
    // To be deleted.
    fixture.advance(RESTORABLE + Duration::from_secs(1));
    let second = record(RESTORABLE.as_secs() * SECOND + 101 * SECOND, "second");
    fixture.append(&stream, &[second]).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();

    fs::rename(&directory, &away).unwrap();
    for is_empty in [false, true] {
        if is_empty {
            fs::create_dir(&directory).unwrap();
        }
        let read = fixture.reopened().read_all(&stream).await;
        assert!(matches!(read, Err(LogError::Objects)), "empty: {is_empty}, {read:?}");
        assert!(fixture.sweeper.tick().await.is_err());
        assert_eq!(fixture.count(StreamRow::Retired, stream.record.id).await, 1);
    }

    fs::remove_dir(&directory).unwrap();
    fs::rename(&away, &directory).unwrap();
    assert_eq!(texts(&fixture.reopened().read_all(&stream).await.unwrap()), ["second"]);
    let path = fixture.objects().await.pop().unwrap();
    fs::remove_file(directory.join(path)).unwrap();
    let read = fixture.reopened().read_all(&stream).await;
    assert!(matches!(&read, Err(LogError::Corrupt(_))), "{read:?}");
}
