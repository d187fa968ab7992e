//! Following a stream: its records in the order of their sequences, as they are appended.

#[cfg(test)]
mod tests;

use std::{ops::Range, sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    error::LogError, logs::Logs, read::ReadPlan, record::RecordFields, row::RowPredicate,
    segment::SealedRow, streams::OpenStream,
};

/// Most records that are returned at once.
const ROWS_MAX: usize = 1000;
/// Most bytes that are returned at once, but for the last record.
const BYTES_MAX: usize = 1024 * 1024;
/// How often the position is read where no append of this process reports one: others may append.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Most records that one read examines: they are sorted by sequence in memory.
const WINDOW_MAX: u64 = 10_000;
/// How many the first one examines.
const WINDOW_FIRST: u64 = 1000;
/// Fewest, where records are large.
const WINDOW_MIN: u64 = 16;
/// Most bytes of records that one read holds, but for the last ones: a record may have 1 MiB.
const WINDOW_BYTES_MAX: usize = 8 * BYTES_MAX;

/// A call that follows a stream.
pub(crate) struct Follower {
    logs: Logs,
    stream: Arc<OpenStream>,
    next: u64,
    /// How many sequences the next read examines.
    window: u64,
    begins_at_the_end: bool,
    predicate: Option<Arc<dyn RowPredicate>>,
    fields: RecordFields,
    appended: watch::Receiver<u64>,
}

/// Where a follower begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowFrom {
    /// The record of this sequence, or the oldest one after it.
    Sequence(u64),
    /// The last records, so many.
    Last(u64),
}

impl Logs {
    /// Follows a stream.
    ///
    /// # Errors
    /// [`LogError::StreamNotFound`], or a failed read.
    pub(crate) async fn follow(
        &self,
        stream: Arc<OpenStream>,
        from: FollowFrom,
        predicate: Option<Arc<dyn RowPredicate>>,
        fields: RecordFields,
    ) -> Result<Follower, LogError> {
        let not_found = || LogError::StreamNotFound(stream.name.clone());
        let head = self.streams.head(stream.record.id).await?.ok_or_else(not_found)?;
        let next = match from {
            FollowFrom::Sequence(sequence) => sequence,
            FollowFrom::Last(count) => head.next_sequence.saturating_sub(count),
        };
        let begins_at_the_end = matches!(from, FollowFrom::Last(_)) && next == head.next_sequence;
        let (logs, appended) =
            (self.clone(), self.unsealed.watch(stream.record.id, head.next_sequence));
        let window = WINDOW_FIRST;
        Ok(Follower { logs, stream, next, window, begins_at_the_end, predicate, fields, appended })
    }
}

impl Follower {
    /// The sequence with which a later call continues.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next
    }

    /// Whether it begins with the next record that is appended, at a sequence that is new to its caller.
    pub(crate) fn begins_at_the_end(&self) -> bool {
        self.begins_at_the_end
    }

    /// The next records, at least one, unless none matched of those that were appended.
    ///
    /// # Errors
    /// [`LogError::StreamNotFound`] once the stream is deleted, or a failed read.
    pub(crate) async fn next(&mut self) -> Result<Vec<SealedRow>, LogError> {
        let not_found = || LogError::StreamNotFound(self.stream.name.clone());
        loop {
            let _ = self.appended.borrow_and_update();
            let id = self.stream.record.id;
            let head = self.logs.streams.head(id).await?.ok_or_else(not_found)?;
            if self.next < head.next_sequence {
                return self.read(head.next_sequence).await;
            }
            match tokio::time::timeout(POLL_EVERY, self.appended.changed()).await {
                Ok(Ok(())) | Err(_) => {}
                // Forgotten: it was deleted, which the next read shows.
                Ok(Err(_)) => tokio::time::sleep(POLL_EVERY).await,
            }
        }
    }

    /// Reads a window of sequences.
    async fn read(&mut self, end: u64) -> Result<Vec<SealedRow>, LogError> {
        let requested = end.min(self.next.saturating_add(self.window));
        let (mut rows, end) = self.window(self.next..requested).await?;
        let count = sort_and_count(&mut rows);
        self.window = next_window(self.window, count, count < rows.len() || end < requested);
        self.next = rows.get(count).map_or(end, |row| row.sequence);
        rows.truncate(count);
        Ok(rows)
    }

    /// The records of a window of sequences, in any order, and where the window ends: earlier than requested where the
    /// records are large.
    async fn window(&self, sequences: Range<u64>) -> Result<(Vec<SealedRow>, u64), LogError> {
        let mut end = sequences.end;
        let plan = ReadPlan {
            times: 0..u64::MAX,
            is_backward: false,
            behind: None,
            predicate: self.predicate.clone(),
            fields: self.fields,
            limit: 0,
            sequences,
        };
        let (_, mut merged) = self.logs.read(&self.stream, plan).await?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while let Some(more) = merged.next(ROWS_MAX, BYTES_MAX).await? {
            for row in more.into_iter().filter(|row| row.sequence < end) {
                bytes += row.record.len();
                rows.push(row);
            }
            if bytes > WINDOW_BYTES_MAX {
                // By time the first sequences may come last, so all are read.
                let count = sort_and_count(&mut rows);
                end = rows.get(count).map_or(end, |row| row.sequence);
                rows.truncate(count);
                bytes = rows.iter().map(|row| row.record.len()).sum();
            }
        }
        Ok((rows, end))
    }
}

/// How many sequences to examine after a read of `window` that returned `count` records: what does not fit into a
/// response is read again for the next one.
fn next_window(window: u64, count: usize, is_cut: bool) -> u64 {
    let next = match is_cut {
        true => (count as u64).saturating_mul(2).max(WINDOW_MIN),
        false => window.saturating_mul(2),
    };
    next.min(WINDOW_MAX)
}

/// Sorts rows by their sequences. Returns how many of the first are returned at once.
fn sort_and_count(rows: &mut [SealedRow]) -> usize {
    rows.sort_unstable_by_key(|row| row.sequence);
    let mut bytes = 0;
    let fits = |row: &&SealedRow| {
        let fits = bytes < BYTES_MAX;
        bytes += row.record.len();
        fits
    };
    rows.iter().take(ROWS_MAX).take_while(fits).count()
}
