//! How far a queue has come, noted in the store: whoever opens it after a restart begins there, and does not pass what
//! was consumed before.
//!
//! It is noted by the sweeper every few seconds, and by consumers whenever so many messages went away that passing them
//! would be felt. A note is a hint that may be old; never may it be ahead.

use std::sync::Arc;

use trestle_kv::{Write, transact};

use crate::{
    error::QueueError,
    keys::{self, Cursor, QueueId},
    messages::Messages,
    shelf::Shelf,
};

impl Messages {
    /// Notes how far a queue has come, in the background, if many messages went away since that was last done.
    pub(crate) fn note_if_far(&self, shelf: &Arc<Shelf>) {
        let Some(noting) = shelf.begin_noting() else { return };
        let (messages, shelf) = (self.clone(), Arc::clone(shelf));
        tokio::spawn(async move {
            if let Err(error) = messages.note_progress(&shelf).await {
                // The sweeper tries again soon.
                tracing::warn!(%error, "how far a queue has come cannot be noted");
            }
            drop(noting);
        });
    }

    /// Notes how far a queue has come, if a message went away since that was last done.
    ///
    /// # Errors
    /// A failed read or commit.
    pub(crate) async fn note_progress(&self, shelf: &Arc<Shelf>) -> Result<(), QueueError> {
        self.find_oldest(shelf).await?;
        match shelf.take_progress() {
            Some(cursor) => self.note_cursor(shelf.id(), cursor).await,
            None => Ok(()),
        }
    }

    async fn note_cursor(&self, id: QueueId, cursor: Cursor) -> Result<(), QueueError> {
        // A cursor goes with its queue: none is left for a number that is no more.
        let (count, key) = (keys::count(id), keys::cursor(id));
        transact(&*self.engine, vec![count], move |current| {
            let is_there = matches!(current, [Some(_)]);
            let put = Write::Put { key: key.clone(), value: cursor.encode() };
            Ok::<_, QueueError>((Vec::from_iter(is_there.then_some(put)), ()))
        })
        .await?
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use trestle_kv::Engine;

    use super::*;
    use crate::{
        bench::{Bench, outgoing},
        shelf::FAR,
    };

    /// What is stored of how far the queue has come.
    async fn noted(engine: &dyn Engine, id: QueueId) -> Cursor {
        let snapshot = engine.snapshot().await.expect("a snapshot");
        let stored = snapshot.get(&keys::cursor(id)).await.expect("readable");
        stored.map_or(Cursor::START, |value| Cursor::decode(&value).expect("a cursor"))
    }

    #[tokio::test]
    async fn consumers_note_how_far_the_queue_has_come_without_the_sweeper() {
        let bench = Bench::new().await;
        let id = bench.id().await;
        let mut consumed = Vec::new();
        while consumed.len() < 3 * FAR {
            bench.clock.advance(Duration::from_millis(1));
            bench.send(vec![outgoing(0); 32]).await;
            let received = bench.receive(32, 3600).await;
            bench.delete(&received).await;
            let now = bench.messages.clock.now();
            consumed.extend(received.iter().map(|delivered| (now, delivered.place.sequence)));
            // Notes are written by a task of their own.
            tokio::task::yield_now().await;
        }

        // Not much of what was consumed lies behind the last note, neither by place nor by sequence.
        let (time, sequence) = consumed[consumed.len() - FAR - 64];
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let noted = noted(&bench.engine, id).await;
            if noted.place.visible_at >= time && noted.sequence >= sequence {
                break;
            }
            assert!(Instant::now() < deadline, "{noted:?}, not {time:?} and {sequence}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}
