mod changes;

use std::time::Duration;

use super::*;
use crate::{
    fixture::{LogFixture, account, name, record},
    keys::StreamRow,
    stream::StreamSettings,
};

fn with_retention(seconds: u64) -> StreamSettings {
    StreamSettings { retention: Some(Duration::from_secs(seconds)), ..StreamSettings::default() }
}

#[tokio::test]
async fn creating_a_stream_again_succeeds_only_with_the_same_settings() {
    let streams = LogFixture::new().logs.streams;
    let create = |settings| {
        let streams = streams.clone();
        async move { streams.create(&account(), &name("web"), settings).await }
    };

    let (first, created) = create(with_retention(60)).await.unwrap();
    assert!(created);
    assert_eq!(create(with_retention(60)).await.unwrap(), (first, false));
    let other = create(with_retention(61)).await;
    assert!(matches!(other, Err(LogError::StreamExists(_))), "{other:?}");
}

#[tokio::test]
async fn an_update_changes_what_it_names_and_keeps_the_rest() {
    let streams = LogFixture::new().logs.streams;
    streams.create(&account(), &name("web"), with_retention(60)).await.unwrap();

    let labels = [("team".to_owned(), "web".to_owned())].into();
    let change = StreamSettingsChange { labels: Some(labels), ..StreamSettingsChange::default() };
    let changed = streams.update(&account(), &name("web"), change).await.unwrap();

    assert_eq!(changed.settings.retention, Some(Duration::from_secs(60)));
    assert_eq!(changed.settings.labels["team"], "web");
    assert_eq!(streams.open(&account(), &name("web")).await.unwrap(), changed);
    let absent = streams.update(&account(), &name("api"), StreamSettingsChange::default()).await;
    assert!(matches!(absent, Err(LogError::StreamNotFound(_))), "{absent:?}");
}

#[tokio::test]
async fn streams_are_listed_by_name_in_pages_of_their_account() {
    let streams = LogFixture::new().logs.streams;
    let other = AccountName::parse("other").unwrap();
    for text in ["b", "a.2", "a.1", "c"] {
        streams.create(&account(), &name(text), with_retention(60)).await.unwrap();
        streams.create(&other, &name(text), with_retention(60)).await.unwrap();
    }
    let list = |prefix: &str, page_token: String| {
        let request = ListStreams { prefix: prefix.to_owned(), page_size: 2, page_token };
        let streams = streams.clone();
        async move { streams.list(&account(), request).await }
    };
    let names = |page: &list::StreamPage| -> Vec<_> {
        page.streams.iter().map(|(name, _)| name.to_string()).collect()
    };

    let first = list("", String::new()).await.unwrap();
    assert_eq!(names(&first), ["a.1", "a.2"]);
    let token = first.next_page_token.unwrap();
    let second = list("", token.clone()).await.unwrap();
    assert_eq!(names(&second), ["b", "c"]);
    assert_eq!(names(&list("a", String::new()).await.unwrap()), ["a.1", "a.2"]);
    assert!(list("a", token).await.is_err(), "a token of another listing");
}

#[tokio::test]
async fn a_deleted_stream_is_not_found_at_once_and_its_rows_are_deleted_later() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    fixture.append(&stream, &[record(1, "a")]).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();
    fixture.append(&stream, &[record(2, "b")]).await.unwrap();
    assert_eq!(fixture.objects().await.len(), 1);

    let id = fixture.logs.delete(&account(), &name("web")).await.unwrap();

    assert!(matches!(fixture.read_all(&stream).await, Err(LogError::StreamNotFound(_))));
    assert!(matches!(
        fixture.append(&stream, &[record(3, "c")]).await,
        Err(LogError::StreamNotFound(_))
    ));
    let again = fixture.plain_stream().await;
    assert_ne!(again.record.id, id);
    assert!(fixture.read_all(&again).await.unwrap().is_empty());

    fixture.sweep().await;
    assert_eq!(fixture.objects().await.len(), 1, "calls in flight may still read");
    fixture.advance(Duration::from_secs(61));
    fixture.sweep().await;
    assert!(fixture.objects().await.is_empty());
    for row in StreamRow::ALL {
        assert_eq!(fixture.count(row, id).await, 0, "{row:?}");
    }
}
