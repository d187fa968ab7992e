//! How far a load is, noted beside its file.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{client::Random, errors::CliError, files, output::say};

/// A request that is sent again is recognised for ten minutes; less what its send may have taken.
const RECOGNISED: Duration = Duration::from_secs(500);

/// What is loaded, and where to: a load can go on only where these are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) endpoint: String,
    pub(super) queue: String,
    /// A queue that was created again is another queue.
    pub(super) queue_created: Option<String>,
    pub(super) text: bool,
}

/// A place between two lines of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Bytes before it.
    pub(super) byte: u64,
    /// Lines before it.
    pub(super) line: u64,
    /// Messages before it.
    pub(super) messages: u64,
}

/// See the module.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Notes {
    pub(super) job: Job,
    /// The name of the load, in its request ids.
    load: String,
    /// Every message before this place is sent.
    pub(super) done: Place,
    /// Where the notes are; none for a pipe, which cannot be read again.
    #[serde(skip)]
    path: Option<PathBuf>,
}

impl Notes {
    /// The notes of the load of a file that goes on, or new ones.
    ///
    /// # Errors
    /// Notes of another load, or that cannot be read or written.
    pub(super) fn begin(job: Job, file: Option<&PathBuf>, resume: bool) -> Result<Self, CliError> {
        let path = file.map(|file| files::beside(file, ".trestle-load"));
        let found = match &path {
            Some(path) if resume => files::load::<Self>(path)?,
            _ => None,
        };
        let notes = match found {
            Some(notes) if notes.job != job => {
                return Err(CliError::Usage(
                    "the interrupted load was another one (endpoint, queue or --text differ, or the queue was \
                     created again), start again without --resume"
                        .to_owned(),
                ));
            }
            Some(notes) => {
                if let Some(path) = path.as_deref().filter(|path| !is_recent(path)) {
                    let notes = path.display();
                    say(&format!(
                        "warning: up to 100 messages may be sent twice: `{notes}` is old"
                    ));
                }
                Self { path, ..notes }
            }
            None => {
                let mut random = Random::from_system();
                let load = format!("{:016x}{:016x}", random.next(), random.next());
                Self { job, load, done: Place::default(), path }
            }
        };
        // Before the first message: the name of the load must outlive it.
        notes.save()?;
        Ok(notes)
    }

    /// The id of the request that sends the batch behind what is done.
    pub(super) fn request_id(&self) -> String {
        format!("load-{}-{:x}", self.load, self.done.byte)
    }

    /// Notes that every message before `end` is sent.
    ///
    /// # Errors
    /// Notes that cannot be written.
    pub(super) fn sent(&mut self, end: Place) -> Result<(), CliError> {
        self.done = end;
        self.save()
    }

    fn save(&self) -> Result<(), CliError> {
        self.path.as_ref().map_or(Ok(()), |path| files::save(path, self))
    }

    /// The failure of a load, with what is to be done about it.
    pub(super) fn stopped(&self, error: CliError) -> CliError {
        match (error, &self.path) {
            (CliError::Rows(problem), Some(_)) => {
                let what = "what stands before it is sent, mend the line and go on with --resume";
                CliError::Rows(format!("{problem}; {what}"))
            }
            (error, _) => error,
        }
    }

    /// Removes the notes of a load that ran to its end.
    ///
    /// # Errors
    /// Notes that stay.
    pub(super) fn close(self) -> Result<(), CliError> {
        self.path.as_deref().map_or(Ok(()), files::remove)
    }
}

/// Whether the server still knows the request that was under way when the notes were written.
fn is_recent(notes: &Path) -> bool {
    let written = notes.metadata().and_then(|metadata| metadata.modified());
    let age = written.ok().and_then(|written| written.elapsed().ok());
    age.is_none_or(|age| age < RECOGNISED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(queue: &str) -> Job {
        let (endpoint, queue_created) = ("http://here".to_owned(), None);
        Job { endpoint, queue: queue.to_owned(), queue_created, text: false }
    }

    #[test]
    fn a_load_goes_on_under_the_request_ids_that_it_began_with() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("lines");
        let begin = |queue, resume| Notes::begin(job(queue), Some(&file), resume);
        let mut first = begin("jobs", false).expect("new");
        let ids = first.request_id();
        first.sent(Place { byte: 700, line: 100, messages: 100 }).expect("written");
        let next = first.request_id();

        let resumed = begin("jobs", true).expect("they are there");
        assert_eq!((resumed.done, resumed.request_id()), (first.done, next.clone()));
        assert!(next != ids && next.len() <= 64, "{next}");
        assert!(begin("others", true).is_err());

        let again = begin("jobs", false).expect("new");
        assert_ne!(again.request_id(), ids, "another load");
        again.close().expect("removed");
        assert_eq!(begin("jobs", true).expect("new").done, Place::default());
    }
}
