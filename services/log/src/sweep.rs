//! The background work on streams: deleting what seals, merges, retention and deletes left behind, merging small
//! segments, and ending the retention of old ones.

mod deleted;
mod expired;
mod objects;
mod requests;
mod retention;
#[cfg(test)]
mod tests;
mod trim;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Domain, ScanLimit, Span, Writes, after_key, transact};
use trestle_model::read_grace::ReadGrace;

use crate::{error::LogError, keys, logs::Logs, stream::StreamId, streams::OpenStream};

/// Most streams that one tick visits.
const STREAMS_MAX: usize = 64;
/// Most streams among which it finds them.
const STREAMS_STEP: ScanLimit = ScanLimit { rows: 1000, bytes: 1024 * 1024 };
/// Most rows of a stream that one step examines.
const STEP: ScanLimit = ScanLimit { rows: 500, bytes: 4 * 1024 * 1024 };
/// Most segments that one change removes or restores.
pub(crate) const EXPIRED_AT_ONCE: usize = 32;
/// Most rows that one change deletes.
const DELETES_MAX: usize = 100;
/// How long an object may be announced and not published: longer than any seal or merge.
pub(crate) const ANNOUNCED_GRACE: Duration = Duration::from_secs(3600);
/// How long segments that a retention removed can be restored.
pub(crate) const RESTORABLE: Duration = Duration::from_secs(24 * 3600);
/// How long the rows of a deleted stream are kept for calls in flight.
pub(crate) const STREAM_GRACE: Duration = Duration::from_secs(60);

/// What the steps of a tick did.
#[derive(Default)]
struct SweepOutcome {
    /// A step has more to do.
    more: bool,
    /// The first error of a stream.
    error: Option<LogError>,
}

impl SweepOutcome {
    fn add(&mut self, step: Result<bool, LogError>) {
        match step {
            Ok(more) => self.more |= more,
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
    }

    /// Whether another step should follow at once. While one should, an error of another stream does not delay it.
    fn into_result(self) -> Result<bool, LogError> {
        match self.error {
            Some(error) if self.more => tracing::warn!(%error, "a stream cannot be swept"),
            Some(error) => return Err(error),
            None => {}
        }
        Ok(self.more)
    }
}

/// The background work.
pub(crate) struct LogSweeper {
    logs: Logs,
    /// The key behind which the next tick continues. It can be reconstructed.
    position: Mutex<Bytes>,
    /// The sequence before which the batches of a stream were deleted: a scan from the first one would pass the marks
    /// of all deletes. It can be reconstructed.
    trimmed: Mutex<HashMap<StreamId, u64>>,
    grace: ReadGrace,
}

impl LogSweeper {
    /// Sweeps these streams.
    pub(crate) fn new(logs: Logs) -> Self {
        Self {
            logs,
            position: Mutex::default(),
            trimmed: Mutex::default(),
            grace: ReadGrace::default(),
        }
    }

    /// Visits some streams. Returns true when another step should follow at once.
    ///
    /// # Errors
    /// The first error; the other streams were visited too, and a later tick repeats the step.
    pub(crate) async fn tick(&self) -> Result<bool, LogError> {
        let mut outcome = SweepOutcome::default();
        self.sweep_deleted(&mut outcome).await?;
        for stream in self.next_streams().await? {
            outcome.add(match stream {
                Ok(stream) => self.visit(&stream).await,
                Err(error) => Err(error),
            });
        }
        outcome.into_result()
    }

    /// The streams of the next tick that this process works on.
    async fn next_streams(&self) -> Result<Vec<Result<Arc<OpenStream>, LogError>>, LogError> {
        let from = self.position.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let every = keys::every_stream();
        let span = Span::new(from.max(every.start.clone()), every.end);
        let scan = self.logs.engine.scan(&span, STREAMS_STEP).await?;
        let (mut streams, mut last) = (Vec::new(), None);
        for entry in &scan.entries {
            if streams.len() >= STREAMS_MAX {
                break;
            }
            let stream = OpenStream::from_row(entry);
            last = Some(&entry.key);
            if stream.as_ref().map_or(true, |stream| self.logs.is_ours(stream.record.id)) {
                streams.push(stream);
            }
        }
        let is_end = !scan.more && last == scan.entries.last().map(|entry| &entry.key);
        let last = last.filter(|_| !is_end);
        let next = last.map(|last| after_key(last).into()).unwrap_or_default();
        *self.position.lock().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(streams)
    }

    /// Every step for one stream. Returns whether more remains.
    async fn visit(&self, stream: &Arc<OpenStream>) -> Result<bool, LogError> {
        let Some(head) = self.logs.streams.head(stream.record.id).await? else { return Ok(false) };
        // Streams that were written by an earlier process, or another one.
        self.logs.unsealed.changed(stream, &head);
        let steps = [
            self.trim(stream.record.id, &head).await,
            self.forget_requests(stream.record.id).await,
            self.end_retention(stream).await,
            self.logs.merge_small(stream).await,
            self.retire_announced(stream.record.id).await,
            self.retire_expired(stream.record.id).await,
            self.delete_retired(stream.record.id).await,
        ];
        let mut more = false;
        for step in steps {
            more |= step?;
        }
        Ok(more)
    }

    /// Deletes rows of one domain.
    async fn delete_rows(&self, domain: &Domain, rows: &[Bytes]) -> Result<(), LogError> {
        for rows in rows.chunks(DELETES_MAX) {
            let (spec, rows) = (ChangeSpec::new(domain.clone()), rows.to_vec());
            transact(&*self.logs.engine, spec, move |_, _| {
                let mut writes = Writes::with_capacity(rows.len());
                for row in &rows {
                    writes.delete(row.clone());
                }
                Ok::<_, LogError>((writes, ()))
            })
            .await??;
        }
        Ok(())
    }
}
