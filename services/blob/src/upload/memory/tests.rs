use std::net::{IpAddr, Ipv4Addr};

use super::*;

fn peer(last: u8) -> PeerKey {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)).into()
}

#[tokio::test(start_paused = true)]
async fn a_peer_leaves_memory_to_others_and_all_have_a_bound() {
    let memory = UploadMemory::default();
    // Their shares differ.
    let (greedy, other) = loop {
        let memory = UploadMemory { hasher: RandomState::new(), ..memory.clone() };
        let (greedy, other) = (memory.of_peer(peer(1)), memory.of_peer(peer(2)));
        match (&greedy.share, &other.share) {
            (Some(one), Some(two)) if !Arc::ptr_eq(one, two) => break (greedy, other),
            _ => {}
        }
    };
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
