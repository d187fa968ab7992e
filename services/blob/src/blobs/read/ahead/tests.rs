//! Pieces in their order, and what a client that does not read holds.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use futures::{FutureExt as _, StreamExt as _, future};
use trestle_model::{limits::READ_MESSAGE_BYTES_MAX, name::AccountName};

use super::*;

const MIB: usize = READ_MESSAGE_BYTES_MAX;

fn account() -> ReadMemory {
    ReadMemory::default().of(&AccountName::development())
}

/// Pieces with these bytes, of which `begun` counts those whose read began.
fn pieces(
    bytes: impl IntoIterator<Item = u8, IntoIter: Send + 'static>,
    memory: &ReadMemory,
    begun: &Arc<AtomicUsize>,
) -> Pin<Box<dyn Stream<Item = Piece> + Send>> {
    let begun = Arc::clone(begun);
    let reads = stream::iter(bytes).map(move |byte| {
        let begun = Arc::clone(&begun);
        async move {
            begun.fetch_add(1, Relaxed);
            tokio::task::yield_now().await;
            match byte {
                u8::MAX => Err(BlobError::Busy),
                byte => Ok(Bytes::from(vec![byte])),
            }
        }
    });
    Box::pin(read_ahead(reads, memory.clone(), None))
}

#[tokio::test]
async fn every_piece_is_read_once_in_its_order_with_and_without_memory() {
    let memory = account();
    let (_, free) = memory.free();
    let all: Vec<u8> = (0..100).collect();
    for without in [false, true] {
        let begun = Arc::default();
        let hold = || without.then(|| std::iter::from_fn(|| memory.ahead()).collect::<Vec<_>>());
        let held = hold();
        let found: Vec<_> = pieces(all.clone(), &memory, &begun).map(|it| it.ok()).collect().await;

        let expected: Vec<_> = all.iter().map(|byte| Some(Bytes::from(vec![*byte]))).collect();
        assert_eq!(found, expected);
        assert_eq!(begun.load(Relaxed), all.len());
        drop(held);
        assert_eq!(memory.free().1, free, "all memory is returned");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_one_piece_more_than_it_requested() {
    let (memory, begun) = (account(), Arc::default());
    let (_, free) = memory.free();
    let mut pieces = pieces(0..10, &memory, &begun);
    assert_eq!((begun.load(Relaxed), memory.free().1), (0, free), "nothing before a request");

    pieces.next().await.expect("a piece").expect("read");

    assert_eq!((begun.load(Relaxed), memory.free().1), (2, free - MIB));
    drop(pieces);
    assert_eq!(memory.free().1, free);
}

#[tokio::test]
async fn accounts_read_on_where_one_holds_all_that_is_read_ahead() {
    let memory = account();
    let held: Vec<_> = std::iter::from_fn(|| memory.ahead()).collect();
    assert!(held.len() >= 16, "{}", held.len());
    let begun = Arc::default();
    let mut pieces = pieces(0..3, &memory, &begun);

    pieces.next().await.expect("a piece").expect("read");

    assert_eq!(begun.load(Relaxed), 1, "the next is read on request");
    assert_eq!(pieces.count().await, 2);
    let other = memory.of(&AccountName::parse("other").expect("a name"));
    assert!(other.ahead().is_some(), "another account has a share");
}

#[tokio::test]
async fn an_error_is_an_item_and_the_end_holds_no_memory() {
    let (memory, begun) = (account(), Arc::default());
    let (_, free) = memory.free();
    let mut pieces = pieces([1, u8::MAX, 2], &memory, &begun);

    let mut found = Vec::new();
    while let Some(piece) = pieces.next().await {
        found.push(piece.is_ok());
    }

    assert_eq!(found, [true, false, true]);
    assert!(pieces.next().await.is_none(), "also where it is requested again");
    assert_eq!(memory.free().1, free);
    let none = read_ahead(stream::empty::<future::Ready<Piece>>(), memory, None);
    assert!(Box::pin(none).next().now_or_never().expect("at once").is_none());
}
