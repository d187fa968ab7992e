//! How far a load is, noted beside its file.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    client::Random,
    errors::{CliError, Halt},
    files,
    output::{counted, say},
    prefix::Prefix,
};

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
#[derive(Serialize, Deserialize)]
pub(super) struct Notes {
    pub(super) job: Job,
    /// The name of the load, in its request ids.
    load: String,
    /// Every message before this place is sent.
    pub(super) done: Place,
    /// Of the bytes before this place; not in notes of older versions.
    #[serde(default)]
    hash: Option<String>,
    #[serde(skip)]
    kept: Option<Kept>,
}

/// Notes on disk. There are none of a pipe, which cannot be read again.
struct Kept {
    path: PathBuf,
    prefix: Prefix,
    /// Whether they are there by now.
    is_there: bool,
}

impl Notes {
    /// The notes of the load of a file that goes on, or new ones, which are not written yet.
    ///
    /// # Errors
    /// Notes that are there when none are wanted, of another load or another file, or that cannot be read.
    pub(super) fn begin(job: Job, file: Option<&Path>, resume: bool) -> Result<Self, CliError> {
        let mut random = Random::from_system();
        let load = format!("{:016x}{:016x}", random.next(), random.next());
        let mut new = Self { job, load, done: Place::default(), hash: None, kept: None };
        let Some(file) = file else { return Ok(new) };
        let (path, prefix) = (files::beside(file, ".trestle-load"), Prefix::open(file)?);
        match files::load::<Self>(&path)? {
            Some(_) if !resume => Err(CliError::Usage(format!(
                "an interrupted load was found: `{}`: go on with --resume, or remove it",
                path.display()
            ))),
            Some(found) => found.go_on(&new.job, path, prefix),
            None => {
                if resume {
                    say("no interrupted load was found; begins at line 1");
                }
                new.kept = Some(Kept { path, prefix, is_there: false });
                Ok(new)
            }
        }
    }

    fn go_on(self, job: &Job, path: PathBuf, mut prefix: Prefix) -> Result<Self, CliError> {
        let shown = path.display();
        if self.job != *job {
            return Err(CliError::Usage(format!(
                "the interrupted load was another one (endpoint, queue or --text differ, or the queue was created \
                 again): to begin anew, remove `{shown}`"
            )));
        }
        match &self.hash {
            Some(hash) => prefix.verify(self.done.byte, hash, &path)?,
            None => say(&format!(
                "warning: whether the file changed is not known: `{shown}` is of an older version"
            )),
        }
        if !is_recent(&path) {
            say(&format!("warning: up to 100 messages may be sent twice: `{shown}` is old"));
        }
        Ok(Self { kept: Some(Kept { path, prefix, is_there: true }), ..self })
    }

    /// Writes the notes unless they are there. Before the first message: the name of the load must outlive it.
    ///
    /// # Errors
    /// Notes that cannot be written.
    pub(super) fn begin_sending(&mut self) -> Result<(), CliError> {
        match &self.kept {
            Some(Kept { is_there: false, .. }) => self.save(),
            _ => Ok(()),
        }
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

    fn save(&mut self) -> Result<(), CliError> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        self.hash = Some(kept.prefix.hash(self.done.byte)?);
        let path = kept.path.clone();
        files::save(&path, self)?;
        if let Some(kept) = &mut self.kept {
            kept.is_there = true;
        }
        Ok(())
    }

    /// The failure of a load, with what is to be done about it.
    pub(super) fn stopped(&self, error: CliError) -> CliError {
        match (error, &self.kept) {
            (CliError::Usage(problem), Some(Kept { is_there: true, .. })) => {
                let what = "what stands before it is sent, mend the line and go on with --resume";
                CliError::Usage(format!("{problem}; {what}"))
            }
            (CliError::Usage(problem), Some(_)) => {
                CliError::Usage(format!("{problem}; nothing was sent"))
            }
            (error, kept) => error.halted(self.done.messages > 0, || Halt {
                endpoint: self.job.endpoint.clone(),
                done: format!("{} are sent", counted(self.done.messages, "message")),
                next: match kept {
                    Some(Kept { is_there: true, .. }) => "go on with --resume".to_owned(),
                    Some(_) => "repeat it".to_owned(),
                    None => "a pipe cannot be gone on with; up to 100 more may be sent".to_owned(),
                },
            }),
        }
    }

    /// Removes the notes of a load that ran to its end.
    ///
    /// # Errors
    /// Notes that stay.
    pub(super) fn close(self) -> Result<(), CliError> {
        self.kept.map_or(Ok(()), |kept| files::remove(&kept.path))
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
        std::fs::write(&file, "x".repeat(1000)).expect("written");
        let begin = |queue, resume| Notes::begin(job(queue), Some(&file), resume);
        let mut first = begin("jobs", false).expect("new");
        let ids = first.request_id();
        first.sent(Place { byte: 700, line: 100, messages: 100 }).expect("written");
        let next = first.request_id();

        let resumed = begin("jobs", true).expect("they are there");
        assert_eq!((resumed.done, resumed.request_id()), (first.done, next.clone()));
        assert!(next != ids && next.len() <= 64, "{next}");
        assert!(begin("others", true).is_err());
        assert!(begin("jobs", false).is_err(), "not begun anew unasked");

        resumed.close().expect("removed");
        let mut again = begin("jobs", false).expect("new");
        assert_ne!(again.request_id(), ids, "another load");
        again.begin_sending().expect("written");
        assert!(begin("jobs", false).is_err(), "something may be sent");
        again.close().expect("removed");
        assert_eq!(begin("jobs", true).expect("new").done, Place::default());
    }
}
