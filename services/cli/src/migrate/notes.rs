//! How far an import is: what a killed one goes on from, and what the report at the end is made of.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::digest::{Digest, Hash};
use crate::{
    errors::CliError,
    files,
    output::{say, thousands},
};

/// How often the notes are brought up to date.
const NOTES_EVERY: Duration = Duration::from_millis(500);
/// Most things left behind that are named one by one.
const LEFT_MAX: usize = 1000;

/// What is imported, and from where: an import goes on only where these are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) endpoint: String,
    /// The directory, or the account and its endpoints.
    pub(super) source: String,
    /// The account of the source.
    pub(super) account: String,
    /// What else the outcome depends on: sizes of files, options.
    pub(super) terms: Vec<String>,
}

/// Where a table goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Place {
    /// After so many documents of its collection.
    Documents(u64),
    /// At the page with these tokens.
    Page { partition: String, row: Option<String> },
    /// Everything was read.
    End,
}

/// A stretch of a table, by its partition keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stretch {
    /// Its first key, or what is less; none for the first stretch.
    pub(super) from: Option<String>,
    /// More than its last key; none for the last stretch.
    pub(super) below: Option<String>,
    pub(super) place: Option<Place>,
}

impl Stretch {
    /// The stretches that bounds divide a table into.
    pub(super) fn between(bounds: Vec<String>) -> Vec<Self> {
        let mut from = None;
        let mut stretches = Vec::new();
        for bound in bounds {
            let below = Some(bound.clone());
            stretches.push(Self { from: from.replace(bound), below, place: None });
        }
        stretches.push(Self { from, ..Self::default() });
        stretches
    }
}

/// How far a table is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableNotes {
    /// Where it goes on, if it is read from its beginning to its end.
    pub(super) place: Option<Place>,
    /// What is read side by side, if it is divided.
    #[serde(default)]
    pub(super) stretches: Vec<Stretch>,
    /// Entities of the source that were seen.
    pub(super) read: u64,
    pub(super) refused: u64,
    /// What was written.
    pub(super) written: Digest,
    /// Everything was answered.
    pub(super) complete: bool,
}

impl TableNotes {
    /// Where its stretch of this number goes on, or the whole of it.
    pub(super) fn place_of(&self, stretch: Option<usize>) -> Option<&Place> {
        match stretch {
            Some(at) => self.stretches.get(at)?.place.as_ref(),
            None => self.place.as_ref(),
        }
    }

    /// Notes where that is.
    pub(super) fn go_on(&mut self, stretch: Option<usize>, place: Place) {
        match stretch.and_then(|at| self.stretches.get_mut(at)) {
            Some(stretch) => stretch.place = Some(place),
            None => self.place = Some(place),
        }
        let mut places = self.stretches.iter().map(|stretch| stretch.place.as_ref());
        self.complete = match &self.place {
            Some(place) => *place == Place::End,
            None => places.all(|place| place == Some(&Place::End)),
        };
    }
}

/// How far a queue is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueueNotes {
    /// Messages that were there before the import.
    pub(super) before: u64,
    /// The deduplication window it had before, in milliseconds.
    pub(super) window_ms: Option<u64>,
    /// Messages of the source are answered up to this one, by its number there.
    pub(super) place: u64,
    pub(super) read: u64,
    pub(super) refused: u64,
    /// Their time was over.
    pub(super) expired: u64,
    /// They were there already, from a run that was killed.
    pub(super) repeated: u64,
    /// Had been received before, which a new message cannot say.
    pub(super) received_before: u64,
    /// What was sent and taken.
    pub(super) sent: Digest,
    /// The first ones that can be received at once, to compare with a peek.
    pub(super) first: Vec<Hash>,
    /// Messages that stay in the source because they cannot be copied without being received.
    pub(super) stayed: u64,
    /// Messages that are counted and may still come again from the source.
    pub(super) counted: Vec<String>,
    /// Messages that were received in the source last, and may not be deleted there yet.
    #[serde(default)]
    pub(super) held: Vec<Held>,
    pub(super) complete: bool,
}

