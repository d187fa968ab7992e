//! Reading the next piece while the client receives one. A client that does not read holds the piece that it receives
//! and at most one more, and that only while there is memory for it.

#[cfg(test)]
mod tests;

use std::pin::Pin;

use bytes::Bytes;
use futures::{
    Stream, StreamExt as _,
    future::{BoxFuture, MaybeDone, maybe_done},
    poll, stream,
};
use trestle_rpc::layer::shares::Share;

use crate::{error::BlobError, read_memory::ReadMemory};

type Piece = Result<Bytes, BlobError>;
/// A piece, and the reads after it.
type Fetched<S> = (Piece, Pin<Box<S>>);
/// A piece that is read before its client requests it, with its memory.
type Ahead<S> = (Pin<Box<MaybeDone<BoxFuture<'static, Option<Fetched<S>>>>>>, Share);

enum Position<S> {
    /// Nothing is read until the client requests it.
    Idle(Pin<Box<S>>),
    Ahead(Ahead<S>),
    End,
}

/// The pieces of these reads, in their order. `held` is the memory of the reads.
pub(super) fn read_ahead<S, F>(
    reads: S,
    memory: ReadMemory,
    held: Option<Share>,
) -> impl Stream<Item = Piece> + Send + use<S, F>
where
    S: Stream<Item = F> + Send + 'static,
    F: Future<Output = Piece> + Send + 'static,
{
    let state = (Position::Idle(Box::pin(reads)), memory, held);
    let pieces = stream::unfold(state, |(position, memory, held)| async move {
        let fetched = match position {
            Position::Idle(reads) => fetch(reads).await,
            Position::Ahead((mut ahead, _share)) => {
                ahead.as_mut().await;
                ahead.as_mut().take_output().flatten()
            }
            Position::End => None,
        };
        let (piece, reads) = fetched?;
        let next = match memory.ahead() {
            Some(share) => begin(reads, share).await,
            None => Position::Idle(reads),
        };
        Some((piece, (next, memory, held)))
    });
    // A caller requests the first piece of no bytes, and then the rest.
    pieces.fuse()
}

async fn fetch<S, F>(mut reads: Pin<Box<S>>) -> Option<Fetched<S>>
where
    S: Stream<Item = F>,
    F: Future<Output = Piece>,
{
    let read = reads.next().await?;
    Some((read.await, reads))
}

/// Begins to read the next piece; a thread may do so while the client receives the one before.
async fn begin<S, F>(reads: Pin<Box<S>>, share: Share) -> Position<S>
where
    S: Stream<Item = F> + Send + 'static,
    F: Future<Output = Piece> + Send + 'static,
{
    let next: BoxFuture<'static, _> = Box::pin(fetch(reads));
    let mut next = Box::pin(maybe_done(next));
    let _ = poll!(next.as_mut());
    match *next {
        MaybeDone::Done(None) => Position::End,
        _ => Position::Ahead((next, share)),
    }
}
