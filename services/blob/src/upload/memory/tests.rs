use std::net::{IpAddr, Ipv4Addr};

use super::*;

fn peer(number: u16) -> PeerKey {
    let [third, last] = number.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(10, 0, third, last)).into()
}

#[tokio::test]
async fn no_two_of_a_thousand_peers_share_memory_and_those_without_uploads_are_removed() {
    let memory = UploadMemory::default();
    let held = memory.of_peer(peer(0)).reserve(None, PEER_KIB).await.expect("reserved");
    for other in 1..1_000 {
        let reserved = memory.of_peer(peer(other)).reserve(None, MEMORY_KIB - PEER_KIB).await;
        reserved.expect("what the first peer leaves");
    }

    let shares = memory.shares.lock().expect("no panic");
    assert!(shares.by_peer.len() <= PEERS_MIN, "{}", shares.by_peer.len());
    assert!(shares.by_peer.contains_key(&peer(0)), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_leaves_memory_to_others_and_all_have_a_bound() {
    let memory = UploadMemory::default();
    let (greedy, other) = (memory.of_peer(peer(1)), memory.of_peer(peer(2)));
    let held = greedy.reserve(None, PEER_KIB - 32).await.expect("reserved");
    let held = greedy.reserve(Some(held), 32).await.expect("reserved");
    assert_eq!(held.kib(), PEER_KIB);

    assert!(matches!(greedy.reserve(None, 1).await, Err(BlobError::Busy)));
    let rest = other.reserve(None, MEMORY_KIB - PEER_KIB).await.expect("reserved");
    assert!(matches!(other.reserve(None, 1).await, Err(BlobError::Busy)));
    assert!(matches!(memory.reserve(None, 1).await, Err(BlobError::Busy)));

    drop(held);
    let again = greedy.reserve(None, PEER_KIB).await.expect("reserved");
    drop((again, rest));
    memory.reserve(None, MEMORY_KIB).await.expect("all of it was given back");
}

#[tokio::test(start_paused = true)]
async fn a_bounded_number_of_uploads_of_a_peer_waits() {
    let memory = UploadMemory::default().of_peer(peer(1));
    let _held = memory.reserve(None, PEER_KIB).await.expect("reserved");
    let began = tokio::time::Instant::now();
    let mut waiting: Vec<_> =
        (0..WAITING_MAX).map(|_| Box::pin(memory.reserve(None, 32))).collect();
    for upload in &mut waiting {
        assert!(futures::poll!(upload).is_pending());
    }

    assert!(matches!(memory.reserve(None, 32).await, Err(BlobError::Busy)));
    assert_eq!(began.elapsed(), Duration::ZERO, "it is rejected at once");
    for upload in waiting {
        assert!(matches!(upload.await, Err(BlobError::Busy)));
    }
    assert_eq!(began.elapsed(), WAIT_MAX);
}
