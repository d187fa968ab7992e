use std::net::IpAddr;

use super::*;

/// Three quarters of the memory, which one account has at most.
const ACCOUNT_KIB: usize = MEMORY_KIB / 4 * 3;

fn account(name: &str) -> Holder {
    Holder::account_alone(name)
}

#[tokio::test(start_paused = true)]
async fn an_account_leaves_memory_to_others_and_all_have_a_bound() {
    let memory = UploadMemory::default();
    let (greedy, other) = (memory.of(account("greedy")), memory.of(account("other")));
    let held = greedy.reserve(None, ACCOUNT_KIB - 32).await.expect("reserved");
    let held = greedy.reserve(Some(held), 32).await.expect("reserved");
    assert_eq!(held.kib(), ACCOUNT_KIB);

    assert!(matches!(greedy.reserve(None, 1).await, Err(BlobError::Busy)));
    let rest = other.reserve(None, MEMORY_KIB - ACCOUNT_KIB).await.expect("reserved");
    assert!(matches!(other.reserve(None, 1).await, Err(BlobError::Busy)));
    assert!(matches!(memory.reserve(None, 1).await, Err(BlobError::Busy)));

    drop(held);
    let again = greedy.reserve(None, ACCOUNT_KIB).await.expect("reserved");
    drop((again, rest));
    memory.reserve(None, MEMORY_KIB).await.expect("all of it was given back");
}

#[tokio::test(start_paused = true)]
async fn two_addresses_of_an_account_leave_memory_to_another_account() {
    let memory = UploadMemory::default();
    let of = |name, host| Holder::account(name, IpAddr::from([10, 0, 0, host]).into());
    let mut held = Vec::new();
    for host in [1, 2] {
        let address = memory.of(of("greedy", host));
        while let Ok(more) = address.reserve(None, 4 * 1024).await {
            held.push(more);
        }
    }

    let other = memory.of(of("other", 1)).reserve(None, 16 * 1024).await;

    assert!(other.is_ok(), "{} are held", held.len());
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_waits_gets_memory_that_another_returns() {
    let memory = UploadMemory::default().of(account("a"));
    let held = memory.reserve(None, ACCOUNT_KIB).await.expect("reserved");
    let mut waiting = Box::pin(memory.reserve(None, 32));
    assert!(futures::poll!(&mut waiting).is_pending());

    drop(held);

    assert!(waiting.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_bounded_number_of_uploads_of_an_account_waits() {
    let memory = UploadMemory::default().of(account("a"));
    let _held = memory.reserve(None, ACCOUNT_KIB).await.expect("reserved");
    let began = tokio::time::Instant::now();
    let mut waiting: Vec<_> =
        (0..WAITING_MAX / 4 * 3).map(|_| Box::pin(memory.reserve(None, 32))).collect();
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
