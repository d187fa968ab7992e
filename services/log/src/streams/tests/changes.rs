//! Settings that change while records arrive.

use super::*;
use crate::{
    fixture::texts,
    segment::PromotedType,
    stream::{PromotedAttribute, RollPolicy},
};

fn promoted(key: &str, kind: PromotedType) -> PromotedAttribute {
    PromotedAttribute { key: key.to_owned(), kind, is_indexed: false }
}

#[tokio::test]
async fn a_new_roll_policy_holds_for_records_that_arrived_before() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    fixture.append(&stream, &[record(1, "a")]).await.unwrap();
    let roll = RollPolicy { max_age: Duration::from_secs(1), max_bytes: 1_000_000 };
    let change = StreamSettingsChange { roll: Some(roll), ..Default::default() };
    fixture.logs.streams.update(&account(), &name("web"), change).await.unwrap();
    fixture.advance(Duration::from_secs(2));

    fixture.sweep().await;
    fixture.logs.seal_due().await.unwrap();

    assert_eq!(fixture.head(stream.record.id).await.unwrap().segments, 1);
}

#[tokio::test]
async fn columns_keep_their_ids_whatever_is_promoted_later() {
    let fixture = LogFixture::new();
    let streams = &fixture.logs.streams;
    let settings = StreamSettings {
        promoted: vec![promoted("a", PromotedType::String), promoted("b", PromotedType::Int64)],
        ..StreamSettings::default()
    };
    let stream = fixture.stream(settings).await;
    let columns = |record: &StreamRecord| -> Vec<_> {
        let columns = record.promoted_columns().into_iter();
        columns.map(|column| (column.key, column.kind, column.position)).collect()
    };
    let update = async |promoted| {
        let change = StreamSettingsChange { promoted: Some(promoted), ..Default::default() };
        streams.update(&account(), &name("web"), change).await.unwrap()
    };
    let column = |key: &str, kind, position| (key.to_owned(), kind, position);
    assert_eq!(
        columns(&stream.record),
        [column("a", PromotedType::String, 0), column("b", PromotedType::Int64, 1)]
    );
    let changed =
        update(vec![promoted("b", PromotedType::Int64), promoted("c", PromotedType::Bool)]).await;
    assert_eq!(
        columns(&changed),
        [column("b", PromotedType::Int64, 1), column("c", PromotedType::Bool, 2)]
    );
    // Another type is another column, and the first one comes back with its id.
    let changed =
        update(vec![promoted("b", PromotedType::Bool), promoted("a", PromotedType::String)]).await;
    assert_eq!(
        columns(&changed),
        [column("b", PromotedType::Bool, 3), column("a", PromotedType::String, 0)]
    );
    let changed = update(Vec::new()).await;
    assert_eq!((columns(&changed), changed.columns.len()), (Vec::new(), 4));
}

#[tokio::test]
async fn records_are_read_across_changes_of_their_columns() {
    let fixture = LogFixture::new();
    let first = fixture.plain_stream().await;
    let mut expected = Vec::new();
    let kinds = [None, Some(PromotedType::String), Some(PromotedType::Int64), None];
    for (kind, round) in kinds.into_iter().zip(0_u64..) {
        let promoted = kind.map(|kind| promoted("b", kind)).into_iter().collect();
        let change = StreamSettingsChange { promoted: Some(promoted), ..Default::default() };
        fixture.logs.streams.update(&account(), &name("web"), change).await.unwrap();
        let stream = fixture.logs.open(&account(), &name("web")).await.unwrap();
        let value = if round % 2 == 0 { "{\"b\":7}" } else { "text" };
        let value = trestle_proto::opentelemetry::proto::common::v1::AnyValue {
            value: Some(
                trestle_proto::opentelemetry::proto::common::v1::any_value::Value::StringValue(
                    value.to_owned(),
                ),
            ),
        };
        let mut appended = record(round, &round.to_string());
        appended.attributes = [("b".to_owned(), value)].into();
        fixture.append(&stream, std::slice::from_ref(&appended)).await.unwrap();
        fixture.logs.flush(&stream).await.unwrap();
        appended.sequence = round;
        expected.push(appended);
    }

    assert_eq!(fixture.read_all(&first).await.unwrap(), expected);
}

#[tokio::test]
async fn a_name_that_is_used_again_is_another_stream() {
    let fixture = LogFixture::new();
    let old = fixture.plain_stream().await;
    fixture.append(&old, &[record(1, "old")]).await.unwrap();
    fixture.logs.flush(&old).await.unwrap();
    fixture.logs.delete(&account(), &name("web")).await.unwrap();
    let new = fixture.plain_stream().await;
    fixture.append(&new, &[record(2, "new")]).await.unwrap();
    fixture.logs.flush(&new).await.unwrap();

    fixture.advance(Duration::from_secs(61));
    fixture.sweep().await;

    assert_eq!(texts(&fixture.read_all(&new).await.unwrap()), ["new"]);
    assert_eq!(fixture.objects().await.len(), 1);
    let rejected = fixture.append(&old, &[record(3, "x")]).await;
    assert!(matches!(rejected, Err(LogError::StreamNotFound(_))), "{rejected:?}");
}

#[tokio::test]
async fn a_created_stream_exists_once_however_many_create_it() {
    let fixture = LogFixture::new();
    let created = (0..10).map(|_| async {
        let (account, name) = (account(), name("web"));
        fixture.logs.open_or_create(&account, &name).await.unwrap().record.id
    });
    let ids = futures::future::join_all(created).await;
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}
