use trestle_rpc::quota::{StorageMax, StorageQuotas};

use super::*;
use crate::{
    fixture::{LogFixture, record},
    stream::StreamSettings,
};

#[tokio::test]
async fn streams_and_their_bytes_count_before_and_after_they_are_sealed() {
    let fixture = LogFixture::new();
    let storage = StorageQuotas::without_metrics(StorageMax::new(|_| 1 << 40));
    let streams = fixture.logs.streams.clone().with_quotas(storage);
    assert_eq!(streams.usage().await.unwrap(), HashMap::new());
    let stream = fixture.stream(StreamSettings::default()).await;
    let of = async || streams.usage().await.unwrap()[&stream.account];
    let bytes = async || of().await.of(StorageLimit::StoredBytes);
    let empty = bytes().await;

    fixture.append(&stream, &[record(0, &"a".repeat(10_000))]).await.unwrap();
    let unsealed = bytes().await;
    fixture.logs.flush(&stream).await.unwrap();
    let sealed = bytes().await;

    assert!(empty < 1000, "{empty}");
    assert!(unsealed >= empty + 10_000, "{unsealed}");
    let head = fixture.head(stream.record.id).await.unwrap();
    assert_eq!(sealed, empty + head.segment_bytes);
    assert_eq!(of().await.of(StorageLimit::Streams), 1);
    fixture.logs.delete(&stream.account, &stream.name).await.unwrap();
    assert_eq!(streams.usage().await.unwrap(), HashMap::new());
}
