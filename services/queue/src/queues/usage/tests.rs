use trestle_rpc::quota::{StorageMax, StorageQuotas};

use super::*;
use crate::fixture::{Fixture, outgoing};

#[tokio::test]
async fn queues_and_the_bytes_of_their_messages_count_for_their_account() {
    let fixture = Fixture::new().await;
    let storage = StorageQuotas::without_metrics(StorageMax::new(|_| 1 << 40));
    let queues = fixture.messages.queues.clone().with_quotas(storage);
    let account = fixture.access.account();
    let of = async || queues.usage().await.expect("measured").get(account).copied();
    let before = of().await.expect("a queue");

    fixture.create("second").await;
    fixture.send((0..100).map(|_| outgoing(0)).collect()).await;

    let full = of().await.expect("queues");
    let queues_of = |usage: &MeasuredUsage| usage.of(StorageLimit::Queues);
    let bytes_of = |usage: &MeasuredUsage| usage.of(StorageLimit::StoredBytes);
    assert_eq!((queues_of(&before), queues_of(&full)), (1, 2));
    let grown = bytes_of(&full) - bytes_of(&before);
    assert!((100 * 4..100 * 300).contains(&grown), "{grown} bytes");

    loop {
        let received = fixture.receive(32, 600).await;
        if received.is_empty() {
            break;
        }
        fixture.delete(&received).await;
    }
    let consumed = of().await.expect("queues");
    assert!(bytes_of(&consumed) < bytes_of(&before) + 400, "{consumed:?}");
    queues.measure().await.expect("measured");
    let reported = queues.quotas(account);
    assert_eq!(reported[0].usage, bytes_of(&consumed));
    assert_eq!((reported[1].quota.as_str(), reported[1].usage), ("account_queues_max", 2));
}
