//! The progress of an import: the state for resumption and for the report at the end.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tonic::{Code, Status};
use trestle_command::{
    checkpoint::{Checkpoint, CheckpointState},
    errors::CliError,
    output::{self, counted},
};

use crate::digest::{Digest, Hash};

/// How many of the first messages are recorded to compare a peek with: more than it returns, since
/// some may expire meanwhile.
const FIRST_MAX: usize = 128;
/// Most items that are reported one by one as not copied.
const SKIPPED_MAX: usize = 1000;

/// The position of reading in a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SourcePosition {
    /// After this number of documents of its collection.
    Documents(u64),
    /// After the message of a stream with this token.
    Message(String),
    /// At the page with these tokens.
    Page { partition: String, row: Option<String> },
    /// Everything was read.
    End,
}

/// A range of the partition keys of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartitionRange {
    /// Its first key, or a lower bound; none for the first range.
    pub(super) from: Option<String>,
    /// An exclusive upper bound; none for the last range.
    pub(super) below: Option<String>,
    pub(super) position: Option<SourcePosition>,
}

impl PartitionRange {
    /// The ranges that bounds divide a table into.
    pub(super) fn between(bounds: &[String]) -> Vec<Self> {
        let from = std::iter::once(None).chain(bounds.iter().cloned().map(Some));
        let below = bounds.iter().cloned().map(Some).chain([None]);
        from.zip(below).map(|(from, below)| Self { from, below, position: None }).collect()
    }
}

/// The progress of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableProgress {
    /// Its position, if it is read from its beginning to its end.
    pub(super) position: Option<SourcePosition>,
    /// Its ranges, if it is divided and read in parallel.
    pub(super) ranges: Vec<PartitionRange>,
    /// Entities of the source that were read.
    pub(super) read: u64,
    pub(super) rejected: u64,
    /// The digest of the written entities.
    pub(super) written: Digest,
    /// Every write was answered.
    pub(super) complete: bool,
}

impl TableProgress {
    /// Records the position of its range of this number, or of the whole table.
    pub(super) fn advance(&mut self, range: Option<usize>, position: SourcePosition) {
        match range.and_then(|at| self.ranges.get_mut(at)) {
            Some(range) => range.position = Some(position),
            None => self.position = Some(position),
        }
        let mut positions = self.ranges.iter().map(|range| range.position.as_ref());
        self.complete = match &self.position {
            Some(position) => *position == SourcePosition::End,
            None => positions.all(|position| position == Some(&SourcePosition::End)),
        };
    }
}

/// The progress of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueueProgress {
    /// Messages that it held before the import.
    pub(super) before: u64,
    /// The deduplication window it had before, in milliseconds.
    pub(super) window_ms: Option<u64>,
    /// Messages of the source are answered up to this number of the source.
    pub(super) position: u64,
    pub(super) read: u64,
    pub(super) rejected: u64,
    pub(super) expired: u64,
    /// Deduplicated: sent before by a run that was killed.
    pub(super) repeated: u64,
    /// Messages with an earlier delivery count, which a new message cannot carry.
    pub(super) received_before: u64,
    /// The digest of the accepted messages.
    pub(super) sent: Digest,
    /// The first ones that are visible at once, to compare with a peek.
    pub(super) first: Vec<Hash>,
    /// Where a peek of the source continues.
    #[serde(default)]
    pub(super) page_token: String,
    /// Messages that remain in the source because they cannot be copied without being received.
    pub(super) remaining: u64,
    /// Messages that are counted and may still be read again from the source.
    pub(super) counted: Vec<String>,
    /// Messages that were received in the source last, and may still exist there.
    pub(super) held: Vec<ReceivedMessage>,
    pub(super) complete: bool,
}

impl QueueProgress {
    /// Adds the outcomes of more messages.
    pub(super) fn add(&mut self, more: Self) {
        self.position = self.position.max(more.position);
        self.read += more.read;
        self.rejected += more.rejected;
        self.expired += more.expired;
        self.repeated += more.repeated;
        self.received_before += more.received_before;
        self.sent.merge(more.sent);
        let room = FIRST_MAX.saturating_sub(self.first.len());
        self.first.extend(more.first.into_iter().take(room));
        self.counted.extend(more.counted);
    }
}

/// A message that was received in the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReceivedMessage {
    pub(super) id: String,
    /// Valid until another client receives the message.
    pub(super) receipt: String,
}

/// The position of reading in a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum BlobPosition {
    /// At its beginning.
    #[default]
    Start,
    /// After this number of names.
    Names(u64),
    /// At the page with this marker.
    Marker(String),
    /// Everything was read.
    End,
}