/// A message that the source hides for who received it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Held {
    pub(super) id: String,
    /// What it can be changed with until somebody else receives it.
    pub(super) receipt: String,
}

/// Something that was not copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Left {
    /// Such as ``table `T` ``.
    pub(super) whose: String,
    /// Which of it; empty means all.
    pub(super) which: String,
    pub(super) why: String,
}

/// All notes of an import.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Notes {
    pub(super) job: Job,
    /// By lower-case name.
    pub(super) tables: BTreeMap<String, TableNotes>,
    pub(super) queues: BTreeMap<String, QueueNotes>,
    /// The first of what was not copied, and how much more there is.
    pub(super) left: Vec<Left>,
    pub(super) left_more: u64,
}

impl Notes {
    pub(super) fn new(job: Job) -> Self {
        let (tables, queues) = (BTreeMap::new(), BTreeMap::new());
        Self { job, tables, queues, left: Vec::new(), left_more: 0 }
    }

    /// Names something that was not copied; nothing is named twice.
    pub(super) fn leave(&mut self, left: Left) {
        if self.left.contains(&left) {
            return;
        }
        if self.left.len() < LEFT_MAX {
            self.left.push(left);
        } else {
            self.left_more = self.left_more.saturating_add(1);
        }
    }

    /// How many entities and messages are copied.
    pub(super) fn done(&self) -> (u64, u64) {
        let entities = self.tables.values().map(|table| table.written.count).sum();
        let messages = self.queues.values().map(|queue| queue.sent.count).sum();
        (entities, messages)
    }
}

/// The notes of an import under way, shared by all who copy.
pub(super) struct Ledger {
    inner: Mutex<Inner>,
    path: PathBuf,
    progress: ProgressBar,
}

struct Inner {
    notes: Notes,
    saved: Instant,
}

impl Ledger {
    /// Goes on with the notes at `path`, or begins them; nothing is written yet.
    pub(super) fn open(
        path: &Path,
        job: Job,
        resume: bool,
        progress: ProgressBar,
    ) -> Result<Self, CliError> {
        let shown = path.display();
        let notes = match files::load::<Notes>(path)? {
            None => Notes::new(job),
            Some(_) if !resume => {
                return Err(CliError::Usage(format!(
                    "an import was interrupted here: go on with --resume, or delete its notes to \
                     start again: `{shown}`"
                )));
            }
            Some(notes) if notes.job != job => {
                return Err(CliError::Usage(format!(
                    "the interrupted import was another one (source, its files, account, endpoint \
                     or options differ); delete its notes to start again: `{shown}`"
                )));
            }
            Some(notes) => notes,
        };
        let inner = Mutex::new(Inner { notes, saved: Instant::now() });
        Ok(Self { inner, path: path.to_owned(), progress })
    }

    /// Reads from the notes.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Notes) -> T) -> T {
        read(&self.inner.lock().unwrap_or_else(PoisonError::into_inner).notes)
    }

    /// Changes the notes, which are saved later.
    pub(super) fn change_quietly<T>(&self, change: impl FnOnce(&mut Notes) -> T) -> T {
        change(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner).notes)
    }

    /// Changes the notes, and saves them where that is due.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Notes) -> T) -> T {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut inner.notes);
        let (entities, messages) = inner.notes.done();
        let (entities, messages) = (thousands(entities), thousands(messages));
        self.progress.set_message(format!("{entities} entities, {messages} messages"));
        if inner.saved.elapsed() >= NOTES_EVERY {
            if let Err(error) = files::save(&self.path, &inner.notes) {
                self.progress.suspend(|| say(&format!("warning: cannot be resumed: {error}")));
            }
            inner.saved = Instant::now();
        }
        changed
    }

    /// Saves the notes.
    pub(super) fn save(&self) -> Result<(), CliError> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.saved = Instant::now();
        files::save(&self.path, &inner.notes)
    }

    /// The bar on the terminal.
    pub(super) fn progress(&self) -> &ProgressBar {
        &self.progress
    }

    /// Removes the notes from disk: the import ran to its end.
    pub(super) fn close(&self) -> Result<(), CliError> {
        files::remove(&self.path)
    }
}