/// The progress of a container. Counts include snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ContainerProgress {
    pub(super) position: BlobPosition,
    /// Names after the position that are copied, or rejected: at most one batch.
    pub(super) done: BTreeSet<String>,
    /// Blobs of the source that were read.
    pub(super) read: u64,
    pub(super) rejected: u64,
    /// Bytes of the written blobs.
    pub(super) bytes: u64,
    /// The digest of the written blobs.
    pub(super) written: Digest,
}

impl ContainerProgress {
    /// Whether every blob was copied or rejected.
    pub(super) fn is_complete(&self) -> bool {
        self.position == BlobPosition::End
    }
}

/// An item that was not copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Skipped {
    /// Such as ``table `T` ``.
    pub(super) whose: String,
    /// The part that was not copied; empty means all.
    pub(super) which: String,
    pub(super) why: String,
}

impl Skipped {
    pub(super) fn new(whose: impl Into<String>, which: impl Into<String>, why: String) -> Self {
        Self { whose: whose.into(), which: which.into(), why }
    }

    /// Error codes of the server for which an item is skipped; another error ends the import.
    pub(super) fn rejected<T>(
        done: Result<T, Status>,
        codes: &[Code],
        whose: String,
        which: &str,
    ) -> Result<Option<Self>, CliError> {
        match done {
            Ok(_) => Ok(None),
            Err(status) if codes.contains(&status.code()) => {
                Ok(Some(Self::new(whose, which, status.message().to_owned())))
            }
            Err(status) => Err(status.into()),
        }
    }
}

/// The progress of all tables, queues and containers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct MigrationProgress {
    /// By lower-case name.
    pub(super) tables: BTreeMap<String, TableProgress>,
    pub(super) queues: BTreeMap<String, QueueProgress>,
    pub(super) containers: BTreeMap<String, ContainerProgress>,
    /// The first items that were not copied, and the number of others.
    pub(super) skipped: Vec<Skipped>,
    pub(super) skipped_more: u64,
}

impl CheckpointState for MigrationProgress {
    const COMMAND: &'static str = "import";
}

impl MigrationProgress {
    /// Reports an item that was not copied; each is reported once.
    pub(super) fn skip(&mut self, skipped: Skipped) {
        if self.skipped.contains(&skipped) {
            return;
        }
        if self.skipped.len() < SKIPPED_MAX {
            self.skipped.push(skipped);
        } else {
            self.skipped_more += 1;
        }
    }

    /// How much is copied, for people.
    pub(super) fn copied(&self) -> String {
        let entities = self.tables.values().map(|table| table.written.count).sum();
        let messages = self.queues.values().map(|queue| queue.sent.count).sum();
        let (entities, messages) = (counted(entities, "entity"), counted(messages, "message"));
        if self.containers.is_empty() {
            return format!("{entities} and {messages}");
        }
        let blobs = self.containers.values().map(|container| container.written.count).sum();
        let bytes = self.containers.values().map(|container| container.bytes).sum();
        let (blobs, bytes) = (counted(blobs, "blob"), output::bytes(bytes));
        format!("{entities}, {messages} and {blobs} ({bytes})")
    }
}

/// The progress of an import, shared by the tasks that copy.
pub(super) struct Tracker {
    checkpoint: Mutex<Checkpoint<MigrationProgress>>,
    pub(super) bar: ProgressBar,
}

impl Tracker {
    /// Continues the checkpoint at `path`, or begins one; nothing is written yet.
    pub(super) fn open(
        path: PathBuf,
        job: Value,
        resume: bool,
        bar: ProgressBar,
    ) -> Result<Self, CliError> {
        let mut checkpoint = Checkpoint::new(job, MigrationProgress::default());
        checkpoint.keep(path, None)?;
        checkpoint.load(resume)?;
        Ok(Self { checkpoint: Mutex::new(checkpoint), bar })
    }

    fn lock(&self) -> MutexGuard<'_, Checkpoint<MigrationProgress>> {
        self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&MigrationProgress) -> T) -> T {
        read(&self.lock().state)
    }

    /// Changes the progress, which is saved later.
    pub(super) fn change_unsaved<T>(&self, change: impl FnOnce(&mut MigrationProgress) -> T) -> T {
        change(&mut self.lock().state)
    }

    /// Changes the progress, and saves it if that is due.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut MigrationProgress) -> T) -> T {
        let mut checkpoint = self.lock();
        let changed = change(&mut checkpoint.state);
        self.bar.set_message(checkpoint.state.copied());
        if checkpoint.is_due() {
            checkpoint.save_or_warn(&self.bar);
        }
        changed
    }

    pub(super) fn save(&self) -> Result<(), CliError> {
        self.lock().save()
    }

    /// Removes the checkpoint: the import is complete.
    pub(super) fn close(&self) -> Result<(), CliError> {
        self.lock().remove()
    }
}
